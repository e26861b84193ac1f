"""A rule that is removed or changed while its topic is copied: nothing that another rule makes, or none, is added to the copy."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config.links import LinksFile, parse
from strait.control.link_status import link_groups
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.wire.records import Record
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import read_all
from support.kafka.topics import create
from support.links.by_hand import ByHand
from support.links.copying import copying

pytestmark = pytest.mark.broker


@contextmanager
def writing(cluster: Cluster, topic: str) -> Iterator[None]:
    """Numbered records without an end."""
    producer, over = Producer(cluster.client_properties | {"linger.ms": 5}), threading.Event()

    def write() -> None:
        number = 0
        while not over.wait(0.002):
            producer.produce(topic, b"value", b"%d" % number, 0)
            number += 1
        assert producer.flush(60) == 0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(90)


def is_even(record: Record) -> bool:
    return int(record.key or b"") % 2 == 0


@pytest.mark.parametrize("change", [None, {"where": "length(key) > 2"}])
def test_a_topic_halts_behind_what_its_former_rule_has_made(
    clusters: Any, topic_name: str, tmp_path: Path, change: dict[str, str] | None
) -> None:
    name = f"l{topic_name[-8:]}"
    create(clusters.source, topic_name, 1)

    def file(transform: dict[str, str] | None) -> LinksFile:
        rules = [{"match": topic_name} | ({} if transform is None else {"transform": transform})]
        link = {"source": "a", "destination": "b", "topics": {"include": [topic_name], "rules": rules}}
        both = {"a": clusters.source.client_properties, "b": clusters.destination.client_properties}
        return parse({"clusters": both, "links": {name: link}}, where="links file")

    former = file({"where": "key LIKE '%0'"})
    link = ConfiguredLink.of(former, name)

    def copied() -> list[bytes | None]:
        return [record.key for record in read_all(clusters.destination, topic_name, 1)[0]]

    def grows_by(records: int) -> None:
        at = ends(clusters.destination, topic_name, 1)[0]
        eventually(lambda: ends(clusters.destination, topic_name, 1)[0] >= at + records, what="it copies")

    with (
        Control(former, name) as control,
        copying(control, tmp_path, ByHand({topic_name: is_even})),
        writing(clusters.source, topic_name),
    ):
        grows_by(50)
        with Control(file(change), name) as other:
            version = other.apply().plan.version
        followed = lambda: all(slot.plan_version >= version for g in link_groups(link).groups for slot in g.slots)  # noqa: E731
        eventually(followed, what="the slot follows the plan")
        (row,) = link_groups(link).rows
        assert row.reason == Reason.TRANSFORM_CHANGED
        halted, source = copied(), ends(clusters.source, topic_name, 1)[0]
        eventually(lambda: ends(clusters.source, topic_name, 1)[0] > source + 200, what="the source grows")
        assert copied() == halted, "nothing more is added, by the former rule or by the other"
        assert control.apply().plan.version > version
        grows_by(50)
    kept = [record.key for record in read_all(clusters.source, topic_name, 1)[0] if is_even(record)]
    assert copied() == kept[: len(copied())]
