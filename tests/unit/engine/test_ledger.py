"""What a slot says for the ledger: each record once, however the topic takes it."""

import zlib
from typing import Any

from strait.config.app_spec import AppSpec
from strait.engine.ledger import PARTITIONS_PER_TURN, IntervalLedger
from strait.engine.partition.partition import Partition
from strait.engine.partition.send_queue import OutBatch
from strait.errors import ClusterUnavailable
from strait.net.buffers import BufferPool
from strait.state.ledger_records import LedgerEntry, LedgerPart
from strait.state.sink import OnAck
from support.model.partitions import placed, plain_partition
from support.model.reports import plain_run

SPEC = AppSpec(
    link="l", group="default", source_name="a", source={}, destination_name="b", destination={}, slots=1,
    slot_memory_bytes=1, ledger_seconds=100, ledger_dir="", checkpoint_dir="",
)  # fmt: skip


class Slot:
    """A slot's ledger and its partitions; ``takes``: whether the ledger topic does."""

    def __init__(self, *partitions: Partition) -> None:
        self.partitions = list(partitions)
        self.takes = True
        self.written: list[LedgerPart] = []
        self._open: list[tuple[LedgerPart, OnAck]] = []
        self.ledger = IntervalLedger(SPEC, 0, "app", self, lambda: self.partitions, 0.0, 0)
        self.ledger.open([one for one in partitions if one.position.run is not None], 0)

    def write_ledger(self, record: Any, on_ack: OnAck | None = None) -> None:
        assert on_ack is not None
        self._open.append((record, on_ack))

    def step(self, now: float) -> list[LedgerEntry]:
        """All that is due at this time, as it was written."""
        before = len(self.written)
        for _ in range(3 + len(self.partitions) // PARTITIONS_PER_TURN):
            self.ledger.step(now, round(now * 1000))
            answered, self._open = self._open, []
            for record, on_ack in answered:
                if self.takes:
                    self.written.append(record)
                on_ack(None if self.takes else ClusterUnavailable("b", "down"))
        return [entry for part in self.written[before:] for entry in part.entries]


def copy(partition: Partition, records: int, crc: bytes = b"CRC!") -> None:
    """As many are acknowledged, in one batch with this checksum."""
    buffer, position = BufferPool(1 << 20).adopt(bytearray(1)), partition.position
    source = position.copied_to + records
    batch = OutBatch(
        position.generation, buffer.view(), buffer, position.acked_sequence, records, source, source, 0, b"1234", 0, 1, False,
        copy_crc=crc,
    )  # fmt: skip
    position.acked(batch)
    partition.totals.acked(batch)


def told(entries: list[LedgerEntry]) -> list[tuple[int, int, int, int]]:
    return [(entry.partition, entry.sequence_from, entry.sequence_to, entry.records) for entry in entries]


def test_rows_follow_one_another_and_an_idle_partition_has_none() -> None:
    slot = Slot(placed(number=0), placed(number=1))
    copy(slot.partitions[0], 5)
    assert told(slot.step(0.0)) == [(0, 0, 0, 0), (1, 0, 0, 0)], "the first ones say where it begins"
    first = slot.step(100.0)
    assert told(first) == [(0, 0, 5, 5)]
    copy(slot.partitions[0], 2)
    assert slot.step(199.0) == []
    second = slot.step(200.0)
    assert told(second) == [(0, 5, 7, 2)]
    assert second[0].digest == first[0].digest, "of each interval by itself"
    assert slot.step(300.0) == []


def test_an_idle_partition_has_a_row_each_day() -> None:
    slot, day = Slot(placed()), 86_400
    slot.step(0.0)
    assert told(slot.step(day - 1.0)) == []
    assert told(slot.step(day + 100.0)) == [(0, 0, 0, 0)]
    assert told(slot.step(day + 200.0)) == []


def test_the_digest_of_the_copy_is_of_the_checksums_that_were_sent_since_the_last_row() -> None:
    slot = Slot(placed())
    (partition,) = slot.partitions
    slot.step(0.0)
    copy(partition, 5, b"ABCD")
    copy(partition, 2, b"EFGH")
    (first,) = slot.step(100.0)
    copy(partition, 1, b"ABCD")
    (second,) = slot.step(200.0)
    assert (first.copy_digest_from, first.copy_digest) == (0, zlib.crc32(b"ABCDEFGH"))
    assert (second.copy_digest_from, second.copy_digest) == (7, zlib.crc32(b"ABCD"))
    assert (first.source_id, first.destination_id) == partition.ids


def test_the_digest_of_the_copy_starts_again_after_acknowledgements_were_lost() -> None:
    slot = Slot(placed())
    (partition,) = slot.partitions
    slot.step(0.0)
    copy(partition, 5, b"ABCD")
    partition.reset_position(None, "", 0.0)
    partition.found([plain_run()], 8, 8)
    copy(partition, 2, b"EFGH")
    (row,) = slot.step(100.0)
    assert (row.sequence_from, row.sequence_to, row.records) == (0, 10, 7)
    assert (row.copy_digest_from, row.copy_digest) == (8, zlib.crc32(b"EFGH"))
    partition.reset_position(None, "", 0.0)
    partition.found([plain_run()], 13, 13)
    (row,) = slot.step(200.0)
    assert (row.sequence_to, row.copy_digest_from, row.copy_digest) == (13, -1, -1), "nothing that it has sent itself"


def test_the_digest_of_the_copy_goes_on_if_a_reset_has_lost_nothing() -> None:
    slot = Slot(placed())
    (partition,) = slot.partitions
    slot.step(0.0)
    copy(partition, 5, b"ABCD")
    partition.reset_position(None, "", 0.0)
    partition.found([plain_run()], 5, 5)
    copy(partition, 2, b"EFGH")
    (row,) = slot.step(100.0)
    assert (row.copy_digest_from, row.copy_digest) == (0, zlib.crc32(b"ABCDEFGH"))


def test_rows_that_the_topic_does_not_take_are_sent_again_and_waited_for_in_the_meantime() -> None:
    slot = Slot(placed())
    slot.step(0.0)
    copy(slot.partitions[0], 5)
    slot.takes = False
    for now in (100.0, 200.0, 300.0):
        assert slot.step(now) == []
        copy(slot.partitions[0], 1)
    slot.takes = True
    assert told([*slot.step(400.0), *slot.step(500.0)]) == [(0, 0, 5, 5), (0, 5, 8, 3)]


def test_a_partition_that_was_given_away_has_one_more_row() -> None:
    slot = Slot(placed())
    slot.step(0.0)
    copy(slot.partitions[0], 3)
    slot.ledger.retire([slot.partitions.pop()])
    assert told(slot.step(100.0)) == [(0, 0, 3, 3)]
    assert slot.step(200.0) == []


def test_many_partitions_take_several_turns() -> None:
    slot = Slot(*(placed(number=number) for number in range(2 * PARTITIONS_PER_TURN + 1)))
    slot.step(0.0)
    for partition in slot.partitions:
        copy(partition, 1)
    slot.step(100.0)
    assert [len(part.entries) for part in slot.written] == 2 * [PARTITIONS_PER_TURN, PARTITIONS_PER_TURN, 1]


def test_a_position_that_is_not_known_yet_is_told_as_such() -> None:
    slot = Slot(plain_partition())
    assert slot.step(0.0) == []
    (row,) = slot.step(100.0)
    assert (row.source_from, row.sequence_from, row.sequence_to, row.destination_to) == (-1, -1, -1, -1)
    assert row.state == "starting"


def test_the_last_rows_are_written_at_once() -> None:
    slot = Slot(placed())
    slot.step(0.0)
    copy(slot.partitions[0], 5)
    slot.ledger.finish(1000)
    ((part, _),) = slot._open
    assert told(list(part.entries)) == [(0, 0, 5, 5)]
