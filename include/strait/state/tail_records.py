"""Format of exported records of a link's tail: in a topic, with added headers, and as lines of JSON. Pure."""

import base64
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from strait.state.quarantine_records import PREFIX

Headers = Sequence[tuple[str, bytes | None]]
ADDED = tuple(PREFIX + name for name in ("link", "topic", "partition", "offset", "timestamp_ms"))
"""The headers that an exported record has after its own."""


class Origin(NamedTuple):
    """The source coordinates of an exported record; unique among the records of all links."""

    link: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class TailRecord(NamedTuple):
    """A record of the tail, with its source coordinates. ``timestamp_ms`` -1: it has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def bytes(self) -> int:
        """Return the size of key, value and headers."""
        size = len(self.key or b"") + len(self.value or b"")
        return size + sum(len(name) + len(value or b"") for name, value in self.headers)

    def origin(self, link: str) -> Origin:
        return Origin(link, self.topic, self.partition, self.offset, self.timestamp_ms)


def origin_headers(record: TailRecord, link: str) -> list[tuple[str, bytes | None]]:
    """Return the record's own headers, then those with its origin."""
    said = (str(part).encode() for part in record.origin(link))
    return [*record.headers, *zip(ADDED, said, strict=True)]


def origin_of(headers: Headers) -> Origin | None:
    """Return the origin of an exported record; None if it is not an exported record."""
    last = headers[-len(ADDED) :]
    if tuple(name for name, _ in last) != ADDED:
        return None
    try:
        link, topic, *numbers = ((value or b"").decode() for _, value in last)
        return Origin(link, topic, *map(int, numbers))
    except ValueError:
        return None


def as_line(record: TailRecord) -> str:
    """Return one line of JSON with the whole record. Bytes that are not UTF-8 are in base64, under `key_base64` and
    `value_base64`."""
    headers = [{"name": name, **_field("value", value)} for name, value in record.headers]
    fields = {**summary(record), **_field("value", record.value), "headers": headers}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def summary(record: TailRecord) -> dict[str, Any]:
    """Return the record without its value and headers, for JSON."""
    place = {name: getattr(record, name) for name in ("topic", "partition", "offset", "timestamp_ms")}
    return {**place, **_field("key", record.key)}


def _field(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
