"""Results of a topic's transformation for some of its records, as text and as plain data. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from strait.text import Readable, readable, utc

SHOWN = 10
_LEFT_OUT, _MALFORMED = 3, 1
_LINE_BYTES = 500
_WORDS = {"copied": "copied", "left_out": "left out by `where`", "malformed": "malformed"}


class Content(NamedTuple):
    """The parts of a record that a transformation may change."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Previewed(NamedTuple):
    """One record. ``after``: its copy; None if there is none. ``to``: the destination topic of its route, if the topic is
    divided."""

    partition: int
    offset: int
    timestamp_ms: int
    result: Literal["copied", "left_out", "malformed"]
    before: Content
    after: Content | None = None
    to: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """Results for recent records of a topic.

    Attributes:
        transform: its transformation, as text. ``malformed``: its action for records that cannot be parsed.
        records: all that were evaluated.
        refusal: the expression that is not allowed, and the reason; no record was evaluated then.
        waiting: other reasons why the topic is not copied like this.
        secrets: names of the secrets for which placeholders were used.
        routes: destination topics of the routes, in their order; empty: the topic is not divided.
    """

    topic: str
    transform: str
    malformed: str
    records: Sequence[Previewed] = ()
    refusal: str = ""
    waiting: Sequence[str] = ()
    secrets: Sequence[str] = ()
    routes: Sequence[str] = ()

    def count(self, result: str) -> int:
        """Return the number of records with this result."""
        return sum(record.result == result for record in self.records)

    @property
    def taken(self) -> Mapping[str, int]:
        """Destination topic of each route -> number of its records."""
        return {route: sum(record.to == route for record in self.records) for route in self.routes}

    @property
    def chosen(self) -> Sequence[Previewed]:
        """The records to show, by partition and offset: the newest, of each route at least one, and of those that are not
        copied at least some."""
        newest = sorted(self.records, key=lambda one: (one.timestamp_ms, one.partition, one.offset), reverse=True)
        malformed = [one for one in newest if one.result == "malformed"][:_MALFORMED]
        left_out = [one for one in newest if one.result == "left_out"][:_LEFT_OUT]
        copied = [one for one in newest if one.result == "copied"][: SHOWN - len(malformed) - len(left_out)]
        of_routes = [next((one for one in newest if one.to == route), None) for route in self.routes]
        copied = [*filter(None, of_routes), *(one for one in copied if one not in of_routes)]
        first = [*malformed, *left_out, *copied][: max(SHOWN, len(self.routes) + len(malformed) + len(left_out))]
        rest = [one for one in newest if one not in first][: SHOWN - len(first)]
        return sorted([*first, *rest], key=lambda one: (one.partition, one.offset))

    def lines(self, *, hidden: bool) -> Iterator[str]:
        """Yield the preview as text. ``hidden``: sizes instead of contents."""
        yield f"topic {self.topic}: transformation {self.transform}"
        yield from (f"waits     {text}" for text in self.waiting)
        if self.refusal:
            yield f"refused   {self.refusal}"
            return
        if not self.records:
            yield "The source has no record of it."
            return
        shown = self.chosen
        yield (
            f"{len(self.records):,} recent records, evaluated twice with the same results: {self.count('copied'):,} copied, "
            f"{self.count('left_out'):,} left out, {self.count('malformed'):,} malformed; {len(shown)} of them:"
        )
        yield from (f"to {route}: {count:,}" for route, count in self.taken.items())
        for record in shown:
            yield ""
            yield from self._record(record, hidden=hidden)
        if self.secrets:
            yield ""
            names = ", ".join(f"secret.{name}" for name in self.secrets)
            yield f"Placeholders stand for {names}: results that depend on them are others in copies."

    def _record(self, one: Previewed, *, hidden: bool) -> Iterator[str]:
        word = _WORDS[one.result] + (f", so `malformed: {self.malformed}`" if one.result == "malformed" else "")
        word += f" to {one.to}" if one.to else " or by all routes" * (bool(self.routes) and one.result == "left_out")
        yield f"{self.topic}-{one.partition} offset {one.offset:,}, {utc(one.timestamp_ms)} UTC: {word}"
        for name in ("key", "value"):
            before = _part(getattr(one.before, name), hidden=hidden)
            yield f"  {name:<7} {before}"
            if one.after is not None:
                after = _part(getattr(one.after, name), hidden=hidden)
                same = getattr(one.after, name) == getattr(one.before, name)
                yield f"       -> {'unchanged' if same else after}"
        if one.before.headers:
            yield f"  headers {', '.join(name for name, _ in one.before.headers)}"
            if one.after is not None:
                yield f"       -> {'unchanged' if one.after.headers else 'none'}"

    def as_data(self, *, hidden: bool) -> Mapping[str, Any]:
        """Return the preview as plain data. ``hidden``: sizes without contents."""
        return {
            "topic": self.topic,
            "transform": self.transform,
            "refused": self.refusal,
            "waiting": list(self.waiting),
            "placeholders": [f"secret.{name}" for name in self.secrets],
            "evaluated": len(self.records),
            **{result: self.count(result) for result in _WORDS},
            "routes": dict(self.taken),
            "records": [
                {
                    "partition": one.partition,
                    "offset": one.offset,
                    "timestamp_ms": one.timestamp_ms,
                    "result": one.result,
                    "to": one.to,
                    "before": _content(one.before, hidden=hidden),
                    "after": None if one.after is None else _content(one.after, hidden=hidden),
                }
                for one in self.chosen
            ],
        }


def _part(data: bytes | None, *, hidden: bool) -> str:
    found = readable(data, _LINE_BYTES)
    if found is None:
        return "null"
    if hidden:
        return f"{found.size:,} bytes"
    more = f" ({found.size:,} bytes)" if found.shown < found.size else ""
    return f"{_shown(found)}{more}"


def _shown(found: Readable) -> str:
    return f"0x{found.text}" if found.encoding == "hex" else found.text.replace("\n", " ")


def _content(content: Content, *, hidden: bool) -> dict[str, Any]:
    def part(data: bytes | None) -> dict[str, Any] | None:
        found = readable(data, 0 if data is None else len(data))
        if found is None:
            return None
        told = {"bytes": found.size}
        return told if hidden else told | {"text": found.text, "encoding": found.encoding}

    headers = [[name, part(value)] for name, value in content.headers]
    return {"key": part(content.key), "value": part(content.value), "headers": headers}
