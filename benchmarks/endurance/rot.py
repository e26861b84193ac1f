"""Bits that change on the disks of both clusters, after a link has copied: an audit names each, and nothing that is sound."""

import random
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer

from endurance.scenario import Finding, Say, Sizes
from strait.embedded.kafka import Cluster
from support.kafka.rot import rot_in
from support.links.auditing import planned
from support.links.engine_link import EngineLink

_TOPIC = "rotten"
_RECORDS = 2_000
"""In each partition, in batches of a hundred."""


def rot(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """In each turn a bit of one batch in each partition changes, on one side, and is changed back."""
    chance = random.Random(sizes.seed)
    problems: list[str] = []
    with Cluster(folder / "source") as source, Cluster(folder / "destination") as destination:
        link = EngineLink("rot", source, destination, folder, {_TOPIC: sizes.partitions})
        link.make_topics()
        _fill(source, sizes.partitions, chance)
        link.publish()
        slot = link.start_slot()
        try:
            link.until_copied()
            link.publish(stopped=True)
            slot.wait(60)
            audit = planned(link)
            for turn in range(sizes.turns):
                with ExitStack() as changed:
                    rotten = [
                        changed.enter_context(
                            rot_in(chance.choice([source, destination]).directory, _TOPIC, number, chance)
                        )
                        for number in range(sizes.partitions)
                    ]
                    found = audit().differences
                for number, one in enumerate(rotten):
                    problem = one.problem([difference for difference in found if difference["partition"] == number])
                    if problem:
                        problems.append(problem)
                        say(problem)
                if turn % 20 == 0:
                    say(f"{(turn + 1) * sizes.partitions} faults")
            left = len(audit().differences)
        finally:
            link.stop()
    wrong = sum(problem.startswith("named, but sound") for problem in problems)
    return [
        Finding("faults put in", sizes.turns * sizes.partitions, ""),
        Finding("not named", len(problems) - wrong, "", 0),
        Finding("named beside sound records", wrong, "", 0),
        Finding("named once all are taken back", left, "", 0),
    ]


def _fill(cluster: Cluster, partitions: int, chance: random.Random) -> None:
    producer = Producer(
        cluster.client_properties | {"compression.type": "lz4", "batch.num.messages": 100, "linger.ms": 100}
    )
    for number in range(_RECORDS * partitions):
        producer.produce(_TOPIC, chance.randbytes(100), b"%d" % number, number % partitions)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("the source does not take the records")
