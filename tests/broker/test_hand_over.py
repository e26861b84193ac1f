"""A link gives its positions to other tools: as files, and to MirrorMaker 2, from which it took over. Each record once."""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config.links import LinksFile, parse
from strait.control.hand_over import Stored, read_offsets_topic
from strait.control.pausing import set_stopped
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.kafka.reading import read_ranges
from strait.model import TopicPartition
from strait.state.link_handle import ConfiguredLink
from strait.state.positions import ConnectOffset, connect_record
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.mirror_maker import OFFSETS_TOPIC, mirror_maker
from support.kafka.records import read_all
from support.kafka.topics import create, exists
from support.kafka.transactions import Transactions
from support.links.copying import copying
from support.links.engine_link import EngineLink
from support.links.moving import CommandLine, settings, streaming, until_equal, write

pytestmark = pytest.mark.broker

PARTITIONS = 3
SILENT = {"strait.engine.reporter:REPORT_SECONDS": 3600, "strait.engine.slot:CHECKPOINT_SECONDS": 3600}


@pytest.fixture
def link(topic_name: str) -> str:
    return "m" + topic_name[-8:]


@pytest.fixture
def topic(link: str) -> str:
    return f"{link}-orders"


@pytest.fixture
def own_clusters(tmp_path: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """For a tool that keeps topics of its own there."""
    pair = Cluster(tmp_path / "source"), Cluster(tmp_path / "destination")
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(Cluster.start, pair))
        yield pair
    finally:
        for cluster in pair:
            cluster.stop()


def test_mirror_maker_is_taken_over_in_the_middle_of_a_stream_and_given_back(
    own_clusters: tuple[Cluster, Cluster], link: str, topic: str, tmp_path: Path
) -> None:
    """It is killed, so what it has stored lags behind what it has copied; its own restart would copy that again."""
    source, destination = own_clusters
    copy = f"source.{topic}"
    create(source, topic, PARTITIONS)
    links = settings(source, destination, link, naming={"policy": "alias"})
    strait = CommandLine(tmp_path, links)

    def copied() -> int:
        return sum(ends(destination, copy, PARTITIONS))

    with streaming(source, topic, PARTITIONS) as stream:
        with mirror_maker(tmp_path / "first", source, destination, topic) as maker:
            eventually(lambda: maker.require_alive() and exists(destination, copy), what="its topic")
            eventually(lambda: maker.require_alive() and _stored(destination), what="it stores a position")
            at = copied()
            eventually(lambda: copied() > at + 300, what="it copies on")
            maker.kill()
        assert stream.written > copied()
        tried = strait.moves("--from-connect", OFFSETS_TOPIC, "--dry-run")
        moves = strait.moves("--from-connect", OFFSETS_TOPIC)
        assert [move["verdict"] for move in tried] == ["ready"] * PARTITIONS
        assert [move["start"] for move in tried] == [move["start"] for move in moves]
        assert sum(move["start"] for move in moves) == copied()
        assert any(move["stored"] is None or move["stored"] < move["start"] for move in moves)
        assert {move["verdict"] for move in strait.moves("--from-connect", OFFSETS_TOPIC)} == {"already"}
        file = parse(links, where="links file")
        with Control(file, link) as control, copying(control, tmp_path):
            eventually(lambda: copied() > stream.written - 100, what="the link catches up")
            assert {one["verdict"] for one in strait.moves("--from-connect", OFFSETS_TOPIC, code=1)} == {"started"}
            strait("export", "--to-connect", OFFSETS_TOPIC, code=2)
            set_stopped(ConfiguredLink.of(file, link), stopped=True, by="a test")
            time.sleep(1)
        strait("export", "--to-connect", OFFSETS_TOPIC)
        with mirror_maker(tmp_path / "second", source, destination, topic) as maker:
            at = copied()
            eventually(lambda: maker.require_alive() and copied() > at + 300, what="it goes on")
            eventually(lambda: maker.require_alive() and copied() > stream.written - 100, what="it catches up")
            stream.stop()
            until_equal(source, destination, topic, copy, PARTITIONS)


def test_mirror_maker_is_taken_over_behind_aborted_records_that_it_has_copied(
    own_clusters: tuple[Cluster, Cluster], link: str, topic: str, tmp_path: Path
) -> None:
    """It reads uncommitted records by default. The source ends with aborted ones."""
    source, destination = own_clusters
    copy = f"source.{topic}"
    create(source, topic)
    writer = Transactions(source, f"{topic}-writer", topic, 1)
    for number in range(40):
        writer.begin()
        writer.write(5)
        writer.end(commit=number % 4 == 0)
    raw = {TopicPartition(topic, 0): (0, sys.maxsize)}
    records = list(read_ranges(source.client_properties, "source", raw, committed=False))
    assert len(records) == 200
    strait = CommandLine(tmp_path, links := settings(source, destination, link, naming={"policy": "alias"}))
    with mirror_maker(tmp_path / "mm2", source, destination, topic) as maker:
        eventually(lambda: maker.require_alive() and exists(destination, copy), what="its topic")
        eventually(lambda: maker.require_alive() and ends(destination, copy, 1) == [200], what="it copies all")
        maker.kill()
    (tmp_path / "stored.csv").write_text(f"{topic},0,\n")
    (move,) = strait.moves("stored.csv")
    assert (move["verdict"], move["start"]) == ("imported", records[-1].offset() + 1)
    writer.begin()
    writer.write(5)
    writer.commit()
    with Control(parse(links, where="links file"), link) as control, copying(control, tmp_path):
        eventually(lambda: ends(destination, copy, 1) == [205], what="the link continues")
    copied = [record.key for record in read_all(destination, copy, 1)[0]]
    assert copied == [*(record.key() for record in records), *[one.key for one in read_all(source, topic, 1)[0]][-5:]]


def _stored(destination: Cluster) -> bool:
    return bool(read_offsets_topic(destination.client_properties, "destination", OFFSETS_TOPIC))


def stored_in(link: EngineLink, topic: str) -> list[Stored]:
    return read_offsets_topic(link.destination.client_properties, "b", topic)


def test_a_link_that_was_killed_hands_over_what_its_copy_holds(
    make_link: Callable[..., EngineLink], topic_name: str, tmp_path: Path
) -> None:
    """The map knows of the last checkpoint alone, and the last report may be older than the last record."""
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    slot = link.start_slot(changed=SILENT)
    write(link.source, topic_name, range(50))
    link.until_copied(50)
    time.sleep(1)  # after the only report and checkpoint
    write(link.source, topic_name, range(50, 100))
    link.until_copied(100)
    link.kill(slot)
    strait = CommandLine(tmp_path, link.settings)
    offsets_topic = f"{link.name}-offsets"
    assert "ahead" in strait("export", link.name, code=1)
    assert "replicates 1 topic" in strait("export", link.name, "--to-connect", offsets_topic, code=2)
    link.publish(stopped=True)
    written = strait("export", link.name, "--to-connect", offsets_topic, "--cluster", "a")
    assert f"{topic_name},0,100,{topic_name},100,exact" in written
    entry = ConnectOffset("MirrorSourceConnector", "a", TopicPartition(topic_name, 0), 100)
    assert [one.entry for one in stored_in(link, offsets_topic)] == [entry]
    strait("export", link.name, "--to-connect", offsets_topic, "--cluster", "a")
    assert [one.entry for one in stored_in(link, offsets_topic)] == [entry]
    other = {**link.settings["links"][link.name], "source": "c"}
    clusters = {**link.settings["clusters"], "c": link.settings["clusters"]["a"]}
    strait = CommandLine(tmp_path, {"clusters": clusters, "links": {link.name: other}})
    assert "--cluster a" in strait("export", link.name, "--to-connect", offsets_topic, code=2)


def test_where_the_link_copied_nothing_an_old_position_of_the_other_tool_is_taken_back(
    make_link: Callable[..., EngineLink], topic_name: str, tmp_path: Path
) -> None:
    """As of a topic that was made anew since: the tool would begin there, once the topic is that long again."""
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish(stopped=True)
    offsets_topic = f"{link.name}-offsets"
    create(link.destination, offsets_topic, cleanup_policy="compact")
    key, value = connect_record("MirrorSourceConnector", "a", TopicPartition(topic_name, 0), 5000)
    producer = Producer(link.destination.client_properties)
    producer.produce(offsets_topic, value, key)
    assert producer.flush(60) == 0
    assert [one.entry.position for one in stored_in(link, offsets_topic)] == [5000]
    CommandLine(tmp_path, link.settings)("export", link.name, "--to-connect", offsets_topic, "--cluster", "a")
    assert [one.entry.position for one in stored_in(link, offsets_topic)] == [None]


@pytest.mark.core
def test_a_link_exports_its_positions_and_another_one_goes_on_there(
    clusters: Any, link: str, topic: str, tmp_path: Path
) -> None:
    source, destination = clusters.source, clusters.destination
    create(source, topic, 2)
    write(source, topic, range(100), partitions=2)
    links = settings(source, destination, link)
    links["links"][f"{link}-b"] = links["links"][link]
    file: LinksFile = parse(links, where="links file")
    strait = CommandLine(tmp_path, links)
    strait("export", link, code=2)  # it has no plan
    with Control(file, link) as control, copying(control, tmp_path):
        eventually(lambda: exists(destination, topic) and ends(destination, topic, 2) == [50, 50], what="the copy")
        set_stopped(ConfiguredLink.of(file, link), stopped=True, by="a test")
        time.sleep(1)
    exported = strait("export", link)
    assert exported.splitlines()[1:] == [f"{topic},{number},50,{topic},50,exact" for number in (0, 1)]
    assert strait("export", link, "--format", "mirus").splitlines() == [f"{link},{topic},{n},50" for n in (0, 1)]
    (tmp_path / "positions.csv").write_text(exported)
    write(source, topic, range(100, 200), partitions=2)
    assert [move["start"] for move in strait.moves(f"{link}-b", "positions.csv")] == [50, 50]
    with Control(file, f"{link}-b") as control, copying(control, tmp_path):
        until_equal(source, destination, topic, topic, 2)
