"""A transformation of JSON records, writers of such records, and what becomes of each by other code than Spark's."""

import hashlib
import json
import random
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from strait.config.route_names import route_name
from strait.config.transform import Transform
from strait.embedded.kafka import Cluster
from strait.state.reader import StateReader
from strait.state.transform import TopicTransform
from strait.state.translation import Fit, Translator
from strait.waiting import unix_ms
from support.kafka.log_ends import ends
from support.kafka.records import Record, read_all

Becomes = Callable[[Record], Record | None]

SALT = "a salt"
_SECONDS = 60.0


def transform(folder: Path, **changes: Any) -> TopicTransform:
    """Filter, key and fields; its secret is in ``folder``."""
    (folder / "salt").write_text(f"{SALT}\n", encoding="utf-8")
    masking = TopicTransform(
        json_schema="id BIGINT, email STRING, country STRING, amount DOUBLE, note STRING, at STRING",
        where="v.country <> 'US' AND v.amount > 10",
        key="sha2(concat(secret.salt, CAST(key AS STRING)), 256)",
        set_fields={"email": "regexp_replace(v.email, '^[^@]+', 'x')", "at": "CAST(offset AS STRING)"},
        drop_fields=("note",),
        rename_fields={"amount": "total"},
        malformed="quarantine",
        secrets={"salt": f"${{directory:{folder}:salt}}"},
    )
    return masking.model_copy(update=changes)


def rule(topic: str, given: TopicTransform) -> dict[str, Any]:
    """As it stands in a links file."""
    fields = {"set": dict(given.set_fields), "drop": list(given.drop_fields), "rename": dict(given.rename_fields)}
    of_format: dict[str, Any] = {"value": "json", "schema": given.json_schema}
    if (avro := given.avro) is not None:
        older = {int(number): text for number, text in avro.older.items()}
        of_format = {"value": "avro", "schema": avro.schema_text, "schema_id": avro.schema_id, "older": older}
    made = {
        "format": of_format,
        "where": given.where,
        "key": given.key,
        "fields": {name: one for name, one in fields.items() if one},
        "malformed": given.malformed,
        "secrets": dict(given.secrets),
    }
    made = {name: one for name, one in made.items() if one}
    assert TopicTransform.of(Transform.model_validate_json(json.dumps(made))) == given
    return {"match": topic, "transform": made}


def transformed(record: Record) -> Record | None:
    """What becomes of a record; the offset is the source's."""
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


class Writer:
    """Writes records, among them some that no reader can parse, to each partition in turn. With ``only_left_out`` none is copied.

    Args:
        transactional: in transactions, of which a third is aborted.
        becomes: what becomes of a record in the copy.
        routes: destination topic -> what becomes of a record there, of a topic that is divided.
        content: makes the value of the record of this number; default: in JSON.

    Attributes:
        copies: destination topic -> what becomes of a record there.
        kept_in: destination topic -> how many of those that are written are copied, by partition.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        partitions: int,
        seed: int,
        *,
        transactional: bool = False,
        becomes: Becomes = transformed,
        routes: Mapping[str, Becomes] | None = None,
        content: Callable[[random.Random, int], bytes | None] | None = None,
    ) -> None:
        self.copies: Mapping[str, Becomes] = routes or {topic: becomes}
        self._content = content or self._in_json
        self.topic = topic
        self._partitions = partitions
        self._rng = random.Random(seed)
        settings: dict[str, Any] = {"compression.type": "lz4", "linger.ms": 20, "enable.idempotence": True}
        self._transactional = transactional
        if transactional:
            settings["transactional.id"] = topic
        self._producer = Producer(cluster.client_properties | settings)
        if transactional:
            self._producer.init_transactions(_SECONDS)
        self._base_ms = unix_ms() - 60_000
        self.count = 0
        self.kept_in = {copy: [0] * partitions for copy in self.copies}
        self.only_left_out = False

    def produce(self, records: int) -> None:
        """Write so many records, one transaction if they are written in one."""
        kept = {copy: [0] * self._partitions for copy in self.copies}
        if self._transactional:
            self._producer.begin_transaction()
        for _ in range(records):
            partition = self.count % self._partitions
            value, key = self._content(self._rng, self.count), f"key {self.count}".encode()
            headers = [("h", b"\xff"), ("h", None)] if self.count % 3 else []
            at_ms = self._base_ms + self.count
            self._producer.produce(self.topic, value, key, partition, timestamp=at_ms, headers=headers)
            for copy, becomes in self.copies.items():
                kept[copy][partition] += becomes(Record(0, key, value, (), (0, 0))) is not None
            self.count += 1
            self._producer.poll(0)
        assert self._producer.flush(_SECONDS) == 0
        if self._transactional and self._rng.random() < 1 / 3:
            self._producer.abort_transaction(_SECONDS)
            return
        if self._transactional:
            self._producer.commit_transaction(_SECONDS)
        for copy, counts in kept.items():
            self.kept_in[copy] = [one + other for one, other in zip(self.kept_in[copy], counts, strict=True)]

    @property
    def kept(self) -> list[int]:
        """How many are copied, by partition, of a topic that is not divided."""
        return self.kept_in[self.topic]

    def _in_json(self, rng: random.Random, number: int) -> bytes | None:
        if rng.random() < 0.01:
            return rng.choice([b"", b"{", b"[]", b"null", b'{"id": "x"}', b'{"id": 1} {"id": 2}', b"\xff"])
        if rng.random() < 0.01:
            return None
        country = "US" if self.only_left_out else rng.choice(["US", "DE", "FR"])
        made = {"id": number, "email": f"person{number}@example.com", "country": country}
        return json.dumps(made | {"amount": rng.randrange(100) + 0.5, "note": "secret", "more": [1]}).encode()


def write_until(stop: threading.Event, writers: Sequence[Writer], rng: random.Random, per_second: float) -> None:
    """Write some records of each writer again and again, about so many each second together."""
    while not stop.is_set():
        count = 0
        for writer in writers:
            some = rng.choice([1, 3, 40, 400])
            writer.produce(some)
            count += some
        stop.wait(count / per_second)


def missing(destination: Cluster, topic: str, writer_kept: Sequence[int]) -> list[int]:
    """How many records each partition of the copy lacks."""
    found = ends(destination, topic, len(writer_kept))
    return [max(0, wanted - end) for wanted, end in zip(writer_kept, found, strict=True)]


def assert_transformed(
    source: Cluster,
    destination: Cluster,
    link: str,
    topic: str,
    partitions: int,
    *,
    route: str = "",
    becomes: Becomes = transformed,
) -> int:
    """Compare record by record, and each offset of the source with its translation. Returns how many records were copied.

    Args:
        route: destination topic of the route to compare. ``becomes``: what it makes of a record.
    """
    written, copied = read_all(source, topic, partitions), read_all(destination, route or topic, partitions)
    name = route_name(topic, route) if route else topic
    with StateReader(destination.client_properties, "destination", link, follow=("map",)) as state:
        state.catch_up(30)
        for partition in range(partitions):
            wanted = [made for record in written[partition] if (made := becomes(record)) is not None]
            where = f"{name}-{partition}"
            for number, (one, other) in enumerate(zip(copied[partition], wanted, strict=False)):
                assert one == other._replace(offset=number), f"{where}: record {number} of offset {other.offset}"
            assert len(copied[partition]) == len(wanted), f"{where}: {len(copied[partition])} of {len(wanted)} records"
            kept = [record.offset for record in wanted]
            end = written[partition][-1].offset if written[partition] else 0
            translator = Translator(state.runs[name, partition], written=len(kept), position=end + 1)
            for offset in range(end + 1):
                found = translator.to_destination(offset)
                fits = (Fit.EXACT, Fit.BEFORE_START) if not kept or offset < kept[0] else (Fit.EXACT,)
                assert found.offset == bisect_left(kept, offset), f"{where}: offset {offset} became {found}"
                assert found.fit in fits, f"{where}: offset {offset} became {found}"
    return sum(map(len, copied))
