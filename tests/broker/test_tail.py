"""A source is lost with records that were never copied, and comes back: they are named, and exported, each once."""

import base64
import json
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from strait.cli.main import app
from strait.control.failover import failover as failovers
from strait.control.failover.turn import Settings
from strait.control.link_status import link_groups
from strait.control.pausing import pause, resume, set_stopped
from strait.control.tail import TailReader
from strait.control.tail_drop import require_at_rest
from strait.control.tail_export import TopicExport
from strait.embedded.kafka import Cluster
from strait.errors import PlanConflict
from strait.kafka.admin import Admin, NewTopic
from strait.planning.plan.pauses import Scope
from strait.planning.tail import TailPart
from strait.state.link_handle import ConfiguredLink
from strait.state.tail_records import TailRecord
from strait.state.translation import Translator
from strait.state.writer import StateWriter
from strait.text import plural
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import Record, read_all
from support.kafka.transactions import Transactions
from support.links.mesh import Mesh

pytestmark = pytest.mark.broker

THERE, BACK = ("a", "b"), ("b", "a")
PARTITIONS = 2
DISASTER = Settings(by="a test", timeout_seconds=60.0)
BYTES = b"\xff\x00 no text"


class Site:
    """Two links in opposite directions, of which the first one's source is lost and comes back."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.topic = mesh.topic
        self.link = mesh.name(THERE)
        self._path = mesh.folder / "links.yaml"
        settings = {"topics": {"include": [self.topic], "rules": [{"match": ".*", "on_foreign": "expect"}]}}
        links = {mesh.name(pair): settings | {"source": pair[0], "destination": pair[1]} for pair in (THERE, BACK)}
        clusters = {name: dict(cluster.client_properties) for name, cluster in mesh.clusters.items()}
        self._path.write_text(yaml.safe_dump({"clusters": clusters, "links": links}))

    @property
    def handle(self) -> ConfiguredLink:
        return self.mesh.handle(THERE)

    def command(self, *words: str, code: int = 0) -> str:
        """What a command writes to standard output, or where it fails, its error."""
        done = CliRunner().invoke(app, [*words, "--link", self.link, "-f", str(self._path)])
        error = "" if done.exception is None or isinstance(done.exception, SystemExit) else str(done.exception)
        assert (done.exit_code == code) or (code and error), f"{done.output}{error}"
        return done.stdout if not code else done.output + error

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.command(*words, "-o", "json", code=code))

    def named(self, *words: str) -> list[dict[str, Any]]:
        """The records that the list names."""
        lines = self.command("tail", "list", "--records", "-o", "json", *words).splitlines()
        return [json.loads(line) for line in lines]

    def write(self, name: str, records: int, first: int = 0, to: str = "a") -> None:
        """Plain records, round the partitions, each unlike any other, with keys and headers of every kind."""
        producer = Producer(self.mesh.clusters[to].client_properties | {"linger.ms": 0})
        for number in range(first, first + records):
            key = (None, b"key %d" % number, BYTES + b"%d" % number)[number % 3]
            headers = [("n", b"%d" % number), ("null", None), ("n", BYTES)] if number % 2 else None
            producer.produce(self.topic, f"{name} {number}", key, number % PARTITIONS, headers=headers)
            producer.flush(30)

    def pause(self, partition: int | None = None) -> None:
        """Returns when the slot copies it no more."""
        pause(self.handle, Scope(self.topic, partition), by="a test", reason="")
        self.until_state(partition, "waiting")

    def until_state(self, partition: int | None, *states: str) -> None:
        def held() -> bool:
            rows = [row for row in link_groups(self.handle).rows if partition in (None, row.partition)]
            return bool(rows) and all(row.state in states for row in rows)

        eventually(held, what=lambda: f"{states}: {link_groups(self.handle).rows} {self.mesh.log()}")

    def until_copied(self, partition: int) -> None:
        """All that can be read of it on a has come to b."""

        def held() -> bool:
            one, other = (self.read(name)[partition] for name in THERE)
            return len(one) == len(other)

        eventually(held, what=lambda: f"partition {partition} is copied: {self.mesh.log()}")

    def read(self, name: str) -> list[list[Record]]:
        return read_all(self.mesh.clusters[name], self.topic, PARTITIONS)

    def missing(self) -> dict[tuple[int, int], Record]:
        """By what both clusters hold: partition and offset on a of each record that is not on b."""
        there = {record.value for records in self.read("b") for record in records}  # each value is there once
        return {
            (partition, record.offset): record
            for partition, records in enumerate(self.read("a"))
            for record in records
            if record.value not in there
        }

    @contextmanager
    def forgotten_on_b(self) -> Iterator[None]:
        """As if b's brokers had forgotten the link's producer ID, which they do after a day without a record."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("strait.control.resumption.active_producers", lambda *_: defaultdict(list))
            yield

    def promise(self, partition: int, number: int, offset: int, written: int | None = None) -> None:
        """What a slot writes before it sends a record, here its last word: its next record is at that source offset.
        Or if so many records are ``written``, what it writes then."""
        run = self.mesh.runs(THERE)[partition][-1]
        at = {
            "sequence_base": number,
            "sequence_end": written or number,
            "source_base": offset,
            "destination_base": number,
        }
        failed: list[object] = []
        writer = StateWriter(self.mesh.clusters["b"].client_properties, "b", self.link)
        writer.write_run(run.model_copy(update={**at, "gaps": ""}), failed.append)
        assert writer.flush(60) and failed == [None]

    def lose(self) -> None:
        """The source, and fail over."""
        self.mesh.clusters["a"].stop()
        record = failovers.run(self.handle, "unplanned", DISASTER, lambda _: None)
        assert record.outcome == "done"

    def come_back(self) -> None:
        """The source, and the link in the opposite direction brings what was written to b meanwhile."""
        self.mesh.clusters["a"].start()
        self.mesh.start(BACK)


@pytest.fixture
def make_site(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """With a source of its own, since it is lost."""
    source = Cluster(tmp_path / "source")
    source.start()
    both = {"a": source, "b": clusters.destination}
    made: list[Mesh] = []

    def make(**settings: Any) -> Site:
        mesh = Mesh(clusters=both, links=[THERE, BACK], topic=topic_name, folder=tmp_path, **settings)
        made.append(mesh)
        mesh.make_topics()
        site = Site(mesh)
        mesh.start(THERE)
        site.until_state(None, "caught_up")
        return site

    try:
        yield make
    finally:
        for mesh in made:
            mesh.stop()
        source.stop()


def text(data: bytes | None, line: dict[str, Any], name: str) -> bool:
    """Whether a line of JSON has just these bytes under a name."""
    if data is None:
        return line[name] is None
    if name in line:
        return bool(line[name].encode() == data)
    return base64.b64decode(line[f"{name}_base64"]) == data


@pytest.mark.core
def test_what_was_never_copied_is_named_and_exported_and_nothing_else(
    make_site: Callable[..., Site], tmp_path: Path
) -> None:
    """Each partition stops elsewhere; markers, an aborted transaction and copies from b lie in the tail."""
    site = make_site()
    mesh, topic = site.mesh, site.topic
    writer = Transactions(mesh.clusters["a"], f"{topic}-writer", topic, PARTITIONS)
    site.write("early", 40)
    for partition in range(PARTITIONS):
        site.until_copied(partition)
    assert f"link {site.link}: the destination has every record of" in site.command("tail", "list")
    site.pause(1)
    site.write("middle", 20)
    site.until_copied(0)
    site.pause()
    for number, commit in enumerate((True, False, True)):
        writer.begin()
        writer.write(6, payload=b"%d %s " % (number, b"commit" if commit else b"abort"))
        writer.end(commit)
        site.write(f"late {number}", 4)
    expected = site.missing()
    assert len({partition for partition, _ in expected}) == PARTITIONS
    assert len(expected) == 10 + 3 * 4 + 2 * 6, sorted(expected)
    site.lose()
    site.write("on b", 30, to="b")
    site.come_back()
    eventually(lambda: len(site.read("a")[0]) + len(site.read("a")[1]) >= 60 + 24 + 30, what="b's records come to a")
    assert site.missing().keys() == expected.keys()

    found = site.json("tail", "list")
    assert found["stopped"]
    rows = {row["partition"]: row for row in found["partitions"]}
    for partition in range(PARTITIONS):
        mine = {at[1]: record for at, record in expected.items() if at[0] == partition}
        row = rows[partition]
        assert (row["records"], row["exact"]) == (len(mine), True)
        assert row["from_offset"] <= min(mine) and row["to_offset"] > max(mine)
        times = [record.timestamp[1] for record in mine.values()]
        assert (row["first_ms"], row["last_ms"]) == (min(times), max(times))
    named = site.named()
    assert sorted((one["partition"], one["offset"]) for one in named) == sorted(expected)
    assert all(text(expected[one["partition"], one["offset"]].key, one, "key") for one in named)
    assert [one for one in named if one["partition"] == 1] == site.named("--topic", topic, "--partition", "1")
    with site.forgotten_on_b():
        assert sorted(site.named(), key=str) == sorted(named, key=str)

    file = tmp_path / "tail.jsonl"
    site.command("tail", "export", "--out", str(file))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted((line["partition"], line["offset"]) for line in lines) == sorted(expected)
    for line in lines:
        record = expected[line["partition"], line["offset"]]
        assert text(record.key, line, "key") and text(record.value, line, "value")
        assert line["timestamp_ms"] == record.timestamp[1]
        assert [header["name"] for header in line["headers"]] == [name for name, _ in record.headers]
        assert all(text(value, line["headers"][at], "value") for at, (_, value) in enumerate(record.headers))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "exists" in site.command("tail", "export", "--out", str(file), code=2)
    assert not list(tmp_path.glob("*.part"))

    into = f"{topic}.tail"
    assert "has no topic" in site.command("tail", "export", "--to", into, code=2)
    assert "strait start" in site.command("tail", "export", "--to", topic, code=2)
    Admin(mesh.clusters["b"].client_properties, "b").create([NewTopic(into, PARTITIONS, 1)])
    first = site.json("tail", "export", "--to", into, "--partition", "1")["exported"]
    again = site.json("tail", "export", "--to", into)["exported"]
    assert (first, again) == (sum(at[0] == 1 for at in expected), sum(at[0] == 0 for at in expected))
    assert site.json("tail", "export", "--to", into)["exported"] == 0
    exported = read_all(mesh.clusters["b"], into, PARTITIONS)
    for partition, records in enumerate(exported):
        mine = [record for at, record in sorted(expected.items()) if at[0] == partition]
        assert [(record.key, record.value, record.timestamp[1], record.headers[:-5]) for record in records] == [
            (record.key, record.value, record.timestamp[1], record.headers) for record in mine
        ]
        assert [dict(record.headers[-5:])["strait.offset"] for record in records] == [
            b"%d" % record.offset for record in mine
        ]

    resume(site.handle, Scope(topic))
    resume(site.handle, Scope(topic, 1))
    set_stopped(site.handle, stopped=False, by="a test")
    mesh.start(THERE)
    eventually(lambda: not site.missing(), what=lambda: f"the link copies its tail: {mesh.log()}")
    eventually(lambda: not site.named(), what="nothing is left to name")


def test_a_topic_that_holds_anything_else_takes_no_export(make_site: Callable[..., Site]) -> None:
    site = make_site()
    mesh, topic = site.mesh, site.topic
    site.pause()
    site.write("late", 4)
    into = f"{topic}.tail"
    Admin(mesh.clusters["b"].client_properties, "b").create([NewTopic(into, 1, 1)])
    assert "has 1 partition" in site.command("tail", "export", "--to", into, code=2)
    producer = Producer(mesh.clusters["b"].client_properties)
    producer.produce(into, b"somebody's own")
    assert producer.flush(30) == 0
    error = site.command("tail", "export", "--to", into, "--partition", "0", code=2)
    assert f"{into}-0 offset 0 is no exported record" in error
    assert ends(mesh.clusters["b"], into, 1) == [1]


def test_an_export_that_cannot_see_what_is_there_writes_nothing(make_site: Callable[..., Site]) -> None:
    """Behind the open transaction of another link's export nobody sees what was exported before."""
    site = make_site()
    mesh, topic = site.mesh, site.topic
    site.pause()
    site.write("late", 6)
    into, properties = f"{topic}.tail", mesh.clusters["b"].client_properties
    configs = {"b": {"cleanup.policy": "compact"}, "c": {"message.timestamp.type": "LogAppendTime"}}
    topics = [NewTopic(f"{topic}.{name}", PARTITIONS, 1, config) for name, config in configs.items()]
    Admin(properties, "b").create([NewTopic(into, PARTITIONS, 1), *topics])
    assert "is compacted" in site.command("tail", "export", "--to", f"{topic}.b", code=2)
    assert "would replace every timestamp" in site.command("tail", "export", "--to", f"{topic}.c", code=2)
    other = Transactions(mesh.clusters["b"], f"{topic}-other", into, PARTITIONS)
    other.begin()
    other.write(1)
    assert "holds an open transaction" in site.command("tail", "export", "--to", into, code=1)
    other.abort()
    assert [site.json("tail", "export", "--to", into)["exported"] for _ in range(2)] == [6, 0]
    found = [record.value for records in read_all(mesh.clusters["b"], into, PARTITIONS) for record in records]
    assert len(found) == len(set(found)) == 6
    admin = AdminClient(properties)
    for future in admin.delete_records([KafkaPartition(into, 1, 2)]).values():
        future.result(30)
    assert f"{into}-1 has lost records before offset 2" in site.command("tail", "export", "--to", into, code=2)


def test_of_two_exports_at_once_the_first_gives_up_and_each_record_is_there_once(
    make_site: Callable[..., Site],
) -> None:
    site = make_site()
    site.pause()
    site.write("late", 6)
    into, properties = f"{site.topic}.tail", site.mesh.clusters["b"].client_properties
    admin = Admin(properties, "b")
    admin.create([NewTopic(into, PARTITIONS, 1)])
    reader = TailReader(site.handle)

    def interrupted() -> Iterator[TailRecord]:
        records = reader.records(reader.parts)
        yield next(records)
        assert site.json("tail", "export", "--to", into)["exported"] == 6
        yield from records

    with pytest.raises(PlanConflict, match="another export of the tail has begun"):
        TopicExport(admin, site.link, into).write(interrupted())
    found = [record.value for records in read_all(site.mesh.clusters["b"], into, PARTITIONS) for record in records]
    assert sorted(found, key=str) == sorted((record.value for record in site.missing().values()), key=str)
    assert site.json("tail", "export", "--to", into)["exported"] == 0


class Ledger:
    """Transactions of some producers, and what both clusters hold of each."""

    def __init__(self, site: Site, producers: int) -> None:
        self._site = site
        names = [f"{site.topic}-{number}" for number in range(producers)]
        self._writers = {name: Transactions(site.mesh.clusters["a"], name, site.topic, PARTITIONS) for name in names}
        self.names = names
        self._committed: list[tuple[str, int]] = []
        self._numbers = dict.fromkeys(names, 0)

    def write(self, name: str, records: int, partition: int | None = None, *, commit: bool = True) -> None:
        self.begin(name, records, partition)
        self.end(name, commit=commit)

    def begin(self, name: str, records: int, partition: int | None = None) -> None:
        self._numbers[name] += 1
        self._writers[name].begin()
        self.add(name, records, partition)

    def add(self, name: str, records: int, partition: int | None = None, payload: bytes = b"") -> None:
        self._writers[name].write(records, payload, partition)

    def end(self, name: str, *, commit: bool = True) -> None:
        self._writers[name].end(commit)
        if commit:
            self._committed.append((name, self._numbers[name]))

    def cut(self) -> dict[tuple[str, int], dict[int, tuple[list[int], list[int]]]]:
        """Each transaction of which b holds some and lacks some: partition -> offsets on a that b has, and has not."""
        there = {(record.key, record.value) for records in self._site.read("b") for record in records}
        found: dict[tuple[str, int], dict[int, tuple[list[int], list[int]]]] = {}
        for partition, records in enumerate(self._site.read("a")):
            for record in records:
                name, number, _ = (record.key or b"").decode().split()
                parts = found.setdefault((name, int(number)), {})
                parts.setdefault(partition, ([], []))[(record.key, record.value) not in there].append(record.offset)
        assert sorted(found) == sorted(self._committed)
        return {
            which: parts
            for which, parts in found.items()
            if any(has for has, _ in parts.values()) and any(lacks for _, lacks in parts.values())
        }


def assert_named(site: Site, ledger: Ledger) -> list[tuple[str, int]]:
    """Just the transactions that are cut are named, with just their partitions and offsets; which ones that are."""
    transactions = site.json("tail", "list")["transactions"]
    assert transactions["unknown"] == []
    cut = ledger.cut()
    expected = [
        (
            name,
            [{"topic": site.topic, "partition": number} for number, (_, lacks) in sorted(parts.items()) if not lacks],
            {number: (min(lacks), bool(has)) for number, (has, lacks) in parts.items() if lacks},
        )
        for (name, _), parts in sorted(cut.items())
    ]
    named = [
        (
            one["transactional_id"],
            one["copied"],
            {part["partition"]: (part["from_offset"], part["in_part"]) for part in one["missing"]},
        )
        for one in transactions["cut"]
    ]
    assert sorted(named, key=str) == sorted(expected, key=str)
    ends_of = {
        (part["partition"], part["from_offset"]): part["to_offset"]
        for one in transactions["cut"]
        for part in one["missing"]
    }
    for parts in cut.values():
        for number, (_, lacks) in parts.items():
            assert not lacks or ends_of[number, min(lacks)] > max(lacks)
    return sorted(cut)


def test_transactions_that_the_disaster_cut_in_half_are_named(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are whole on one side are not, whichever side that is, and none that was aborted."""
    site = make_site()
    mesh = site.mesh
    ledger = Ledger(site, 3)
    one, two, three = ledger.names
    ledger.write(one, 4)
    ledger.write(two, 4)
    for partition in range(PARTITIONS):
        site.until_copied(partition)
    site.pause(1)
    ledger.write(one, 6)
    ledger.begin(two, 3)  # around one's
    ledger.write(one, 4, commit=False)
    ledger.write(one, 2, partition=1)
    ledger.write(one, 4)
    ledger.end(two)
    ledger.write(one, 2, partition=0)
    ledger.write(three, 4, commit=False)
    ledger.write(three, 2, partition=0)
    site.until_copied(0)
    site.pause()
    for name in ledger.names:
        ledger.write(name, 4)
    ledger.begin(three, 2)  # it is open when the source is lost
    site.lose()
    site.come_back()
    assert assert_named(site, ledger) == [(one, 2), (one, 5), (two, 2)]
    shown = site.command("tail", "list")
    assert f"replicated in part: transaction {two} (producer ID" in shown
    assert f"replicated {site.topic}-0; missing {site.topic}-1 from" in shown
    monkeypatch.setattr("strait.control.cut_transactions._LOG", "not-there")
    transactions = site.json("tail", "list")["transactions"]
    assert transactions["cut"] == []
    assert "3 producers had transactions in the tail" in transactions["unknown"][0]
    assert "grant READ and DESCRIBE" in transactions["unknown"][0]
    assert mesh.clusters["a"].running


def test_a_transaction_that_is_copied_in_part_within_a_partition_is_named(make_site: Callable[..., Site]) -> None:
    """Its link is too slow for it. Of the one before nothing is missing, of the one after all."""
    site = make_site(topics={"budget": {"bytes_per_second": 20_000}})
    ledger = Ledger(site, 1)
    (name,) = ledger.names
    ledger.write(name, 2)
    for partition in range(PARTITIONS):
        site.until_copied(partition)
    ledger.begin(name, 0)
    for _ in range(40):
        ledger.add(name, 2, payload=os.urandom(4_000))
    ledger.end(name)
    ledger.write(name, 2)
    held = sum(ends(site.mesh.clusters["b"], site.topic, PARTITIONS))
    eventually(lambda: sum(ends(site.mesh.clusters["b"], site.topic, PARTITIONS)) > held + 10, what="some are copied")
    site.pause()
    assert assert_named(site, ledger) == [(name, 2)]
    parts = ledger.cut()[name, 2]
    assert any(has and lacks for has, lacks in parts.values()), parts


def test_nothing_is_dropped_of_a_link_that_is_started_meanwhile(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site()
    mesh = site.mesh
    site.pause()
    site.write("late", 6)
    set_stopped(site.handle, stopped=True, by="a test")
    mesh.kill(THERE)
    eventually(
        lambda: all(slot.silent for group in link_groups(site.handle).groups for slot in group.slots),
        what="no slot reports",
    )

    def at_rest(link: ConfiguredLink, parts: Collection[TailPart]) -> None:
        """The last look, when it drops them. The command's own one, before that, is as it was imported."""
        require_at_rest(link, parts)
        set_stopped(link, stopped=False, by="a test")

    runs = mesh.runs(THERE)
    words = ("tail", "drop", "--reason", "x", "--yes")
    assert "no partition 7" in site.command(*words, "--partition", "7", code=2)
    with monkeypatch.context() as patch:
        patch.setattr("strait.control.tail_drop.require_at_rest", at_rest)
        assert "somebody has started it" in site.command(*words, code=1)
    assert mesh.runs(THERE) == runs
    assert len(site.named()) == 6


def test_nothing_is_dropped_where_the_last_copy_is_not_the_record_that_the_map_names(
    make_site: Callable[..., Site],
) -> None:
    """As after the source has lost its newest records and got others in their place."""
    site = make_site()
    mesh = site.mesh
    site.write("early", 20)
    for partition in range(PARTITIONS):
        site.until_copied(partition)
    site.pause()
    site.write("late", 6)
    mesh.kill(THERE)
    assert all(row["exact"] for row in site.json("tail", "list")["partitions"])
    site.promise(1, 9, 11, written=10)
    rows = site.json("tail", "list")["partitions"]
    assert [row["exact"] for row in rows] == [True, False]
    assert "the last record copied, at destination offset 9, is not the source's at 11" in rows[1]["detail"]


def test_a_transaction_of_which_a_part_is_gone_otherwise_is_not_called_replicated(
    make_site: Callable[..., Site],
) -> None:
    """A part that was dropped, or deleted on the source before it was copied, is not on b either."""
    site = make_site()
    mesh = site.mesh
    ledger = Ledger(site, 1)
    (name,) = ledger.names
    site.pause()
    ledger.write(name, 4)
    ledger.write(name, 4)
    set_stopped(site.handle, stopped=True, by="a test")
    mesh.kill(THERE)
    eventually(
        lambda: all(slot.silent for group in link_groups(site.handle).groups for slot in group.slots),
        what="no slot reports",
    )
    assert site.json("tail", "list")["transactions"] == {"cut": [], "unknown": []}
    admin = AdminClient(mesh.clusters["a"].client_properties)
    for future in admin.delete_records([KafkaPartition(site.topic, 1, 3)]).values():
        future.result(30)
    found = site.json("tail", "list")["transactions"]
    assert (found["cut"], len(found["unknown"])) == ([], 1)
    assert "has deleted or compacted away a part of the tail" in found["unknown"][0]
    assert site.json("tail", "drop", "--reason", "x", "--yes", "--partition", "1")["dropped"] == 2
    found = site.json("tail", "list")["transactions"]
    assert (found["cut"], len(found["unknown"])) == ([], 1)
    assert "was dropped before" in found["unknown"][0]


def test_what_is_dropped_is_never_copied_and_all_after_it_is(make_site: Callable[..., Site]) -> None:
    """Also through crashes of the link before and after its next record; the map stays exact."""
    site = make_site()
    mesh, topic = site.mesh, site.topic
    writer = Transactions(mesh.clusters["a"], f"{topic}-writer", topic, PARTITIONS)
    writer.begin()
    writer.write(8, payload=b"first ")
    writer.commit()
    site.write("early", 10)
    for partition in range(PARTITIONS):
        site.until_copied(partition)
    site.pause(1)
    site.write("middle", 10)
    site.until_copied(0)
    site.pause()
    writer.begin()
    writer.write(6, payload=b"second ")
    writer.commit()
    site.write("late", 10)
    dropped = site.missing()
    site.promise(1, len(site.read("b")[1]), min(offset for partition, offset in dropped if partition == 1))
    words = ("tail", "drop", "--reason", "entered by hand", "--by", "a test")
    assert "it is not stopped" in site.command(*words, "--yes", code=2)
    site.lose()
    site.write("on b", 10, to="b")
    site.come_back()
    eventually(lambda: sum(map(len, site.read("a"))) == 54, what="b's records come to a")
    of_one = [at for at in dropped if at[0] == 1]
    assert site.json("tail", "drop", "--reason", "x", "--dry-run")["partitions"][1]["records"] == len(of_one)
    assert site.missing().keys() == dropped.keys()
    assert site.json(*words, "--partition", "1", "--yes")["dropped"] == len(of_one)
    assert [(one["partition"], one["offset"]) for one in site.named()] == sorted(set(dropped) - set(of_one))
    assert site.json(*words, "--yes")["dropped"] == len(dropped) - len(of_one)
    assert site.json(*words, "--yes")["dropped"] == 0
    listed = site.json("tail", "list")["dropped"]
    assert {one["partition"] for one in listed} == set(range(PARTITIONS))
    assert all("a test: entered by hand" in one["detail"] for one in listed)
    assert site.named() == []
    losses = json.loads(site.command("losses", topic, "-o", "json"))
    assert {(loss["partition"], loss["cause"], loss["action"], loss["side"]) for loss in losses} == {
        (partition, "tail_dropped", "continued", "source") for partition in range(PARTITIONS)
    }
    for loss in losses:
        mine = [offset for partition, offset in dropped if partition == loss["partition"]]
        assert loss["from_offset"] <= min(mine) and loss["to_offset"] > max(mine)
        assert loss["detail"] == f"a test: entered by hand ({plural(len(mine), 'record')})"

    resume(site.handle, Scope(topic))
    resume(site.handle, Scope(topic, 1))
    set_stopped(site.handle, stopped=False, by="a test")
    mesh.start(THERE)
    site.until_state(None, "caught_up")
    mesh.kill(THERE)
    assert site.missing().keys() == dropped.keys()
    site.write("after", 20)
    assert len(site.named()) == 20
    mesh.start(THERE)
    eventually(lambda: site.missing().keys() == dropped.keys(), what=lambda: f"all after it is copied: {mesh.log()}")
    mesh.kill(THERE)
    site.write("at last", 20)
    named = site.named()
    assert len(named) == 20
    with site.forgotten_on_b():  # the copies after the last checkpoint are found in the log
        assert sorted(site.named(), key=str) == sorted(named, key=str)
    mesh.start(THERE)
    eventually(lambda: site.missing().keys() == dropped.keys(), what=lambda: f"all after it is copied: {mesh.log()}")
    values = [record.value for records in site.read("b") for record in records]
    assert len(values) == len(set(values)) == 8 + 10 + 5 + 10 + 40
    set_stopped(site.handle, stopped=True, by="a test")
    eventually(lambda: site.named() == [], what="nothing is left to name")
    here = {record.value: record.offset for records in site.read("a") for record in records}
    for partition, records in enumerate(site.read("b")):
        copies = [record for record in records if not (record.value or b"").startswith(b"on b")]
        translator = Translator(mesh.runs(THERE)[partition], len(copies), shared=True)
        for number, record in enumerate(copies):
            assert translator.records_before(here[record.value]) == (number, True), (partition, record)
