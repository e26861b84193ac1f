"""Every committed offset of one side has its exact counterpart on the other, as both logs show it record by record."""

import json
import subprocess
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from strait.config.links import LinksFile, parse
from strait.consumer_groups.offsets import Offsets
from strait.embedded.kafka import Cluster
from strait.model import TopicPartition
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import TopicPolicy
from strait.state.translation import Fit, Translation
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import read_all
from support.kafka.transactions import Transactions, small_transactions
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
PARTITIONS = 2


def file_of(link: EngineLink) -> LinksFile:
    return parse(link.settings, where="links file")


def compare(link: EngineLink, topic: str) -> Counter[str]:
    """Compare with a search in both logs, for every offset of each partition, both ways. Returns how many there were of
    each fit. Keys of other producers at the destination begin with "foreign"."""
    offsets = Offsets(ConfiguredLink.of(file_of(link), link.name))
    counted: Counter[str] = Counter()
    both = zip(read_all(link.source, topic, PARTITIONS), read_all(link.destination, topic, PARTITIONS), strict=True)
    for partition, (written, found) in enumerate(both):
        there = [record.offset for record in written]
        copied = [record.offset for record in found if not (record.key or b"").startswith(b"foreign")]
        assert len(there) == len(copied) > 0
        place = TopicPartition(topic, partition)
        asked = range(there[0], ends(link.source, topic, PARTITIONS)[partition] + 1)
        for offset, translated in zip(asked, offsets.to_destination((place, each) for each in asked), strict=True):
            before = bisect_left(there, offset)
            counted[assert_after(translated, copied, before)] += 1
        back = range(copied[0], copied[-1] + 2)
        for offset, translated in zip(back, offsets.to_source((place, each) for each in back), strict=True):
            before = bisect_left(copied, offset)
            counted[assert_after(translated, there, before)] += 1
    return counted


def assert_after(translated: Translation, offsets: list[int], records: int) -> str:
    """After so many records; before the first one, at any offset that has none of the link's before it."""
    assert translated.to_offset is not None
    latest = offsets[records - 1] + 1 if records else offsets[0]
    assert translated.to_offset <= latest, translated
    if records and translated.fit == Fit.EXACT:
        assert translated.to_offset == latest, translated
    return translated.fit


def test_over_transactions_and_crashes_every_offset_is_exact(make_link: MakeLink, topic_name: str) -> None:
    """Markers and aborted records leave gaps; each new slot begins another entry of the map. A killed slot leaves
    neither a checkpoint nor a last report of what it wrote."""
    link = make_link(topics={topic_name: PARTITIONS})
    link.make_topics()
    link.publish()
    for seed in range(3):
        slot = link.start_slot()
        with small_transactions(link, topic_name, 40, seed=seed):
            pass
        link.until_seen()
        link.kill(slot)
    counted = compare(link, topic_name)
    assert counted.keys() == {Fit.EXACT}
    assert counted.total() > 500


def test_among_other_producers_nothing_is_skipped_and_what_is_exact_is_said(
    make_link: MakeLink, topic_name: str
) -> None:
    link = make_link(topics={topic_name: PARTITIONS}, policy=TopicPolicy(on_foreign="expect"))
    link.make_topics()
    link.publish()
    link.start_slot(changed={"strait.engine.slot:CHECKPOINT_SECONDS": 0.5})
    transactions = Transactions(link.source, topic_name, topic_name, PARTITIONS)
    foreign = Producer(link.destination.client_properties)
    for turn in range(20):
        transactions.begin()
        transactions.write(6)
        transactions.end(turn % 3 != 0)
        link.until_seen()
        foreign.produce(topic_name, b"theirs", b"foreign %d" % turn, partition=turn % PARTITIONS)
        assert foreign.flush(30) == 0
    counted = compare(link, topic_name)
    assert counted.keys() == {Fit.EXACT, Fit.INEXACT}
    assert counted[Fit.EXACT] > 20, counted


def test_what_is_not_replicated_yet_is_the_end_of_what_is_and_says_so(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: PARTITIONS})
    link.make_topics()
    producer = Producer(link.source.client_properties)
    for number in range(50):
        producer.produce(topic_name, b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    link.publish()
    slot = _copied(link, 50)
    link.until_seen()
    link.kill(slot)
    for number in range(10):
        producer.produce(topic_name, b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    offsets = Offsets(ConfiguredLink.of(file_of(link), link.name))
    place = TopicPartition(topic_name, 0)
    found = offsets.to_destination([(place, 49), (place, 50), (place, 51), (place, 60)])
    assert [(item.to_offset, item.fit) for item in found] == [
        (49, Fit.EXACT), (50, Fit.EXACT), (50, Fit.AHEAD), (50, Fit.AHEAD)
    ]  # fmt: skip


def _copied(link: EngineLink, records: int) -> subprocess.Popen[bytes]:
    slot = link.start_slot()
    link.until_copied(records)
    return slot


def strait(folder: Path, *words: str, csv: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("strait"), "offsets", "translate", *words],
        cwd=folder, input=csv, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def commit(cluster: Cluster, group: str, topic: str, offset: int) -> None:
    consumer = Consumer(cluster.client_properties | {"group.id": group})
    place = [Place(topic, 0, offset)]
    eventually(lambda: consumer.commit(offsets=place, asynchronous=False), what="the offset is committed")
    consumer.close()


def test_on_the_command_line(make_link: MakeLink, topic_name: str, tmp_path: Path) -> None:
    link = make_link(topics={topic_name: PARTITIONS})
    link.make_topics()
    transactions = Transactions(link.source, topic_name, topic_name, 1)
    for number in range(4):
        transactions.begin()
        transactions.write(5)
        transactions.end(number % 2 == 0)
    link.publish()
    _copied(link, 10)
    link.until_seen()
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(link.settings))
    said = strait(tmp_path, f"{topic_name}-0:7", "-o", "json")
    assert said.returncode == 0, said.stderr
    (item,) = json.loads(said.stdout)
    assert (item["to_topic"], item["to_offset"], item["fit"]) == (topic_name, 5, "exact")
    group = f"{topic_name}-group"
    commit(link.source, group, topic_name, 14)
    said = strait(tmp_path, link.name, "--group", group)
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines()[1].split() == [f"{topic_name}-0", "14", f"{topic_name}-0", "7", "exact"]
    said = strait(tmp_path, "--reverse", csv=f"Topic,Partition,Offset\n{topic_name},0,7\n")
    assert (said.returncode, said.stdout.splitlines()[1]) == (0, f"{topic_name},0,7,{topic_name},14,exact")
    said = strait(tmp_path, f"{topic_name}-0:99", f"{topic_name}-1:0")
    assert said.returncode == 1
    assert [line.split()[4] for line in said.stdout.splitlines()[1:]] == ["ahead", "exact"]
    said = strait(tmp_path, "--group", "nobody")
    assert said.returncode == 2
    assert "group 'nobody' has no committed offset on a" in said.stderr
    for wrong in ("orders", f"{topic_name}-0:x", f"{topic_name}:3"):
        assert strait(tmp_path, link.name, wrong).returncode == 2
    assert "did you mean" in strait(tmp_path, link.name, f"{topic_name}x-0:1").stderr
