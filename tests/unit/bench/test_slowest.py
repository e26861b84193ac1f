"""Each of the slowest records is held up by the pause that took most of its time, if one took a third."""

from pathlib import Path

from endurance.paced import Arrival
from endurance.slowest import Pause, held_up_by, pauses_of_jvm


def test_the_longest_pause_while_a_record_was_under_way_counts() -> None:
    pauses = [Pause(100, 200, "a"), Pause(150, 400, "b"), Pause(5_000, 5_050, "a")]
    slow = [Arrival(90, 210), Arrival(150, 390), Arrival(4_990, 5_500), Arrival(8_000, 8_100)]
    assert held_up_by(slow, pauses) == {"a": 1, "b": 1, "neither": 2}
    assert held_up_by(slow[:1], []) == {"neither": 1}


def test_a_jvms_pauses_are_read_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "safepoints.log"
    log.write_text(
        '[5000000ns][info][safepoint] Safepoint "G1CollectForAllocation", Time since last: 1 ns, Reaching safepoint: 20 ns, '
        "At safepoint: 900000 ns, Leaving safepoint: 5 ns, Total: 1000000 ns, Threads: 1 runnable, 12 total\n"
        "[6000000ns] something else\n"
        '[9000000ns] Safepoint "ICBufferFull", Time since last: 9 ns, Total: 10 ns\n'
    )
    assert list(pauses_of_jvm(log, "source")) == [
        Pause(4_000_000, 5_000_000, "a collection of the source's JVM"),
        Pause(8_999_990, 9_000_000, "a safepoint of the source's JVM"),
    ]
