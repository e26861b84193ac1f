"""`strait map rebuild`, and all that a link's offset map answers, to be compared before and after."""

import json
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from strait.config.links import parse
from strait.consumer_groups.offsets import Offsets
from strait.embedded.kafka import Cluster
from strait.model import TopicPartition
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.translation import Fit
from support.kafka.log_ends import ends
from support.links.engine_link import EngineLink


class Answer(NamedTuple):
    offset: int | None
    fit: str


Answers = Mapping[tuple[str, TopicPartition, int], Answer]
"""(direction, partition, offset) -> what it translates to."""


class Rebuild:
    """`strait map rebuild` with a links file."""

    def __init__(self, folder: Path, links: Mapping[str, Any]) -> None:
        self._folder = folder
        (folder / "links.yaml").write_text(yaml.safe_dump(dict(links)))

    def __call__(self, *words: str, code: int = 0, typed: str = "") -> str:
        done = subprocess.run(
            [Path(sys.executable).with_name("strait"), "map", "rebuild", *words],
            cwd=self._folder, input=typed, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{done.returncode}: {done.stdout}\n{done.stderr}"
        return done.stdout if code != 2 else done.stderr

    def partitions(self, *words: str, code: int = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self(*words, "--json", code=code))["partitions"]
        return found


def answers(links: Mapping[str, Any], name: str, topic: str, copy: str, sources: Any, copies: Any) -> Answers:
    """Of every offset of both logs, both ways. ``sources``, ``copies``: the ends of the logs."""
    offsets = Offsets(ConfiguredLink.of(parse(dict(links), where="links file"), name))
    there = [(TopicPartition(topic, number), at) for number, end in enumerate(sources) for at in range(end + 1)]
    here = [(TopicPartition(copy, number), at) for number, end in enumerate(copies) for at in range(end + 1)]
    found = {("to", *one): answer for one, answer in zip(there, offsets.to_destination(there), strict=True)}
    found |= {("back", *one): answer for one, answer in zip(here, offsets.to_source(here), strict=True)}
    return {asked: Answer(answer.to_offset, answer.fit) for asked, answer in found.items()}


def assert_exact(found: Answers) -> None:
    """But for offsets before the first record, where the source begins with an aborted one."""
    inexact = [asked for asked, answer in found.items() if answer.fit != Fit.EXACT]
    assert all(found[asked] == Answer(0, Fit.BEFORE_START) for asked in inexact)
    assert len(inexact) < 20


def assert_never_late(found: Answers, partition: int, there: Sequence[int], copied: Sequence[int]) -> None:
    """Held against both logs: exact where an answer says so, else not too late. ``there``, ``copied``: the offsets of
    the link's records."""
    for (way, place, offset), answer in found.items():
        if place.partition != partition:
            continue
        asked, result = (there, copied) if way == "to" else (copied, there)
        records = bisect_left(asked, offset)
        assert answer.offset is not None
        if records:
            latest = result[records - 1] + 1
            right = answer.offset == latest if answer.fit == Fit.EXACT else answer.offset <= latest
            assert right, f"{way} {offset}: {answer} instead of {latest}"


def answers_of(link: EngineLink, topic: str) -> Answers:
    count = link.topics[topic]
    source, copy = (ends(cluster, topic, count) for cluster in (link.source, link.destination))
    return answers(link.settings, link.name, topic, topic, source, copy)


def reasons(links: Mapping[str, Any], link: str) -> set[str | None]:
    """Why the partitions wait that the link's slots report now."""
    with StateReader(links["clusters"]["destination"], "destination", link, follow=("plan", "reports")) as state:
        state.catch_up()
        rows = [row for parts in state.reports.values() for report in parts for row in report.partitions]
        return {row.reason for row in rows}


def expire(cluster: Cluster, topic: str, offset: int) -> None:
    """Delete what is before an offset of partition 0, as retention does."""
    client = AdminClient(cluster.client_properties)
    place = Place(topic, 0, offset)
    client.delete_records([place])[place].result(30)
