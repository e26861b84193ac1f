"""Bits that change on the disks of both clusters, after a link has copied: an audit names each, and nothing that is sound."""

import random
from contextlib import ExitStack
from pathlib import Path

from endurance.audited_link import audited_link
from endurance.brokers import running
from endurance.scenario import Finding, Say, Sizes
from strait.embedded.kafka import Cluster
from support.kafka.rot import rot_in

_TOPIC = "rotten"


def rot(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """In each turn a bit of one batch in each partition changes, on one side, and is changed back."""
    chance = random.Random(sizes.seed)
    problems: list[str] = []
    source, destination = Cluster(folder / "source"), Cluster(folder / "destination")
    with (
        running(source, destination),
        audited_link("rot", _TOPIC, sizes.partitions, folder, source, destination, chance) as audit,
    ):
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
    wrong = sum(problem.startswith("named, but sound") for problem in problems)
    return [
        Finding("faults put in", sizes.turns * sizes.partitions, ""),
        Finding("not named", len(problems) - wrong, "", 0),
        Finding("named beside sound records", wrong, "", 0),
        Finding("named once all are taken back", left, "", 0),
    ]
