"""Transformed topics are compared with what their rule makes of the source's records now: what it leaves out is counted, each
fault is named with both offsets, and none is invented. Spark is a function here that decides row by row."""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from strait.audit.chunks import chunks_of
from strait.audit.evaluating import evaluated_sources, source_rows
from strait.audit.findings import NOWHERE, Difference
from strait.audit.followers import Followers, FollowersRead
from strait.audit.plan import AuditedPartition, OnRecord
from strait.audit.task import LEFT_OUT, Auditor, TaskSettings
from strait.audit.transformed import made_otherwise, of_transformed
from strait.config.audit import AuditRequest
from strait.engine.detour.layout import AUDITED, Kind
from strait.state.offset_map import Gap, pack
from strait.state.transform import AvroFormat, TopicTransform
from strait.state.translation import Translator
from strait.wire.batch import Batch
from strait.wire.records import Record, read_records
from support.audited import PRODUCER, batch_at, flipped
from support.model.reports import plain_run

RULE = TopicTransform(where="keep", value="masked")


def decided(value: bytes | None) -> tuple[Kind, bytes | None]:
    """The rule: by the record's first byte."""
    if value is None or value[:1] < b"\x80":
        return Kind.LEFT_OUT, None
    return (Kind.MALFORMED, None) if value[:1] > b"\xf0" else (Kind.RECORD, b"masked " + value[:4])


def evaluated(
    rows: Iterator[pa.RecordBatch], chance: random.Random, rule: TopicTransform = RULE
) -> Iterator[pa.RecordBatch]:
    """As the JVM gives them back: in batches of other sizes, with the parts that the rule changes, and the original ones."""
    made = []
    for batch in rows:
        for row in batch.to_pylist():
            kind, value = row["__kind"], None
            if kind == Kind.RECORD:
                assert row["__number"] == rule.number("t")
                kind, value = decided(row["value"])
            key = b"new " + (row["key"] or b"") if rule.key and kind == Kind.RECORD else None
            originals = (row[name] for name in ("__ms", "key", "value", "__headers"))
            made.append((int(kind), row["offset"], key, value if rule.value else None, None, *originals))
    types = (pa.int32(), pa.int64(), *[pa.binary()] * 3, pa.int64(), *[pa.binary()] * 3)
    while made:
        some, made = made[: (size := chance.randrange(1, 200))], made[size:]
        columns = [pa.array(column, kind) for column, kind in zip(zip(*some, strict=True), types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, list(AUDITED))


def made_by(rule: TopicTransform, record: Record, value: bytes | None) -> Record:
    """What the rule makes of a record that it keeps."""
    return record._replace(
        key=b"new " + (record.key or b"") if rule.key else record.key,
        value=value if rule.value else record.value,
        headers=() if rule.headers == "drop" else record.headers,
    )


class Log:
    """One side's log in memory."""

    skipped = 0
    readable = 1 << 40
    compacted = False
    skipped_producers: frozenset[int] = frozenset()

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches

    def items(self, _: Any, first: int, end: int) -> Iterator[Batch]:
        yield from (one for one in self.batches if one.next_offset > first and one.base_offset < end)


def auditor_of(source: Sequence[Batch], copy: Sequence[Batch], *, strong: bool = False, replicas: bool = False) -> Any:
    auditor: Any = Auditor(TaskSettings("a", {}, "b", {}, PRODUCER, {}, strong, replicas=replicas))
    auditor._source, auditor._copy = Log(source), Log(copy)
    auditor._locate = lambda *_: None  # asks brokers
    return auditor


def compared(auditor: Any, rows: Iterator[pa.RecordBatch]) -> list[Any]:
    return [auditor.compare(source.chunk, source) for source in evaluated_sources(rows, strong=auditor.strong)]


class Case:
    """A source, its copy as a link makes it, and the map. ``also``: offsets that the link kept against its rule;
    ``forgotten``: offsets that it left out."""

    def __init__(
        self, seed: int, *, also: int = 0, forgotten: int = 0, records: int = 3000, rule: TopicTransform = RULE
    ) -> None:
        self.rule = rule
        self.chance = random.Random(seed)
        self.source: list[Batch] = []
        self.kept: list[tuple[int, Record]] = []
        at, left, number, wrong = 70, records, 0, [also, forgotten]
        self.also: list[int] = []
        self.forgotten: list[int] = []
        self.malformed: list[int] = []
        while left:
            size = min(left, self.chance.randrange(1, 60))
            some = [self._record(number + step) for step in range(size)]
            self.source.append(batch_at(at, some, self.chance.choice([0, 3, 4])))
            for offset, one in enumerate(some, at):
                kind, value = decided(one.value)
                if kind == Kind.MALFORMED:
                    self.malformed.append(offset)
                elif kind == Kind.LEFT_OUT and wrong[0] and self.chance.random() < 0.02:
                    wrong[0] -= 1
                    self.also.append(offset)
                    self.kept.append((offset, one._replace(offset=offset, value=b"should not be here")))
                elif kind == Kind.RECORD and wrong[1] and self.chance.random() < 0.02:
                    wrong[1] -= 1
                    self.forgotten.append(offset)
                elif kind == Kind.RECORD:
                    self.kept.append((offset, made_by(rule, one._replace(offset=offset), value)))
            at, left, number = at + size + self.chance.choice([0, 0, 1, 3]), left - size, number + size
        self.end = at
        self.copy: dict[int, Record] = {n: record for n, (_, record) in enumerate(self.kept)}

    def _record(self, number: int) -> Record:
        value = self.chance.choice([None, self.chance.randbytes(self.chance.randrange(1, 40))])
        headers = (("h", None),) if number % 3 else ()
        return Record(0, 1_700_000_000_000 + number, b"key %d" % number if number % 7 else None, value, headers)

    def run(
        self, *, passed: int | None = None, chunk_records: int = 256, quarantined: bool = True, replicas: bool = False
    ) -> list[Any]:
        sources = [offset for offset, _ in self.kept]
        gaps = [Gap(n, here) for n, (there, here) in enumerate(pairwise(sources), 1) if here > there + 1]
        first = sources[0] if sources else 70
        begun = [
            plain_run(source_base=60, destination_base=0, sequence_base=0, sequence_end=0, transform=self.rule.digest)
        ]
        if sources:
            packed = pack(gaps, sequence_base=0, source_base=first)
            begun.append(
                plain_run(
                    source_base=first,
                    destination_base=0,
                    sequence_base=0,
                    sequence_end=len(sources),
                    gaps=packed,
                    transform=self.rule.digest,
                )
            )
        if passed is not None:
            count = len(sources)
            begun.append(
                plain_run(
                    source_base=passed,
                    destination_base=count,
                    sequence_base=count,
                    sequence_end=count,
                    transform=self.rule.digest,
                )
            )
        assert made_otherwise(begun, self.rule.digest) == ""
        map_of = Translator(begun, len(sources))
        notes = [OnRecord(side="source", first=one, end=one + 1, cause="quarantine") for one in self.malformed]
        facts = AuditedPartition(
            topic="t",
            partition=0,
            copy_topic="t",
            end=len(sources),
            source_end=self.end,
            copy_end=len(sources),
            chunk_records=chunk_records,
            on_record=tuple(notes if quarantined else ()),
        )
        facts = of_transformed(facts, self.rule, begun, map_of, (0, self.end))
        auditor = auditor_of(self.source, self._copied(), strong=self.chance.random() < 0.5, replicas=replicas)
        return [
            result
            for chunk in chunks_of(facts, AuditRequest(), map_of)
            for result in compared(auditor, evaluated(source_rows(chunk, auditor), self.chance, self.rule))
        ]

    def _copied(self) -> list[Batch]:
        """Batches of consecutive numbers, at offsets like them: what is dropped on a disk leaves a hole."""
        found, group = [], []
        for number in [*sorted(self.copy), -1]:
            if group and (number != group[-1] + 1 or self.chance.random() < 0.05):
                records = [self.copy[one]._replace(offset=0) for one in group]
                found.append(batch_at(group[0], records, self.chance.choice([0, 3]), producer=(PRODUCER, group[0])))
                group = []
            group.append(number)
        return found


def counted(results: Sequence[Any]) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for one in results:
        assert not one.error, one.error
        for kind, why, records in one.counts:
            total[kind, why] = total.get((kind, why), 0) + records
    return total


def named(results: Sequence[Any]) -> set[tuple[str, int, int]]:
    return {
        (one.kind, *(place if place == NOWHERE else place + step for place in (one.source, one.copy)))
        for result in results
        for one in result.differences
        if not one.explained
        for step in range(one.records)
    }


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_by_the_rule_has_no_difference_and_all_source_records_are_accounted_for(seed: int) -> None:
    case = Case(seed)
    found = case.run()
    counts = counted(found)
    assert counts.keys() == {("skipped", LEFT_OUT), ("missing", "quarantine")}
    assert counts["missing", "quarantine"] == len(case.malformed)
    records = sum(batch.records for batch in case.source)
    assert sum(one.records for one in found) == len(case.kept)
    assert counts["skipped", LEFT_OUT] + len(case.malformed) + len(case.kept) == records
    assert all(one.source_digest == one.copy_digest for one in found)
    assert len(found) > 8
    assert [(one.source_from, one.source_to) for one in found] == [
        (low, min(low + 256, case.end)) for low in range(60, case.end, 256)
    ], "every offset from the link's start on"


@pytest.mark.parametrize("seed", range(6))
def test_each_fault_is_named_with_both_offsets_and_none_is_invented(seed: int) -> None:
    case = Case(seed, also=8, forgotten=8)
    numbers = case.chance.sample(range(len(case.kept)), 30)
    offset_of = [offset for offset, _ in case.kept]
    numbers = [one for one in numbers if offset_of[one] not in case.also]
    expected = {("extra", offset, offset_of.index(offset)) for offset in case.also}
    expected |= {("missing", offset, NOWHERE) for offset in case.forgotten}
    for number in numbers[:10]:
        del case.copy[number]
        expected.add(("missing", offset_of[number], NOWHERE))
    for number in numbers[10:20]:
        case.copy[number] = case.copy[number]._replace(value=b"other")
        expected.add(("different", offset_of[number], number))
    found = case.run()
    assert named(found) == expected
    assert all(one.detail == "the rule leaves it out" for it in found for one in it.differences if one.kind == "extra")


@pytest.mark.parametrize(
    "rule",
    [
        TopicTransform(where="keep"),
        TopicTransform(where="keep", headers="drop"),
        TopicTransform(where="keep", key="new"),
        TopicTransform(where="keep", key="new", value="masked", headers="drop"),
    ],
)
def test_parts_that_the_rule_does_not_change_are_compared_with_those_of_the_source(rule: TopicTransform) -> None:
    case = Case(8, rule=rule, records=600)
    assert named(case.run()) == set()
    others: dict[str, Any] = {"timestamp_ms": 1, "key": b"other", "value": b"other", "headers": (("other", b""),)}
    for part, other in others.items():
        number = case.chance.randrange(len(case.kept))
        case.copy = {n: one for n, (_, one) in enumerate(case.kept)}
        case.copy[number] = case.copy[number]._replace(**{part: other})
        assert named(case.run()) == {("different", case.kept[number][0], number)}, part


def test_values_that_are_not_one_object_reach_spark_as_malformed() -> None:
    rule = TopicTransform(json_schema="a INT", where="keep")
    records = [Record(0, 1, b"k", value, ()) for value in (b'{"a": 1}', b'{"a": 1} {"a": 2}', None)]
    facts = AuditedPartition(topic="t", partition=0, copy_topic="t", transform=rule, source_to=3, source_end=3)
    run = plain_run(source_base=0, destination_base=0, sequence_base=0, sequence_end=0, transform=rule.digest)
    (chunk,) = chunks_of(facts.model_copy(update={"chunk_records": 10}), AuditRequest(), Translator([run]))
    rows = pa.Table.from_batches(source_rows(chunk, auditor_of([batch_at(0, records, 0)], ())))
    assert rows["__kind"].to_pylist() == [Kind.BEGIN, Kind.RECORD, Kind.MALFORMED, Kind.RECORD, Kind.END]


def test_what_was_not_masked_is_different() -> None:
    case = Case(1)
    number, (offset, _) = 5, case.kept[5]
    plain = next(one for batch in case.source for one in read_records(batch) if one.offset == offset)
    case.copy[number] = plain
    assert named(case.run()) == {("different", offset, number)}


def test_a_malformed_record_that_nothing_notes_is_missing() -> None:
    case = Case(2)
    assert named(case.run(quarantined=False)) == {("missing", offset, NOWHERE) for offset in case.malformed}


def test_a_malformed_record_that_the_first_route_notes_is_left_out_on_the_others() -> None:
    case = Case(2, rule=RULE.model_copy(update={"malformed": "omit"}))
    found = case.run(quarantined=False)
    assert named(found) == set()
    assert set(counted(found)) == {("skipped", LEFT_OUT)}
    assert counted(found)["skipped", LEFT_OUT] > len(case.malformed) > 0


def test_records_behind_the_last_copied_one_are_a_tail_until_the_map_says_that_the_link_has_passed_them() -> None:
    case = Case(3)
    cut = len(case.kept) // 2
    behind = case.kept[cut][0]
    tail = [offset for offset, _ in case.kept[cut:]] + [one for one in case.malformed if one >= behind]
    case.kept = case.kept[:cut]
    case.copy = {number: one for number, one in case.copy.items() if number < cut}
    found = case.run()
    assert sum(one.tail for one in found) >= len(tail)
    assert named(found) == set()
    passed = case.run(passed=case.end)
    assert sum(one.tail for one in passed) == 0
    assert named(passed) == {("missing", offset, NOWHERE) for offset in tail if offset not in case.malformed}


def test_a_rule_that_keeps_nothing_is_evaluated_although_the_map_has_no_record() -> None:
    case = Case(4)
    records = sum(batch.records for batch in case.source)
    kept = [offset for offset, _ in case.kept]
    case.kept, case.copy = [], {}
    found = case.run(passed=case.end)
    assert named(found) == {("missing", offset, NOWHERE) for offset in kept}
    assert counted(found)["skipped", LEFT_OUT] == records - len(kept) - len(case.malformed)


def test_a_damaged_batch_of_the_source_is_named_and_no_record_of_it_is_called_left_out() -> None:
    case = Case(5)
    at = next(n for n, batch in enumerate(case.source) if batch.records > 5 and n > 3)
    whole = case.source[at]
    case.source[at] = flipped(whole, 8 * (len(whole.view) - 3))
    found = case.run()
    damaged = [one for it in found for one in it.differences if one.kind == "damaged"]
    assert min(one.source for one in damaged) == whole.base_offset
    assert max(one.source + one.records for one in damaged) == whole.next_offset
    counts = counted(found)
    others = [
        decided(one.value)[0] for batch in case.source if batch is not case.source[at] for one in read_records(batch)
    ]
    assert counts["skipped", LEFT_OUT] == others.count(Kind.LEFT_OUT)
    inside = range(whole.base_offset, whole.next_offset)
    copies = {number for number, (offset, _) in enumerate(case.kept) if offset in inside}
    assert copies
    assert named(found) == {("unknown", NOWHERE, number) for number in copies} | {
        ("damaged", offset, NOWHERE) for offset in inside
    }, "neither missing nor extra: nothing shows what the source had there"


def test_without_the_secrets_nothing_is_compared(tmp_path: Any) -> None:
    rule = RULE.model_copy(update={"secrets": {"salt": f"${{directory:{tmp_path}:salt}}"}})
    case = Case(6, records=50)
    facts = AuditedPartition(topic="t", partition=0, copy_topic="t", transform=rule, source_to=100, source_end=100)
    run = plain_run(source_base=0, destination_base=0, sequence_base=0, sequence_end=0, transform=rule.digest)
    (chunk,) = chunks_of(facts.model_copy(update={"chunk_records": 1000}), AuditRequest(), Translator([run]))
    auditor = auditor_of(case.source, ())
    (result,) = compared(auditor, evaluated(source_rows(chunk, auditor), case.chance))
    assert result.verdict == "error"
    assert result.error.startswith(f"needs the secrets of transformation {rule.digest}: `salt`: ")
    assert "not evaluated" in auditor.compare(chunk).error


def test_rows_that_are_lost_on_the_way_are_an_error() -> None:
    case = Case(7, records=400)
    lost = [False]

    def without_one(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in rows:
            records = np.flatnonzero(one.column("__out_kind").to_numpy() == Kind.RECORD)
            lost[0] = lost[0] or bool(len(records))
            yield one.filter(pa.array(np.arange(len(one)) != records[0])) if len(records) else one

    run = plain_run(source_base=0, destination_base=0, sequence_base=0, sequence_end=0, transform=RULE.digest)
    facts = AuditedPartition(
        topic="t", partition=0, copy_topic="t", transform=RULE, source_to=1000, source_end=1000, chunk_records=10_000
    )
    (chunk,) = chunks_of(facts, AuditRequest(), Translator([run]))
    auditor = auditor_of(case.source, ())
    (result,) = compared(auditor, without_one(evaluated(source_rows(chunk, auditor), case.chance)))
    assert lost[0]
    assert "of 400 records of the source came back from Spark" in result.error


def test_records_of_another_rule_are_not_compared() -> None:
    other = plain_run(source_base=0, destination_base=0, sequence_base=0, sequence_end=9, transform="abc123")
    assert made_otherwise([other], RULE.digest) == (
        f"its records were made by transformation abc123, and the plan has transformation {RULE.digest}"
    )
    assert (
        made_otherwise([other], "")
        == "its records were made by transformation abc123, and the plan has no transformation"
    )


AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "fields": [{"name": "id", "type": "long"}, {"name": "email", "type": ["null", "string"]}],
    }
)
AVRO = TopicTransform(
    avro=AvroFormat(schema_text=AVRO_SCHEMA, schema_id=7),
    where="v.id % 2 = 0",
    set_fields={"email": "'x'"},
    malformed="quarantine",
)


def person(number: int, email: str | None, schema_id: int = 7) -> bytes:
    """A framed value of the schema."""
    long = bytes([number << 1 & 127]) if number < 64 else bytes([number << 1 & 127 | 128, number >> 6])
    text = b"\0" if email is None else b"\2" + bytes([len(email) << 1]) + email.encode()
    return b"\0" + schema_id.to_bytes(4, "big") + long + text


def evaluated_avro(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As the JVM does by the rule: it sees the fields only, and gives back those that are set."""
    types = (pa.int32(), pa.int64(), *[pa.binary()] * 3, pa.int64(), *[pa.binary()] * 3)
    for batch in rows:
        made = []
        for row in batch.to_pylist():
            kind, fields = row["__kind"], None
            if kind == Kind.RECORD and row["__fields"] is None:
                kind = Kind.MALFORMED
            elif kind == Kind.RECORD:
                number = json.loads(row["__fields"])["id"]
                kind = Kind.RECORD if number % 2 == 0 else Kind.LEFT_OUT
                fields = b'{"email":1}' if number == 50 else b'{"email":"x"}'
            originals = (row[name] for name in ("__ms", "key", "value", "__headers"))
            made.append((int(kind), row["offset"], None, None, fields, *originals))
        columns = [pa.array(column, kind) for column, kind in zip(zip(*made, strict=True), types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, list(AUDITED))


def audit_of_avro(values: Sequence[bytes], copies: Sequence[tuple[int, bytes]], *, passed: int) -> Any:
    """Compare one chunk. ``copies``: source offset and value of each copied record."""
    source = [batch_at(0, [Record(0, 1_700_000_000_000, b"k", value, ()) for value in values])]
    made = [Record(0, 1_700_000_000_000, b"k", value, ()) for _, value in copies]
    copy = [batch_at(0, made, producer=(PRODUCER, 0))]
    offsets = [offset for offset, _ in copies]
    gaps = [Gap(n, here) for n, (there, here) in enumerate(pairwise(offsets), 1) if here > there + 1]
    count = len(copies)
    starts = {"source_base": offsets[0], "destination_base": 0, "sequence_base": 0, "transform": AVRO.digest}
    packed = pack(gaps, sequence_base=0, source_base=offsets[0])
    later = starts | {"source_base": passed, "destination_base": count, "sequence_base": count}
    runs = [plain_run(**starts, sequence_end=count, gaps=packed), plain_run(**later, sequence_end=count)]
    map_of = Translator(runs, count)
    ends = {"end": count, "source_end": len(values), "copy_end": count, "chunk_records": 1000}
    facts = AuditedPartition(topic="t", partition=0, copy_topic="t", **ends)
    facts = of_transformed(facts, AVRO, runs, map_of, (0, len(values)))
    (chunk,) = chunks_of(facts, AuditRequest(), map_of)
    auditor = auditor_of(source, copy)
    (result,) = compared(auditor, evaluated_avro(source_rows(chunk, auditor)))
    return result


def test_values_in_avro_are_compared_with_what_the_rule_makes_of_them() -> None:
    values = [person(number, None if number % 3 else "a@b") for number in range(60)]
    copies = [(number, person(number, "x")) for number in range(0, 60, 2) if number != 50]
    plain = next(at for at, (number, _) in enumerate(copies) if number % 3 == 0 and number)
    copies[plain] = (copies[plain][0], values[copies[plain][0]])
    result = audit_of_avro(values, copies, passed=60)
    assert not result.error
    assert named([result]) == {("different", copies[plain][0], plain), ("missing", 50, NOWHERE)}, (
        "one that was not masked, and one whose content the schema does not permit and nothing has on record"
    )
    assert {(kind, why): n for kind, why, n in result.counts}["skipped", LEFT_OUT] == 30


def test_a_schema_that_the_rule_lacks_is_in_the_tail_or_an_error() -> None:
    """The link stops there. If it has passed the value, it had the schema then, and nothing shows what it made of it."""
    values = [*(person(number, "a") for number in range(10)), person(10, "a", 8), person(12, "a")]
    copies = [(number, person(number, "x")) for number in range(0, 10, 2)]
    stopped = audit_of_avro(values, copies, passed=10)
    assert (stopped.error, named([stopped]), stopped.tail) == ("", set(), 2)
    passed = audit_of_avro(values, copies, passed=12)
    assert passed.verdict == "error"
    assert "value at offset 10 cannot be decoded: it has schema ID 8" in passed.error


def test_a_defect_while_the_source_is_read_is_an_error_of_its_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strait.audit.evaluating.decode", lambda _: [][0])
    result, *_ = Case(9, records=100).run()
    assert (result.verdict, result.error) == ("error", "IndexError: list index out of range")


def test_followers_of_the_source_are_checked_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their faults come through Spark with the end of the chunk, and with the damage that the leader has itself."""
    case = Case(8, records=300)
    whole = case.source[3]
    case.source[3] = flipped(whole, 8 * (len(whole.view) - 3))
    seen: list[Any] = []

    def check(followers: Any, leader: Any) -> FollowersRead:
        if followers._side == "destination":
            return FollowersRead(bytes=7)
        seen.append(leader)
        return FollowersRead([Difference("damaged", 75, NOWHERE, 2, detail="source; on broker 2")], ["broker 3"], 5)

    monkeypatch.setattr(Followers, "check", check)
    found = case.run(chunk_records=10_000, replicas=True)
    (result,) = found
    (leader,) = seen
    assert leader.checksums == {one.base_offset: one.crc for one in case.source}
    assert leader.damaged == {whole.base_offset}
    assert (result.replica_bytes, result.unread) == (12, "broker 3")
    assert ("damaged", 75, NOWHERE) in named(found)
    assert case.run() and len(seen) == 1
