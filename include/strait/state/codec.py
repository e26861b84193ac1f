"""Conversion of state records to the bytes of their keys and values, and back. Pure; strict in both directions.

A key has exactly one byte form, because compaction compares bytes.
"""

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from strait.json_text import value_of
from strait.model import TopicPartition
from strait.state import bounds
from strait.state.audit_records import Audit, TopicResult
from strait.state.failover_records import Failover
from strait.state.group_sync_records import GroupSyncReport
from strait.state.keys import (
    AuditKey,
    FailoverKey,
    GroupSyncKey,
    HistoryKey,
    Key,
    LedgerKey,
    LedgerMarkKey,
    LossAcknowledgementKey,
    LossKey,
    MovedCopiesKey,
    PlanKey,
    ProducerKey,
    ReportKey,
    RunKey,
    SlotPartKey,
    TopicResultKey,
)
from strait.state.ledger_records import LedgerMark, LedgerPart
from strait.state.moved_copies import MovedCopies
from strait.state.packed_gaps import check
from strait.state.record import Record
from strait.state.report_changes import KEPT, SPANS_MS, FailureReport, HistoryPoint, ReportChanges, TrafficReport
from strait.state.report_records import Report
from strait.state.schema import Loss, LossAcknowledgement, OffsetMapping, Plan, Registration

_V = 1
_SHOWN = 200  # maximum characters of foreign text in an error
_KEY_BYTES = 8_000  # a few names of at most 249 characters, and an application's of 2,000
_OURS = b'{"v":%d,' % _V
_ROW = re.compile(
    rb'"topic":"([^"\\]{1,600})","partition":([0-9]{1,10}),'
)  # two topics' names and an arrow, for a route
Value = TypeVar(
    "Value",
    Plan,
    OffsetMapping,
    Report,
    ReportChanges,
    TrafficReport,
    FailureReport,
    HistoryPoint,
    GroupSyncReport,
    LedgerPart,
    LedgerMark,
    Loss,
    LossAcknowledgement,
    Registration,
    MovedCopies,
    Failover,
    Audit,
    TopicResult,
)
Model = TypeVar("Model", bound=BaseModel)


class Unreadable(ValueError):
    """A record that this version cannot read; the message has the reason."""


SlotReport = Report | ReportChanges | TrafficReport | FailureReport
Reported = SlotReport | HistoryPoint | GroupSyncReport
AnyValue = (
    Plan
    | OffsetMapping
    | LedgerPart
    | LedgerMark
    | Loss
    | LossAcknowledgement
    | Registration
    | MovedCopies
    | Failover
    | Audit
    | TopicResult
    | Reported
)


def key_of(value: AnyValue) -> Key:
    """Return the key under which a value is written."""
    if isinstance(value, Plan):
        return PlanKey(group=value.group)
    if isinstance(value, OffsetMapping):
        return run_key(value)
    if isinstance(value, Loss):
        return LossKey(
            topic=value.topic,
            partition=value.partition,
            side=value.side,
            cause=value.cause,
            from_offset=value.from_offset,
        )
    if isinstance(value, LossAcknowledgement):
        return LossAcknowledgementKey(acknowledged=value.topic)
    if isinstance(value, Registration):
        return ProducerKey(producer_id=value.producer_id)
    if isinstance(value, MovedCopies):
        return MovedCopiesKey(moved_in=value.moved_in, link=value.link)
    if isinstance(value, Failover):
        return FailoverKey(failover=value.id)
    if isinstance(value, Audit):
        return AuditKey(audit=value.id)
    if isinstance(value, TopicResult):
        return TopicResultKey(verified=value.topic, kind=value.kind)
    if isinstance(value, LedgerPart):
        return LedgerKey(ledger=value.group, application=value.application, slot=value.slot)
    if isinstance(value, LedgerMark):
        return LedgerMarkKey(written=value.group, application=value.application)
    return _reported_key(value)


def _reported_key(value: Reported) -> Key:
    if isinstance(value, GroupSyncReport):
        return GroupSyncKey(consumer_groups=value.link)
    if isinstance(value, HistoryPoint):
        return _history_key(value)
    if isinstance(value, Report):
        return ReportKey(group=value.group, slot=value.slot, part=value.part)
    part: Literal["changes", "traffic", "failure"] = "changes"
    if not isinstance(value, ReportChanges):
        part = "traffic" if isinstance(value, TrafficReport) else "failure"
    return SlotPartKey(group=value.group, slot=value.slot, part=part)


def _history_key(point: HistoryPoint) -> HistoryKey:
    span_ms = SPANS_MS[point.span]
    number, into_ms = divmod(point.at_ms, span_ms)
    return HistoryKey(
        group=point.group,
        slot=point.slot,
        span=point.span,
        place=number % KEPT[point.span],
        began=into_ms * 60 // span_ms,
    )


def kind_of_ledger(raw_key: bytes | None) -> "type[LedgerPart] | type[LedgerMark]":
    """Return the type of a record of the ledger topic."""
    return LedgerMark if raw_key is not None and raw_key.startswith(b'{"written":') else LedgerPart


def is_acknowledgement(raw_key: bytes | None) -> bool:
    """Return whether a record of the losses topic acknowledges losses."""
    return raw_key is not None and raw_key.startswith(b'{"acknowledged":')


def is_of_moved_copies(raw_key: bytes | None) -> bool:
    """Return whether a record of the producers topic is about copies that another tool made."""
    return raw_key is not None and raw_key.startswith(b'{"moved_in":')


def run_key(run: OffsetMapping) -> RunKey:
    """Return the key under which an offset segment is written."""
    said = json.dumps((run.destination, run.source_id, run.destination_id, run.source_base, run.destination_base))
    check = zlib.crc32(f'{said[:-1]}, "{run.gaps}"]'.encode())  # gaps are in base64, which needs no escapes
    return RunKey(topic=run.topic, partition=run.partition, sequence_base=run.sequence_base, check=check)


_LATER: Mapping[type[Record], tuple[str, ...]] = {
    Plan: ("stop", "source_cluster", "destination_cluster", "decisions", "backfill", "replaced", "bounds"),
    Registration: ("purpose",),
    OffsetMapping: ("transform",),
    Failover: (
        "group_list",
        "topics",
        "wave_topics",
        "wave_groups",
        "topics_left",
        "still_paused",
        "held_elsewhere",
        "transformed",
    ),
}
"""Fields that older versions reject; they are written only if they differ from their defaults."""


def encode_key(key: Key) -> bytes:
    """Return the only byte form of a key."""
    return key.model_dump_json().encode()


def encode(value: AnyValue) -> tuple[bytes, bytes]:
    """Return key and value as they are written."""
    if isinstance(value, ReportChanges | TrafficReport | FailureReport | HistoryPoint):
        raw = value.model_dump_json(exclude_defaults=True).encode()
        return encode_key(key_of(value)), b'{"v":%d,' % value.v + raw.removeprefix(b"{")
    unset = {name for name in _LATER.get(type(value), ()) if getattr(value, name) == _default(value, name)}
    return encode_key(key_of(value)), value.model_dump_json(exclude=unset).encode()


def _default(value: AnyValue, name: str) -> Any:
    return type(value).model_fields[name].default


def decode_key(kind: type[Model], raw: bytes | None) -> Model:
    """Decode a key. Raises Unreadable."""
    if raw is None:
        raise Unreadable("the record has no key")
    if len(raw) > _KEY_BYTES:
        raise Unreadable(f"its key has {len(raw):,} bytes, and no key has more than {_KEY_BYTES:,}")
    return _strict(kind, raw, "key")


def decode(kind: type[Value], raw_key: bytes | None, raw_value: bytes) -> Value:
    """Decode a value.

    Raises:
        Unreadable: it is not JSON, has another version, violates the schema, or is under the wrong key. No other error
            occurs, since a client with permission to write to a state topic must not be able to stop its readers.
    """
    try:
        return _decoded(kind, raw_key, raw_value)
    except Unreadable:
        raise
    except Exception as error:  # any unforeseen error
        raise Unreadable(f"{type(error).__name__}: {str(error)[:_SHOWN]}") from error


def _decoded(kind: type[Value], raw_key: bytes | None, raw_value: bytes) -> Value:
    try:
        bounds.check_size(kind, raw_value)
        version = _V if raw_value.startswith(_OURS) else _version(raw_value)
        if version != _V:
            raise Unreadable(f"it has v {repr(version)[:_SHOWN]}, and this version of Strait reads v {_V}")
        bounds.check_fields(kind, raw_value)
    except bounds.TooMuch as error:
        raise Unreadable(str(error)) from None
    value = _strict(kind, raw_value, "value")
    if isinstance(value, OffsetMapping):
        try:
            check(value.gaps)
        except ValueError as error:
            raise Unreadable(f"value.gaps: {error}") from None
    if encode_key(key_of(value)) != raw_key:
        raise Unreadable(f"its key {_shown(raw_key)} does not fit its value")
    return value


def _version(raw_value: bytes) -> object:
    try:
        value = value_of(raw_value)
    except ValueError:
        return _V  # not a Strait record: the schema gives the exact error
    return value.get("v", _V) if isinstance(value, dict) else _V


def is_of_groups(key: bytes) -> bool:
    """Return whether a record of the reports topic is a consumer group report."""
    return key.startswith(b'{"consumer_groups":')


class Naming:
    """Whether a slot's report has a row of one of some partitions, without decoding it, in a tenth of the time."""

    def __init__(self, places: Iterable[TopicPartition]) -> None:
        self._places = {(place.topic.encode(), b"%d" % place.partition) for place in places}

    def __call__(self, raw_value: bytes) -> bool:
        return not self._places.isdisjoint(_ROW.findall(raw_value))


def decode_report(raw_key: bytes | None, raw_value: bytes) -> SlotReport | GroupSyncReport:
    """Decode a record of the reports topic, of any type. Raises Unreadable."""
    key = raw_key or b""
    if is_of_groups(key):
        return decode(GroupSyncReport, raw_key, raw_value)
    if key.endswith(b',"part":"changes"}'):
        return decode(ReportChanges, raw_key, raw_value)
    if key.endswith(b',"part":"traffic"}'):
        return decode(TrafficReport, raw_key, raw_value)
    if key.endswith(b',"part":"failure"}'):
        return decode(FailureReport, raw_key, raw_value)
    return decode(Report, raw_key, raw_value)


def _strict(kind: type[Model], raw: bytes, part: str) -> Model:
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join([part, *map(str, first["loc"])])
        raise Unreadable(f"{ascii(where)[1:-1][:_SHOWN]}: {first['msg'][:_SHOWN]}") from None


def _shown(raw: bytes | None) -> str:
    return "(none)" if raw is None else ascii(raw[:_SHOWN].decode(errors="replace"))
