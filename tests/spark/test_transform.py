"""Topics that are transformed on the way, on real Spark and real brokers: record by record what the rule says, once and in
order, whatever is killed."""

import contextlib
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from strait.launch.base import State
from strait.state.reader import StateReader
from strait.state.schema import TopicPolicy
from strait.state.transform import TopicTransform
from strait.state.translation import Fit, Translator
from strait.waiting import unix_ms
from support.fixtures.waiting import eventually
from support.kafka.records import Record, read
from support.links.links import Link

pytestmark = [pytest.mark.spark, pytest.mark.broker]

SALT = "a salt"


def transform(folder: Path, **changes: Any) -> TopicTransform:
    (folder / "salt").write_text(f"{SALT}\n", encoding="utf-8")
    masking = TopicTransform(
        json_schema="id BIGINT, email STRING, country STRING, amount DOUBLE, note STRING",
        where="v.country <> 'US' AND v.amount > 10",
        key="sha2(concat(secret.salt, CAST(key AS STRING)), 256)",
        set_fields={"email": "regexp_replace(v.email, '^[^@]+', 'x')", "at": "CAST(offset AS STRING)"},
        drop_fields=("note",),
        rename_fields={"amount": "total"},
        malformed="quarantine",
        secrets={"salt": f"${{directory:{folder}:salt}}"},
    )
    return masking.model_copy(update=changes)


class Source:
    """JSON records, among them some that no reader can parse, and what is to become of each."""

    def __init__(self, link: Link, seed: int) -> None:
        self._link = link
        self._rng = random.Random(seed)
        self._producer = Producer(link.source.client_properties | {"compression.type": "lz4", "linger.ms": 20})
        self._base_ms = unix_ms() - 60_000
        self.count = 0

    def produce(self, records: int) -> None:
        for _ in range(records):
            value, key = self._value(), f"key {self.count}".encode()
            headers = [("h", b"\xff"), ("h", None)] if self.count % 3 else []
            self._producer.produce(
                self._link.name,
                value,
                key,
                self.count % self._link.partitions,
                timestamp=self._base_ms + self.count,
                headers=headers,
            )
            self.count += 1
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def _value(self) -> bytes | None:
        rng = self._rng
        if rng.random() < 0.01:
            return rng.choice([b"", b"{", b"[]", b"null", b'{"id": "x"}', b'{"id": 1} {"id": 2}', b"\xff"])
        if rng.random() < 0.01:
            return None
        made = {"id": self.count, "email": f"person{self.count}@example.com", "country": rng.choice(["US", "DE", "FR"])}
        return json.dumps(made | {"amount": rng.randrange(100) + 0.5, "note": "secret", "more": [1]}).encode()


def expected(record: Record) -> Record | None:
    """What becomes of a record, by other code than Spark's; the offset is the source's."""
    if record.value is None:
        return None  # the condition is null
    try:
        value = json.loads(record.value)
        value["id"] + 0
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    if value["country"] == "US" or value["amount"] <= 10:
        return None
    made = {"id": value["id"], "email": "x@" + value["email"].partition("@")[2], "country": value["country"]}
    made |= {"total": value["amount"], "at": str(record.offset)}
    key = hashlib.sha256(SALT.encode() + (record.key or b"")).hexdigest().encode()
    return record._replace(key=key, value=json.dumps(made, separators=(",", ":")).encode())


def by_partition(found: Iterator[tuple[int, Record]], partitions: int) -> list[list[Record]]:
    each: list[list[Record]] = [[] for _ in range(partitions)]
    for partition, record in found:
        each[partition].append(record)
    return each


def assert_transformed(link: Link) -> None:
    """Record by record, and each offset translates to exactly its source's."""
    sources = by_partition(read(link.source, link.name, link.partitions), link.partitions)
    copies = by_partition(read(link.destination, link.name, link.partitions), link.partitions)
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("map",)) as state:
        state.catch_up(30)
        for partition in range(link.partitions):
            wanted = [made for record in sources[partition] if (made := expected(record)) is not None]
            assert [one[1:] for one in copies[partition]] == [one[1:] for one in wanted]
            translator = Translator(state.runs[link.name, partition], written=len(wanted))
            for number, record in enumerate(wanted):
                there = translator.to_destination(record.offset)
                assert there.offset == number
            assert translator.to_destination(wanted[-1].offset).fit is Fit.EXACT


def until_all_is_there(link: Link, within_seconds: float = 240.0) -> None:
    wanted = sum(expected(record) is not None for _, record in read(link.source, link.name, link.partitions))
    link.until(lambda: link.copied() >= wanted, f"{wanted} records are copied", within_seconds)
    assert_transformed(link)


@pytest.mark.core
def test_records_are_filtered_masked_and_set_aside(link: Link, tmp_path: Path) -> None:
    source = Source(link, 1)
    source.produce(4_000)
    link.publish(slots=1, policy=TopicPolicy(transform=transform(tmp_path)))
    link.submit(ledger_seconds=3600)
    until_all_is_there(link)
    for _ in range(3):
        source.produce(5)
        until_all_is_there(link)
    source.produce(4_000)
    until_all_is_there(link)
    sources = read(link.source, link.name, link.partitions)
    assert any(record.value is not None and b"secret" in record.value for _, record in sources)
    copies = [*read(link.destination, link.name, link.partitions)]
    copies += read(link.destination, f"strait.{link.name}.quarantine", 1)
    assert not [record for _, record in copies if b"secret" in (record.value or b"")], "nothing that is dropped arrives"
    assert SALT not in link.log()
    link.publish(slots=1, stopped=True)
    assert link.until_ended().state is State.FINISHED


@pytest.mark.parametrize("seed", [1])
def test_whatever_is_killed_each_record_arrives_once(link: Link, tmp_path: Path, seed: int) -> None:
    rng, source = random.Random(seed), Source(link, seed)
    source.produce(2_000)
    link.publish(slots=1, policy=TopicPolicy(transform=transform(tmp_path)))
    link.submit(ledger_seconds=3600)
    link.until(lambda: link.copied() > 0, "it copies")
    for _ in range(4):
        source.produce(rng.randrange(1, 3_000))
        victim = eventually(link.slot_process, what="a worker runs the slot", within_seconds=120)
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    link.kill_everything()
    source.produce(1_000)
    link.submit(ledger_seconds=3600)
    until_all_is_there(link)


def test_an_expression_that_spark_refuses_stops_its_topic_and_says_why(link: Link, tmp_path: Path) -> None:
    Source(link, 3).produce(100)
    link.publish(slots=1, policy=TopicPolicy(transform=TopicTransform(where="rand() < 0.5")))
    link.submit(ledger_seconds=3600)
    found: dict[str, str] = {}

    def refused() -> bool:
        with StateReader(link.destination.client_properties, "destination", link.name, follow=("reports",)) as state:
            state.catch_up(30)
            for reports in state.reports.values():
                for one in (row for report in reports for row in report.partitions):
                    found[one.reason or ""] = one.detail
        return "transform_refused" in found

    link.until(refused, "the partitions say that their expression is refused")
    assert "Rand" in found["transform_refused"]
    assert link.copied() == 0
