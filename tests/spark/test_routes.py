"""A topic that is divided among several destination topics, on real Spark and real brokers: each record is in exactly one of
them, once and in order, and every offset of the source translates exactly to each, whatever is killed."""

import io
import json
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer

from strait.config.links import LinksFile, parse
from strait.consumer_groups.offsets import Offsets
from strait.control.pausing import pause, resume
from strait.control.plane import Control
from strait.engine.checkpointer import PASSED_OFFSETS
from strait.model import TopicPartition
from strait.planning.plan.pauses import Scope
from strait.state.link_handle import ConfiguredLink
from strait.state.offset_map import source_position
from strait.state.reader import StateReader
from strait.state.translation import Fit
from support.fixtures.waiting import eventually
from support.kafka.groups import commit, committed
from support.kafka.log_ends import ends
from support.kafka.records import Record, read, read_all
from support.links.audit_command import Command
from support.links.links import Link
from support.links.transforming import kill, parts, started
from support.links.transforms import Becomes, Writer, assert_transformed, transform, transformed

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def _value(record: Record) -> dict[str, Any]:
    found = json.loads(record.value or b"{}")
    assert isinstance(found, dict)
    return found


def takes(when: Callable[[dict[str, Any]], bool], *before: Callable[[dict[str, Any]], bool]) -> Becomes:
    """What becomes of a record on a route, by its condition and those of the routes before it."""

    def made(record: Record) -> Record | None:
        copy = transformed(record)
        if copy is None or any(other(_value(record)) for other in before) or not when(_value(record)):
            return None
        return copy

    return made


def is_big(value: dict[str, Any]) -> bool:
    return bool(value["amount"] > 80)


def is_german(value: dict[str, Any]) -> bool:
    return bool(value["country"] == "DE")


def is_rare(value: dict[str, Any]) -> bool:
    return bool(value["id"] % 101 == 7)


def names(link: Link) -> dict[str, str]:
    return {name: f"{link.name}.{name}" for name in ("big", "rare", "german", "rest")}


def routes(link: Link, *chosen: str) -> list[dict[str, str]]:
    when = {"big": "v.amount > 80", "rare": "v.id % 101 = 7", "german": "v.country = 'DE'"}
    return [
        {"when": when[name], "to": names(link)[name]} if name in when else {"to": names(link)[name]} for name in chosen
    ]


MADE: Mapping[str, Becomes] = {
    "big": takes(is_big),
    "rare": takes(is_rare, is_big),
    "german": takes(is_german, is_big, is_rare),
    "rest": takes(lambda _: True, is_big, is_rare, is_german),
}


def settings(link: Link, folder: Path, *chosen: str, **changes: Any) -> dict[str, Any]:
    made = transform(folder)
    fields = {"set": dict(made.set_fields), "drop": list(made.drop_fields), "rename": dict(made.rename_fields)}
    block = {
        "format": {"value": "json", "schema": made.json_schema},
        "where": made.where,
        "key": made.key,
        "fields": fields,
        "malformed": made.malformed,
        "secrets": dict(made.secrets),
        "route": routes(link, *chosen),
    } | changes
    topics = {"include": [link.name], "rules": [{"match": link.name, "transform": block}]}
    clusters = {"a": link.source.client_properties, "b": link.destination.client_properties}
    groups = {"interval_seconds": 1, "include": [f"{link.name}.*"]}
    own = {"source": "a", "destination": "b", "topics": topics, "pool": False, "consumer_groups": groups}
    return {"clusters": clusters, "links": {link.name: own}}


def file(link: Link, folder: Path, *chosen: str, **changes: Any) -> LinksFile:
    return parse(settings(link, folder, *chosen, **changes), where="links file")


@contextmanager
def controlled(link: Link, given: LinksFile) -> Iterator[Control]:
    """Its plan is published, and its spec used."""
    with Control(given, link.name) as control:
        plan = control.apply().plan
        folders = {"ledger_dir": link.folder / "ledger", "checkpoint_dir": link.folder / "checkpoint"}
        link.spec = control.spec(plan, **folders)
        yield control


def wanted(link: Link, chosen: str) -> list[int]:
    """Number of records that this route takes of each partition."""
    found = read_all(link.source, link.name, link.partitions)
    return [sum(MADE[chosen](record) is not None for record in records) for records in found]


def until_copied(link: Link, *chosen: str) -> None:
    missing = {name: wanted(link, name) for name in chosen}

    def done() -> bool:
        return all(
            all(
                end >= count
                for end, count in zip(ends(link.destination, names(link)[name], link.partitions), counts, strict=True)
            )
            for name, counts in missing.items()
        )

    link.until(done, "each route has its records", within_seconds=240)


def assert_divided(link: Link, *chosen: str) -> None:
    for name in chosen:
        ends = link.source, link.destination
        assert_transformed(*ends, link.name, link.name, link.partitions, route=names(link)[name], becomes=MADE[name])


def positions(control: Control, *chosen: str) -> dict[str, list[int]]:
    """Source offsets up to which each route has read, as its slots report them."""
    rows = [row for status in control.statuses() for row in status.partitions]
    return {name: [row.position for row in rows if row.topic.endswith(f".{name}")] for name in chosen}


EVERY = ("big", "rare", "german", "rest")


@pytest.mark.core
def test_each_record_is_in_one_destination_topic_and_offsets_translate_to_each(link: Link, tmp_path: Path) -> None:
    writer = Writer(link.source, link.name, link.partitions, 1)
    writer.produce(4_000)
    given = file(link, tmp_path, *EVERY)
    with controlled(link, given) as control:
        started(link)
        until_copied(link, *EVERY)
        for records in (5, 700):
            writer.produce(records)
            until_copied(link, *EVERY)
        assert_divided(link, *EVERY)
        sources = ends(link.source, link.name, link.partitions)
        link.until(
            lambda: positions(control, *EVERY) == dict.fromkeys(EVERY, sources),
            "each route has read all, also the rare one",
        )
        _malformed_are_noted_once(link)
        _offsets_translate(link, given)
    _an_audit_agrees(link, tmp_path)


def _an_audit_agrees(link: Link, folder: Path) -> None:
    """It evaluates each route's rule again over all records of the source."""
    strait = Command(folder, settings(link, folder, *EVERY))
    body = json.loads(strait(link.name, link.name, "-o", "json"))["body"]
    assert not body["unexplained"], body["differences"][:5]
    counts = dict.fromkeys(EVERY, 0)
    kinds: dict[str, set[tuple[str, str]]] = {name: set() for name in EVERY}
    for one in body["partitions"]:
        name = one["topic"].rpartition(".")[2]
        assert one["records"] == one["by_record"] and one["source_digest"] == one["copy_digest"], one
        counts[name] += one["records"]
        kinds[name] |= {(it["kind"], it["explained"]) for it in one["differences_by_kind"]}
    assert counts == {name: sum(wanted(link, name)) for name in EVERY}
    left_out = ("skipped", "left out by the rule")
    assert kinds == {name: {left_out} for name in EVERY} | {"big": {left_out, ("missing", "quarantine: unresolved")}}


def _malformed_are_noted_once(link: Link) -> None:
    noted = [dict(record.headers) for _, record in read(link.destination, f"strait.{link.name}.quarantine", 1)]
    places = [(one["strait.partition"], one["strait.offset"]) for one in noted]
    assert places and len(set(places)) == len(places), "by one route"
    assert {one["strait.topic"] for one in noted} == {f"{link.name}→{names(link)['big']}".encode()}


def _offsets_translate(link: Link, given: LinksFile) -> None:
    """Those that groups have committed, on each route; and back, where the lowest counts."""
    written = read_all(link.source, link.name, link.partitions)
    kept = {name: [[one.offset for one in records if MADE[name](one)] for records in written] for name in EVERY}
    group = f"{link.name}-group"
    offsets = Offsets(ConfiguredLink.of(given, link.name))
    for at in (0, 3, 501, 1_000):
        commit(link.source, group, {TopicPartition(link.name, n): at for n in range(link.partitions)})

        def there() -> dict[str, dict[int, int]]:
            return {name: committed(link.destination, group, names(link)[name]) for name in EVERY}

        right = {name: {n: bisect_left(kept[name][n], at) for n in range(link.partitions)} for name in EVERY}
        eventually(lambda: there() == right, what=lambda: f"offset {at} on each route: {there()}, not {right}")  # noqa: B023
        asked = [(TopicPartition(link.name, n), at) for n in range(link.partitions)]
        found = offsets.to_destination(asked)
        assert len(found) == len(EVERY) * link.partitions
        for one in found:
            name = one.to_topic.rpartition(".")[2]
            assert one.to_offset == right[name][one.partition] and one.fit in (Fit.EXACT, Fit.BEFORE_START), one
    back = offsets.back_to_source(group)
    assert {one.to_topic for one in back} == {link.name}
    for number in range(link.partitions):
        (lowest,) = {one.to_offset for one in back if one.partition == number}
        left = [offset for name in EVERY for offset in kept[name][number][right[name][number] :]]
        assert lowest == min(left), "no record is skipped on any route, and none before is read again"


def test_whatever_is_killed_each_record_is_in_one_topic_once(link: Link, tmp_path: Path) -> None:
    """The source is written in transactions, of which a third is aborted."""
    writer = Writer(link.source, link.name, link.partitions, 2, transactional=True)
    for _ in range(4):
        writer.produce(500)
    with controlled(link, file(link, tmp_path, *EVERY)):
        started(link)
        link.until(lambda: any(ends(link.destination, names(link)["rest"], link.partitions)), "it copies")
        for victim in ("slot", "second", "everything", "driver"):
            for _ in range(3):
                writer.produce(400)
            if victim == "everything":
                link.kill_everything()
            else:
                kill(parts(link)[victim])
            eventually(lambda: started(link) is None, what="it runs")
        if not link.application().state.alive:
            started(link)
        writer.produce(300)
        _until_copied_whatever_ended(link)
    assert_divided(link, *EVERY)


def _until_copied_whatever_ended(link: Link) -> None:
    counts = {name: wanted(link, name) for name in EVERY}

    def left() -> dict[str, int]:
        started(link)
        return {
            name: sum(
                max(0, count - end)
                for end, count in zip(
                    ends(link.destination, names(link)[name], link.partitions), counts[name], strict=True
                )
            )
            for name in EVERY
        }

    eventually(
        lambda: not any(left().values()),
        what=lambda: f"each route has its records: {left()} {link.log()}",
        within_seconds=150,
    )


def test_routes_are_paused_added_and_removed_while_others_go_on(link: Link, tmp_path: Path) -> None:
    writer = Writer(link.source, link.name, link.partitions, 3)
    writer.produce(1_000)
    given = file(link, tmp_path, "big", "rare")
    handle = ConfiguredLink.of(given, link.name)
    with controlled(link, given):
        started(link)
        until_copied(link, "big", "rare")
        done = pause(handle, Scope.parse(f"{link.name}->{names(link)['big']}"), by="a test", reason="")
        assert [item.topic for item in done.pauses] == [f"{link.name}→{names(link)['big']}"]
        before = ends(link.destination, names(link)["big"], link.partitions)
    more = file(link, tmp_path, "big", "rare", "german")
    writer.produce(1_000)
    with controlled(link, more) as control:
        until_copied(link, "rare", "german")
        assert ends(link.destination, names(link)["big"], link.partitions) == before, "it is paused"
        resume(handle, Scope.parse(f"{link.name}→{names(link)['big']}"))
        until_copied(link, "big")
        assert_divided(link, "big", "rare", "german")
        status = control.status(link.name)
        assert {row.topic.rpartition(".")[2] for row in status.partitions} == {"big", "rare", "german"}
    with controlled(link, file(link, tmp_path, "big", "rare")):
        before = ends(link.destination, names(link)["german"], link.partitions)
        writer.produce(500)
        until_copied(link, "big", "rare")
        assert ends(link.destination, names(link)["german"], link.partitions) == before, "it stays as it is"
    with controlled(link, more):
        until_copied(link, "german")
    assert_divided(link, "big", "rare", "german")


def test_a_rare_route_starts_behind_all_that_it_has_read(link: Link, tmp_path: Path) -> None:
    """As one of a record a day: it neither holds up a report of what is copied nor reads that day again."""
    writer = Writer(link.source, link.name, link.partitions, 4)
    writer.produce(3_000)
    given, read = file(link, tmp_path, "big", "rare"), ends(link.source, link.name, link.partitions)
    name = f"{link.name}→{names(link)['rare']}"
    with controlled(link, given) as control:
        started(link)
        link.until(lambda: positions(control, "rare") == {"rare": read}, "it has read all")
        control.apply(stopped=True)
        link.until_ended()
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("map",)) as state:
        state.catch_up(30)
        starts = [
            max(source_position(run, run.sequence_end) for run in state.runs[name, n]) for n in range(link.partitions)
        ]
    assert all(0 <= end - start < PASSED_OFFSETS for start, end in zip(starts, read, strict=True)), (starts, read)
    writer.produce(3_000)
    with controlled(link, given) as control:
        control.apply(stopped=False)
        started(link)
        until_copied(link, "big", "rare")
        assert sum(wanted(link, "rare")) > 3, "it has some records"
        assert_divided(link, "big", "rare")


def test_a_null_condition_is_not_true(link: Link, tmp_path: Path) -> None:
    producer = Producer(link.source.client_properties)
    for number in range(90):
        value = {"id": number} | ({} if number % 3 else {"amount": 90.0 if number % 2 else 1.0})
        producer.produce(link.name, json.dumps(value).encode(), b"%d" % number, number % link.partitions)
    assert producer.flush(30) == 0
    plain: dict[str, Any] = {"where": None, "key": None, "fields": None, "secrets": {}}
    with controlled(link, file(link, tmp_path, "big", "rest", **plain)):
        started(link)
        link.until(
            lambda: sum(ends(link.destination, names(link)["rest"], link.partitions)) >= 75, "the rest has all others"
        )
        found = {
            name: {record.key for _, record in read(link.destination, names(link)[name], link.partitions)}
            for name in ("big", "rest")
        }
    assert found["big"] == {b"%d" % n for n in range(90) if n % 3 == 0 and n % 2}
    assert found["rest"] == {b"%d" % n for n in range(90)} - found["big"]


def test_values_in_avro_are_divided_and_noted_once_if_not_copied(link: Link, tmp_path: Path) -> None:
    """One that cannot be parsed by the first route, one whose new value the schema does not permit by the route that takes it."""
    schema = {
        "type": "record",
        "name": "A",
        "fields": [{"name": "id", "type": "int"}, {"name": "mail", "type": "string"}],
    }
    producer = Producer(link.source.client_properties)
    for number in range(600):
        producer.produce(link.name, _in_avro(schema, number, "a@b"), b"%d" % number, number % link.partitions)
    assert producer.flush(30) == 0
    block = {
        "format": {"value": "avro", "schema": json.dumps(schema), "schema_id": 7},
        "where": None,
        "key": None,
        "fields": {"set": {"mail": "CASE WHEN v.id % 50 <> 0 THEN upper(v.mail) END"}},
        "secrets": {},
        "route": [{"when": "v.id % 3 = 0", "to": names(link)["big"]}, {"to": names(link)["rest"]}],
    }
    parsed = [number for number in range(600) if number % 97]
    taken = {name: [number for number in parsed if (number % 3 == 0) is (name == "big")] for name in ("big", "rest")}
    copied = {name: {n for n in numbers if n % 50} for name, numbers in taken.items()}
    with controlled(link, file(link, tmp_path, **block)):
        started(link)

        def there(name: str) -> dict[bytes | None, bytes | None]:
            return {
                record.key: record.value for _, record in read(link.destination, names(link)[name], link.partitions)
            }

        for name, numbers in copied.items():
            wanted = {b"%d" % number: _in_avro(schema, number, "A@B") for number in numbers}
            link.until(lambda: there(name) == wanted, f"{name} has its records and no others", within_seconds=240)  # noqa: B023
    noted = [dict(record.headers) for _, record in read(link.destination, f"strait.{link.name}.quarantine", 1)]
    found = [
        (
            (one["strait.topic"] or b"").decode().rpartition(".")[2],
            int(one["strait.offset"] or 0) * link.partitions + int(one["strait.partition"] or 0),
        )
        for one in noted
    ]
    unparsed = [("big", number) for number in range(600) if not number % 97]
    assert sorted(found) == sorted(
        unparsed + [(name, number) for name, numbers in taken.items() for number in numbers if not number % 50]
    )
    body = json.loads(Command(tmp_path, settings(link, tmp_path, **block))(link.name, "-o", "json"))["body"]
    assert not body["unexplained"], body["differences"][:5]
    assert sum(one["records"] for one in body["partitions"]) == sum(map(len, copied.values()))


def _in_avro(schema: dict[str, Any], number: int, mail: str) -> bytes:
    """Each 97th value lacks its end."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, {"id": number, "mail": mail})
    return struct.pack(">bI", 0, 7) + out.getvalue()[: None if number % 97 else -1]
