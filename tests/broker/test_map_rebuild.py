"""A link's map topic is deleted. Rebuilt from both logs it translates every offset as before, or calls it unknown; never
otherwise. Then the link continues."""

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config import naming
from strait.config.links import parse
from strait.control.pausing import set_stopped
from strait.control.plane import Control
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.schema import Loss, TopicPolicy
from strait.state.translation import Fit
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_same_records, read_all
from support.kafka.topics import create, delete, exists
from support.kafka.transactions import Transactions, small_transactions
from support.links.copying import copying
from support.links.engine_link import EngineLink
from support.links.mesh import Mesh
from support.links.moving import settings
from support.links.rebuilding import (
    Answer,
    Rebuild,
    answers,
    answers_of,
    assert_exact,
    assert_never_late,
    expire,
    reasons,
)

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
PARTITIONS = 3
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
}


def stop(link: EngineLink, slot: "subprocess.Popen[bytes]", **settings: Any) -> None:
    link.publish(stopped=True, **settings)
    slot.wait(60)


def lose_map(link: EngineLink) -> None:
    delete(link.destination, naming.map_topic(link.name))


def copy_more(link: EngineLink, topic: str, seed: int) -> None:
    """The link is started, copies what is new, and is stopped."""
    link.publish()  # else the slot may find that it is stopped, and end
    slot = link.start_slot()
    with small_transactions(link, topic, 20, seed=seed):
        pass
    link.until_seen()
    stop(link, slot)


def test_every_offset_translates_as_before_the_loss_and_the_link_continues(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    """Transactions, aborted ones, tiny batches that were merged, large ones that were passed on, and slots that were
    killed: they leave neither checkpoints nor reports."""
    link = make_link(topics={topic_name: PARTITIONS})
    link.make_topics()
    link.publish()
    plain = Producer(link.source.client_properties | {"linger.ms": 50, "compression.type": "lz4"})
    for seed in range(3):
        slot = link.start_slot()
        with small_transactions(link, topic_name, 30, seed=seed):
            pass
        for number in range(900):
            plain.produce(topic_name, b"value %d" % number, b"%d-%d" % (seed, number), number % PARTITIONS)
        assert plain.flush(60) == 0
        link.until_seen()
        if seed < 2:
            link.kill(slot)
    strait = Rebuild(tmp_path, link.settings)
    assert "strait stop" in strait(code=2), "it is refused while the link replicates"
    stop(link, slot)
    before = answers_of(link, topic_name)
    assert_exact(before)
    assert {row["verdict"] for row in strait.partitions()} == {"kept"}
    lose_map(link)
    assert {answer.fit for answer in answers_of(link, topic_name).values()} == {Fit.NOT_REPLICATED}

    tried = strait.partitions("--dry-run")
    assert [row["verdict"] for row in tried] == ["ready"] * PARTITIONS
    assert not exists(link.destination, naming.map_topic(link.name))
    assert "written" not in strait(code=1, typed="n\n"), "it asks first"
    assert not exists(link.destination, naming.map_topic(link.name))
    done = strait.partitions("--yes")
    assert [row | {"verdict": "ready"} for row in done] == tried
    assert [row["verdict"] for row in done] == ["written"] * PARTITIONS
    assert all(row["unknown"] == [] for row in done)
    assert sum(row["records"] for row in done) == link.copied()
    assert answers_of(link, topic_name) == before

    copy_more(link, topic_name, seed=3)
    link.assert_same_records()
    assert link.losses() == ()
    after = answers_of(link, topic_name)
    assert before.items() <= after.items()
    assert_exact(after)
    assert len(after) > len(before) + 100
    strait("--all", "--yes")
    assert answers_of(link, topic_name) == after
    assert max(len(link.runs(topic_name, number)) for number in range(PARTITIONS)) == 1


def test_records_that_were_rebuilt_are_matched_one_by_one(make_link: MakeLink, topic_name: str, tmp_path: Path) -> None:
    """The source stamps them, so no batch has the same bytes on both sides; many are equal but for their time, and some
    wholly. All of the last batch are. The third partition is empty."""
    link = make_link(topics={topic_name: 3})
    link.make_topics(source_configs={"message.timestamp.type": "LogAppendTime"})
    link.publish()
    slot = link.start_slot()
    writer = Transactions(link.source, topic_name, topic_name, 2)
    plain = Producer(link.source.client_properties | {"linger.ms": 20})
    for turn in range(12):
        for number in range(40):
            plain.produce(topic_name, b"same", b"same", number % 2)
        assert plain.flush(60) == 0
        writer.begin()
        writer.write(4)
        writer.end(turn % 2 == 0)
    for _ in range(10):
        plain.produce(topic_name, b"last", None, 0)
    assert plain.flush(60) == 0
    link.until_seen()
    stop(link, slot)
    before = answers_of(link, topic_name)
    lose_map(link)
    done = Rebuild(tmp_path, link.settings).partitions("--yes")
    assert [row["verdict"] for row in done] == ["written"] * 3
    after = answers_of(link, topic_name)
    assert after == before


def test_where_the_source_has_expired_just_that_is_unknown(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    with small_transactions(link, topic_name, 80, seed=7):
        pass
    link.until_seen()
    stop(link, slot)
    (written,) = read_all(link.source, topic_name, 1)
    half = range(len(written) // 2, len(written))
    first = next(written[at].offset for at in half if written[at].offset > written[at - 1].offset + 1)
    expire(link.source, topic_name, first)
    before = answers_of(link, topic_name)
    lose_map(link)
    (row,) = Rebuild(tmp_path, link.settings).partitions("--yes")
    expired = sum(record.offset < first for record in written)
    assert (row["verdict"], row["records"]) == ("written", len(written) - expired)
    (unknown,) = row["unknown"]
    assert (unknown["copy_from"], unknown["copy_to"], unknown["records"]) == (0, expired, expired)
    assert "no longer holds" in unknown["reason"]

    after = answers_of(link, topic_name)
    assert after.keys() == before.keys()
    differing = {asked for asked in after if after[asked] != before[asked]}
    assert {after[asked] for asked in differing} == {Answer(None, Fit.UNKNOWN)}
    assert {asked for asked in differing if asked[0] == "to"} == {
        asked for asked in before if asked[0] == "to" and asked[2] < first
    }
    assert not [asked for asked in differing if asked[0] == "back"], "deleted there, as before"
    assert len(differing) == first

    copy_more(link, topic_name, seed=8)
    (rest,), (copied,) = read_all(link.source, topic_name, 1), read_all(link.destination, topic_name, 1)
    assert_same_records([rest], [copied[expired:]])
    later = answers_of(link, topic_name)
    known = {asked for asked in after if asked[2] > 0 and later[asked] != after[asked]}
    assert all(way == "to" and offset < first for way, _, offset in known)
    # Now that it is known where the source begins: what was deleted there goes on at its first record, on both sides.
    assert {later[asked] for asked in known} <= {Answer(expired, Fit.EXACT)}
    assert link.losses() == ()


def test_where_the_destination_has_expired_results_are_what_is_left(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    """Numbers do not begin at 0 there. Nothing shows where the source holds the records before."""
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    with small_transactions(link, topic_name, 60, seed=9):
        pass
    link.until_seen()
    stop(link, slot)
    expire(link.destination, topic_name, 40)
    before = answers_of(link, topic_name)
    lose_map(link)
    (row,) = Rebuild(tmp_path, link.settings).partitions("--yes")
    assert (row["verdict"], row["unknown"]) == ("written", [])
    after = answers_of(link, topic_name)
    for asked, answer in before.items():
        if asked[0] == "to":
            assert after[asked].offset == answer.offset, asked
        else:
            assert after[asked] in (answer, Answer(None, Fit.UNKNOWN)), asked
            assert after[asked] == answer or asked[2] <= 40, asked
    copy_more(link, topic_name, seed=10)
    (written,), (copied,) = read_all(link.source, topic_name, 1), read_all(link.destination, topic_name, 1)
    assert_same_records([written[40:]], [copied])


def test_a_position_that_nothing_shows_is_not_written(make_link: MakeLink, topic_name: str, tmp_path: Path) -> None:
    """All that was copied has expired, or equal records stand at both places where the last one can be: continuing
    would be a guess."""
    topics = {topic_name: 1, f"{topic_name}-equal": 1}
    link = make_link(topics=topics)
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    producer = Producer(link.source.client_properties | {"linger.ms": 20})
    for number in range(50):
        producer.produce(topic_name, b"%d" % number, partition=0)
    for _ in range(50):
        producer.produce(f"{topic_name}-equal", b"equal", partition=0, timestamp=1_700_000_000_000)
    assert producer.flush(60) == 0
    link.until_seen()
    stop(link, slot)
    for number in range(50, 60):
        producer.produce(topic_name, b"%d" % number, partition=0)
        producer.produce(f"{topic_name}-equal", b"equal", partition=0, timestamp=1_700_000_000_000)
    assert producer.flush(60) == 0
    expire(link.source, topic_name, 50)
    lose_map(link)
    expired, equal = Rebuild(tmp_path, link.settings).partitions("--yes", code=1)
    assert expired["verdict"] == equal["verdict"] == "refused"
    assert "no longer holds" in expired["detail"]
    assert "several assignments" in equal["detail"]
    assert not exists(link.destination, naming.map_topic(link.name))


def test_without_timestamps_an_equal_record_that_came_later_is_not_taken_for_the_copied_one(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    """Brokers stamp all records. What was copied has expired, and the last record came again after one that was not
    copied: continuing after it would lose that one."""
    stamped = {"message.timestamp.type": "LogAppendTime"}
    policy = TopicPolicy(source_append_time=True, destination_append_time=True)
    link = make_link(topics={topic_name: 1}, policy=policy)
    link.make_topics(source_configs=stamped, destination_configs=stamped)
    link.publish()
    slot = link.start_slot()
    producer = Producer(link.source.client_properties)
    for value in (b"first", b"again"):
        producer.produce(topic_name, value, partition=0)
        assert producer.flush(60) == 0
    link.until_seen()
    stop(link, slot)
    for value in (b"not copied", b"again"):
        producer.produce(topic_name, value, partition=0)
        assert producer.flush(60) == 0
    expire(link.source, topic_name, 2)
    lose_map(link)
    (row,) = Rebuild(tmp_path, link.settings).partitions("--yes", code=1)
    assert row["verdict"] == "refused"


def test_records_of_a_dropped_tail_are_not_taken_for_copied_ones(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    """Records after the first were dropped; equal ones were copied later. Where the last one is on the source cannot be
    told then. Of the other partition the tail after the last record was dropped."""
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    producer = Producer(link.source.client_properties)
    for number in range(2):
        producer.produce(topic_name, b"first", partition=number)
    assert producer.flush(60) == 0
    link.until_seen()
    stop(link, slot)
    for number in (0, 0, 1, 1):
        producer.produce(topic_name, b"equal", partition=number, timestamp=1_700_000_000_000)
    assert producer.flush(60) == 0
    publisher = ControlPublisher(link.destination.client_properties, "b", link.name)
    with StateReader(link.destination.client_properties, "b", link.name) as state, publisher.exclusive(state) as words:
        tails = [
            Loss(
                link=link.name, topic=topic_name, partition=number, side="source", cause=Reason.TAIL_DROPPED,
                from_offset=1, to_offset=3, at_ms=0, action="continued", detail="dropped",
            )
            for number in range(2)
        ]  # fmt: skip
        runs = [
            run.model_copy(update={"sequence_base": 1, "source_base": 3, "destination_base": 1, "sequence_end": 1})
            for number in range(2)
            for run in state.runs[topic_name, number][:1]
        ]
        words.publish((), runs, tails, ())
    producer.produce(topic_name, b"equal", partition=0, timestamp=1_700_000_000_000)
    assert producer.flush(60) == 0
    link.publish()
    slot = link.start_slot()
    eventually(lambda: ends(link.destination, topic_name, 2) == [2, 1], what="what came after the tail is copied")
    stop(link, slot)
    lose_map(link)
    inside, after = Rebuild(tmp_path, link.settings).partitions("--yes", code=1)
    assert inside["verdict"] == "refused"
    assert "several assignments" in inside["detail"]
    assert (after["verdict"], after["position"]) == ("written", 1)
    assert "offsets 1 to 2 were dropped" in after["detail"]


def test_a_history_that_begins_elsewhere_on_both_sides(clusters: Any, topic_name: str, tmp_path: Path) -> None:
    """The link began in the middle of the source, under another name, and its plan comes from the control plane."""
    source, destination = clusters.source, clusters.destination
    link = "m" + topic_name[-8:]
    topic, copy = f"{link}-orders", f"eu.{link}-orders"
    links = settings(source, destination, link, naming={"policy": "prefix", "prefix": "eu."}, start={0: 40, 1: 7})
    create(source, topic, 2)

    def write(numbers: range) -> None:
        producer = Producer(source.client_properties | {"linger.ms": 5})
        for number in numbers:
            producer.produce(topic, b"%d" % number, b"key %d" % number, number % 2)
        assert producer.flush(30) == 0

    write(range(200))
    file = parse(links, where="links file")
    with Control(file, link) as control, copying(control, tmp_path):
        eventually(lambda: exists(destination, copy) and ends(destination, copy, 2) == [60, 93], what="the copy")
    set_stopped(ConfiguredLink.of(file, link), stopped=True, by="a test")
    logs = ends(source, topic, 2), ends(destination, copy, 2)
    before = answers(links, link, topic, copy, *logs)
    assert {answer.fit for answer in before.values()} == {Fit.EXACT, Fit.BEFORE_START}
    delete(destination, naming.map_topic(link))
    set_stopped(ConfiguredLink.of(file, link), stopped=False, by="a test")
    write(range(200, 202))
    with Control(file, link) as control, copying(control, tmp_path):
        eventually(lambda: reasons(links, link) == {Reason.MAP_RUN_MISSING}, what="it does not guess")
    set_stopped(ConfiguredLink.of(file, link), stopped=True, by="a test")
    assert ends(destination, copy, 2) == logs[1]
    done = Rebuild(tmp_path, links).partitions("--yes")
    assert [(row["verdict"], row["position"]) for row in done] == [("written", 100), ("written", 100)]
    assert answers(links, link, topic, copy, *logs) == before
    set_stopped(ConfiguredLink.of(file, link), stopped=False, by="a test")
    write(range(202, 300))
    with Control(file, link) as control:
        with copying(control, tmp_path):
            eventually(lambda: ends(destination, copy, 2) == [110, 143], what="it continues")
        written, copied = read_all(source, topic, 2), read_all(destination, copy, 2)
        assert_same_records([written[0][40:], written[1][7:]], copied)
        assert not control.apply().plan.waiting


def test_of_a_compacted_source_what_is_left_is_exact_and_the_rest_unknown(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    """The cleaner removes records on the source alone. The last record is always there."""
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(source_compacted=True))
    link.make_topics(source_configs=COMPACTED)
    link.publish()
    slot = link.start_slot()
    producer = Producer(link.source.client_properties | {"linger.ms": 20})
    for turn in range(6):
        for number in range(60):
            producer.produce(topic_name, b"%d-%d" % (turn, number), b"key %d" % (number % (10 + turn)), 0)
        assert producer.flush(60) == 0
        link.until_seen()
    stop(link, slot)
    copied, before = link.copied(), answers_of(link, topic_name)
    producer.produce(topic_name, b"a new segment", b"last", 0)
    assert producer.flush(60) == 0
    eventually(lambda: len(read_all(link.source, topic_name, 1)[0]) < copied // 2, what="it is compacted")
    lose_map(link)
    (row,) = Rebuild(tmp_path, link.settings).partitions("--yes")
    assert row["verdict"] == "written"
    assert 0 < row["records"] < copied
    assert row["records"] + sum(part["records"] for part in row["unknown"]) == copied
    after = answers_of(link, topic_name)
    for asked, answer in before.items():
        if answer.fit == Fit.EXACT:
            assert after[asked] == answer or after[asked].fit in (Fit.UNKNOWN, Fit.AHEAD), asked
    exact = [asked for asked, answer in after.items() if answer.fit == Fit.EXACT]
    assert len(exact) > row["records"]


@pytest.mark.parametrize("kept", [40, 0])
def test_of_a_compacted_topic_in_use_all_after_the_newest_exact_record_is_copied_again(
    make_link: MakeLink, topic_name: str, tmp_path: Path, kept: int
) -> None:
    """While the link was stopped, the source has compacted away what it had copied last, or all of it. Others write into
    the copy, so it cannot be made anew."""
    policy = TopicPolicy(source_compacted=True, on_foreign="expect")
    link = make_link(topics={topic_name: 1}, policy=policy)
    link.make_topics(source_configs=COMPACTED)
    link.publish()
    slot = link.start_slot()
    producer = Producer(link.source.client_properties | {"linger.ms": 20})

    def write(what: str, numbers: range, keys: int) -> None:
        for number in numbers:
            producer.produce(topic_name, f"{what} {number}", f"{what} {number % keys}", 0)
        assert producer.flush(60) == 0

    write("kept", range(kept), 100)
    write("hot", range(60), 10)
    link.until_seen()
    stop(link, slot)
    foreign = Producer(link.destination.client_properties)
    foreign.produce(topic_name, b"foreign", b"foreign", 0)
    assert foreign.flush(30) == 0
    write("hot", range(100, 130), 10)

    def values(of: Any) -> list[str]:
        return [(record.value or b"").decode() for record in read_all(of, topic_name, 1)[0]]

    copied = {f"hot {number}" for number in range(60)}

    def compacted() -> bool:
        write("last", range(1), 1)  # into a new segment, so that the cleaner takes the one before
        return not copied & set(values(link.source))

    eventually(compacted, what="the source has compacted it away")
    lose_map(link)
    tried = Rebuild(tmp_path, link.settings).partitions("--dry-run")
    (row,) = Rebuild(tmp_path, link.settings).partitions("--yes")
    assert [row | {"verdict": "ready"}] == tried
    assert (row["verdict"], row["records"], row["again"]) == ("written", kept, [kept, kept + 60])
    assert row["position"] <= kept if kept == 0 else row["position"] == kept
    assert "compacted the last record away" in row["detail"]
    (loss,) = link.losses()
    assert (loss.cause, loss.action, loss.side) == ("position_unverified", "restarted", "destination")
    assert (loss.from_offset, loss.to_offset) == (kept, kept + 60)

    link.publish()
    slot = link.start_slot()
    write("hot", range(200, 205), 10)
    eventually(lambda: "hot 204" in values(link.destination), what=lambda: f"the link continues: {link.log()}")
    here, there = read_all(link.source, topic_name, 1)[0], read_all(link.destination, topic_name, 1)[0]
    latest = {record.key: record.value for record in there}
    assert {record.key: record.value for record in here}.items() <= latest.items()
    assert latest[b"foreign"] == b"foreign"
    counted = Counter(values(link.destination))
    assert all(counted[f"kept {number}"] == 1 for number in range(kept))
    assert all(counted[f"hot {number}"] == 1 for number in (*range(60), *range(200, 205)))
    assert [loss.cause for loss in link.losses()] == ["position_unverified"]
    stop(link, slot)
    (row,) = Rebuild(tmp_path, link.settings).partitions("--all", "--dry-run")
    assert row["verdict"] == "ready" and row["again"] is None


def test_among_other_producers_the_map_is_exact_or_says_that_it_is_not(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(on_foreign="expect"))
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    writer = Transactions(link.source, topic_name, topic_name, 1)
    foreign = Producer(link.destination.client_properties)
    for turn in range(10):
        writer.begin()
        writer.write(6)
        writer.end(turn % 3 != 0)
        link.until_seen()
        foreign.produce(topic_name, b"theirs", b"foreign %d" % turn, partition=0)
        assert foreign.flush(30) == 0
    stop(link, slot)
    before = answers_of(link, topic_name)
    lose_map(link)
    (row,) = Rebuild(tmp_path, link.settings).partitions("--yes")
    assert (row["verdict"], row["unknown"]) == ("written", [])
    (written,), (found,) = read_all(link.source, topic_name, 1), read_all(link.destination, topic_name, 1)
    there = [record.offset for record in written]
    copied = [record.offset for record in found if not (record.key or b"").startswith(b"foreign")]
    after = answers_of(link, topic_name)
    assert_never_late(after, 0, there, copied)
    counted, earlier = (Counter(answer.fit for answer in of.values())[Fit.EXACT] for of in (after, before))
    assert counted >= min(earlier, 5)


def test_of_a_two_way_link_only_its_own_records_are_matched(
    make_mesh: Callable[..., Mesh], topic_name: str, tmp_path: Path
) -> None:
    """Both links copy into a topic of one name, and neither copies back what the other one wrote."""
    there, back = ("a", "b"), ("b", "a")
    mesh = make_mesh(links=[there, back])
    for link in (there, back):
        mesh.start(link)
    with mesh.writing(rounds=5, records=40, pause_seconds=0.3):
        pass
    mesh.until_everywhere()
    mesh.kill(there)
    name = mesh.name(there)
    set_stopped(ConfiguredLink.of(mesh.file, name), stopped=True, by="a test")
    delete(mesh.clusters["b"], naming.map_topic(name))
    clusters = {end: dict(cluster.client_properties) for end, cluster in mesh.clusters.items()}
    of_link = {"source": "a", "destination": "b", "topics": {"include": [topic_name]}}
    links = {"clusters": clusters, "links": {name: of_link}}
    rows = Rebuild(tmp_path, links).partitions("--yes")
    assert [(row["verdict"], row["unknown"]) for row in rows] == [("written", [])] * mesh.partitions
    assert sum(row["records"] for row in rows) == mesh.born["a"]
    logs = [ends(mesh.clusters[end], topic_name, mesh.partitions) for end in ("a", "b")]
    after = answers(links, name, topic_name, topic_name, *logs)
    both = [read_all(mesh.clusters[end], topic_name, mesh.partitions) for end in ("a", "b")]
    for number in range(mesh.partitions):
        born, copied = (
            [record.offset for record in of[number] if (record.value or b"").startswith(b"a ")] for of in both
        )
        assert_never_late(after, number, born, copied)
    set_stopped(ConfiguredLink.of(mesh.file, name), stopped=False, by="a test")
    mesh.start(there)
    for end in ("a", "b"):
        mesh.write(end, 50)
    mesh.until_everywhere()
    mesh.assert_each_once()
