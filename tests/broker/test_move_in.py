"""A link goes on where another tool has stopped, whatever that has stored: each record once."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config.links import parse
from strait.control.move_in import MoveIn
from strait.control.plane import Control
from strait.kafka.reading import read_ranges
from strait.model import TopicPartition
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from support.fixtures.waiting import eventually
from support.kafka.groups import Reader, commit
from support.kafka.log_ends import ends
from support.kafka.records import assert_same_records, read_all
from support.kafka.topics import create
from support.kafka.transactions import Transactions
from support.links.copying import copying
from support.links.moving import CommandLine, copied_by_hand, settings, until_equal, write

pytestmark = pytest.mark.broker


@pytest.fixture
def link(topic_name: str) -> str:
    return "m" + topic_name[-8:]


@pytest.fixture
def topic(link: str) -> str:
    return f"{link}-orders"


@pytest.mark.core
def test_a_group_is_taken_over_once_it_has_no_members(clusters: Any, link: str, topic: str, tmp_path: Path) -> None:
    """As uReplicator commits: what it copied after the last commit is in the copy, too, and so are topics of which it
    has not committed anything yet."""
    source, destination, group = clusters.source, clusters.destination, f"{link}-group"
    other, empty = f"{link}-other", f"{link}-empty"
    for cluster in (source, destination):
        create(cluster, topic)
        create(cluster, other)
        create(cluster, empty)
    write(source, topic, range(500))
    write(source, other, range(50))
    copied_by_hand(source, destination, topic, range(300))
    copied_by_hand(source, destination, other, range(20))
    strait = CommandLine(tmp_path, links := settings(source, destination, link))
    reader = Reader(source, group, topic)
    reader.read(200)
    assert "has members" in strait("import", "--group", group, code=2)
    reader.leave()
    commit(source, group, {TopicPartition(topic, 0): 200})
    found = [(move["topic"], move["stored"], move["start"]) for move in strait.moves("--group", group)]
    assert found == [(topic, 200, 300), (other, None, 20)]
    with Control(parse(links, where="links file"), link) as control:
        starts = {(effect.verb, effect.subject, effect.detail) for effect in control.show(control.propose()).shown}
        assert starts == {
            ("copies", topic, "from where it stopped"),
            ("copies", other, "from where it stopped"),
            ("copies", empty, "from earliest"),
        }
        with copying(control, tmp_path):
            until_equal(source, destination, topic, topic, 1)
            until_equal(source, destination, other, other, 1)


def test_transactions_on_either_side_do_not_matter(clusters: Any, link: str, topic: str, tmp_path: Path) -> None:
    """Markers and aborted records have offsets of their own; a tool that copies in transactions leaves some, too."""
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic)
    producer = Transactions(source, f"{topic}-source", topic, 1)
    for number in range(20):
        producer.begin()
        producer.write(5)
        producer.end(commit=number % 3 != 0)
    records = read_all(source, topic, 1)[0]
    copier = Producer(destination.client_properties | {"transactional.id": f"{topic}-copier"})
    copier.init_transactions(60)
    for first in range(0, 40, 5):
        copier.begin_transaction()
        for record in records[first : first + 5]:
            copier.produce(
                topic, record.value, record.key, 0, timestamp=record.timestamp[1], headers=list(record.headers)
            )
        copier.commit_transaction(60)
    strait = CommandLine(tmp_path, links := settings(source, destination, link))
    (tmp_path / "stored.csv").write_text(f"{topic},0,{records[10].offset}\n")
    copier.begin_transaction()
    copier.produce(topic, b"not to be seen", partition=0)
    copier.flush(60)
    (refused,) = strait.moves("stored.csv", code=1)
    assert "a transaction is open" in refused["detail"]
    copier.abort_transaction(60)
    (move,) = strait.moves("stored.csv")
    assert move["start"] == records[39].offset + 1
    with Control(parse(links, where="links file"), link) as control, copying(control, tmp_path):
        eventually(lambda: len(read_all(destination, topic, 1)[0]) >= len(records), what="the rest")
        time.sleep(1)
    assert_same_records([records], read_all(destination, topic, 1))


@pytest.mark.parametrize("open_at_end", [False, True])
def test_a_tool_that_has_copied_aborted_records_is_taken_over_after_them(
    clusters: Any, link: str, topic: str, tmp_path: Path, open_at_end: bool
) -> None:
    """As MirrorMaker 2 does by default. The last records of the copy are aborted ones, or of a transaction that is
    committed later. Nothing was stored."""
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic)
    producer = Transactions(source, f"{topic}-source", topic, 1)
    for number in range(6):
        producer.begin()
        producer.write(5)
        if number < 5 or not open_at_end:
            producer.end(commit=number % 3 == 0)
    raw = list(
        read_ranges(source.client_properties, "source", {TopicPartition(topic, 0): (0, sys.maxsize)}, committed=False)
    )
    assert len(raw) == 30
    copier = Producer(destination.client_properties)
    for record in raw:
        copier.produce(
            topic, record.value(), record.key(), 0, timestamp=record.timestamp()[1], headers=record.headers() or []
        )
    assert copier.flush(30) == 0
    strait = CommandLine(tmp_path, links := settings(source, destination, link))
    (tmp_path / "stored.csv").write_text(f"{topic},0,\n")
    (move,) = strait.moves("stored.csv")
    assert (move["verdict"], move["start"]) == ("imported", raw[-1].offset() + 1)
    assert "records of aborted or open transactions" in move["detail"]
    if open_at_end:
        producer.end(commit=True)
    producer.begin()
    producer.write(5)
    producer.end(commit=True)
    with Control(parse(links, where="links file"), link) as control, copying(control, tmp_path):
        eventually(lambda: len(read_all(destination, topic, 1)[0]) >= 35, what="the rest")
    copied = [record.key for record in read_all(destination, topic, 1)[0]]
    assert copied[:30] == [record.key() for record in raw]
    assert copied[30:] == [record.key for record in read_all(source, topic, 1)[0]][-5:]


def test_a_copy_that_does_not_tell_is_refused_unless_forced_with_a_reason_that_is_kept(
    clusters: Any, link: str, topic: str, tmp_path: Path
) -> None:
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic)
    write(source, topic, range(100))
    write(destination, topic, range(5000, 5010))  # of somebody else
    strait = CommandLine(tmp_path, links := settings(source, destination, link))
    (tmp_path / "stored.csv").write_text(f"mirus,{topic},0,60\n")
    (refused,) = strait.moves("stored.csv", code=1)
    assert refused["verdict"] == "refused"
    assert "no source record" in refused["detail"]
    strait("import", "stored.csv", "--force", code=2)
    (forced,) = strait.moves("stored.csv", "--force", "--reason", "compared by hand")
    assert (forced["start"], forced["verdict"]) == (60, "imported")
    lost = subprocess.run(
        [Path(sys.executable).with_name("strait"), "losses", "-o", "json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    (loss,) = json.loads(lost.stdout)
    assert (loss["cause"], loss["from_offset"]) == ("start_forced", 60)
    assert "compared by hand" in loss["detail"]
    write(destination, topic, range(6000, 6001))  # the other tool writes on
    with Control(parse(links, where="links file"), link) as control, copying(control, tmp_path):
        halted = Reason.FOREIGN_WRITER
        eventually(lambda: {row.reason for row in control.status().partitions} == {halted}, what="it halts")
    assert ends(destination, topic, 1) == [11]


def test_a_copy_that_still_grows_is_refused(clusters: Any, link: str, topic: str, tmp_path: Path) -> None:
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic)
    write(source, topic, range(100))
    copied_by_hand(source, destination, topic, range(50))
    strait = CommandLine(tmp_path, settings(source, destination, link))
    (tmp_path / "stored.json").write_text(json.dumps({"topic": topic, "partition": 0, "offset": 40}))
    stop = threading.Event()

    def go_on() -> None:
        for number in range(50, 100):
            if not stop.wait(0.5):
                copied_by_hand(source, destination, topic, range(number, number + 1))

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        (move,) = strait.moves("stored.json", "--force", "--reason", "none", code=1)
    finally:
        stop.set()
        thread.join()
    assert move["verdict"] == "refused"
    assert "grows" in move["detail"]


def test_records_that_the_other_tool_has_copied_twice_are_not_copied_again(
    clusters: Any, link: str, topic: str, tmp_path: Path
) -> None:
    """It was started again and killed before it came to where it had been before."""
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic)
    write(source, topic, range(100))
    copied_by_hand(source, destination, topic, range(80))
    copied_by_hand(source, destination, topic, range(70, 75))
    strait = CommandLine(tmp_path, links := settings(source, destination, link))
    (tmp_path / "stored.csv").write_text(f"topic,partition,offset\n{topic},0,70\n")
    (move,) = strait.moves("stored.csv")
    assert move["start"] == 80
    with Control(parse(links, where="links file"), link) as control, copying(control, tmp_path):
        eventually(lambda: ends(destination, topic, 1) == [105], what="the rest")
        time.sleep(1)
    keys = [record.key for record in read_all(destination, topic, 1)[0]]
    assert keys == [f"key {number}".encode() for number in (*range(80), *range(70, 75), *range(80, 100))]


@pytest.mark.parametrize("restarts", [[range(4000), range(10, 1500)], [range(4000), range(3000), range(10, 1500)]])
def test_what_a_tool_copied_before_its_restart_is_found_however_far_back_it_lies(
    clusters: Any, link: str, topic: str, tmp_path: Path, restarts: list[range]
) -> None:
    """It had stored no position for long, began there again, and was stopped long before it came to where it had been:
    the copy's last hundred records alone say 1,500."""
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic)
    write(source, topic, range(5000))
    for numbers in restarts:
        copied_by_hand(source, destination, topic, numbers)
    strait = CommandLine(tmp_path, settings(source, destination, link))
    (tmp_path / "stored.csv").write_text(f"{topic},0,1500\n")
    (move,) = strait.moves("stored.csv", "--dry-run")
    assert (move["verdict"], move["start"]) == ("ready", 4000)
    assert "twice" in move["detail"]


def test_what_is_too_far_back_to_be_compared_is_refused_and_can_be_forced(
    clusters: Any, link: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic)
    write(source, topic, range(1000))
    copied_by_hand(source, destination, topic, range(900))
    copied_by_hand(source, destination, topic, range(500))
    monkeypatch.setattr("strait.control.copy_ends.MOST_AGAIN", 800)
    file = parse(settings(source, destination, link), where="links file")
    stored = {TopicPartition(topic, 0): 500}
    (refused,) = MoveIn(ConfiguredLink.of(file, link)).propose(stored)
    assert (refused.verdict, refused.start) == ("refused", None)
    assert "from destination offset 500 on" in refused.detail
    (forced,) = MoveIn(ConfiguredLink.of(file, link)).propose(stored, force=True)
    assert (forced.verdict, forced.start) == ("ready", 500)


def test_what_another_tool_has_copied_does_not_come_back_by_a_link_in_the_other_direction(
    clusters: Any, link: str, topic: str, tmp_path: Path
) -> None:
    """Under the same name, as the README shows two-way links. Its producers are in no register."""
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic)
    write(source, topic, range(1000))
    copied_by_hand(source, destination, topic, range(800))
    rules = {"include": [topic], "rules": [{"match": topic, "on_foreign": "expect"}]}
    links = settings(source, destination, link, topics=rules)
    back = f"{link}-back"
    links["links"][back] = {"source": "destination", "destination": "source", "topics": rules}
    strait = CommandLine(tmp_path, links)
    (tmp_path / "stored.csv").write_text(f"{topic},0,700\n")
    assert strait.moves(link, "stored.csv")[0]["start"] == 800
    assert strait.moves(link, "stored.csv")[0]["verdict"] == "already"
    file = parse(links, where="links file")
    with Control(file, link) as there, Control(file, back) as again:
        shown = again.show(again.propose())
        assert [effect.detail for effect in shown.shown if effect.verb == "copies"] == [
            "from earliest, after the records that another tool replicated"
        ]
        assert f"moved_in: another tool replicated the records of {topic}-0 before offset 800" in shown.text
        assert "backfill" not in shown.text
        with copying(there, tmp_path / "there"), copying(again, tmp_path / "back"):
            write(destination, topic, range(5000, 5050))
            eventually(lambda: ends(source, topic, 1) == [1050] == ends(destination, topic, 1), what="both have all")
            write(source, topic, range(1000, 1010))  # what comes by now has passed whatever came before it
            write(destination, topic, range(5050, 5060))
            eventually(
                lambda: min(ends(source, topic, 1) + ends(destination, topic, 1)) >= 1070, what="and what is new"
            )
    for cluster in (source, destination):
        keys = [record.key for record in read_all(cluster, topic, 1)[0]]
        assert sorted(keys) == sorted(f"key {number}".encode() for number in (*range(1010), *range(5000, 5060)))
