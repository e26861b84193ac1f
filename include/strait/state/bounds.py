"""Bounds on the cost of a state record to its readers, checked before it is parsed. Pure.

A parser of JSON takes up to a hundred times a text's size, and reports every error in it: 8 MiB of wrong values in place of
a plan took 40 s and 7 GiB. So a value has at most as many bytes and parts as its writers write, its objects have only the
fields of their records, and lists end at the first error (`strait.state.record`).
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from strait.json_text import value_of
from strait.state.audit_records import TopicResult
from strait.state.failover_records import Failover
from strait.state.group_sync_records import GroupSyncReport
from strait.state.ledger_records import LedgerPart
from strait.state.plain_runs import is_plain
from strait.state.report_changes import ReportChanges, TrafficReport
from strait.state.report_records import Report
from strait.state.schema import OffsetMapping, Plan

_KIB = 1 << 10
_MIB = 1 << 20
_SMALL_BYTES = 4 * _KIB  # so little costs nothing, regardless of its content
_BYTES_PER_CONTAINER = 8  # the shortest entry of any list, `["t",0],` of `left`
_FEW_CONTAINERS = 100
_NAMED = re.compile(r"[A-Za-z0-9_]{1,50}")


class Bound(NamedTuple):
    """Maximum size of a kind of record.

    ``commas`` and ``containers``, which are objects and lists: of its whole text; None: as many as fit. A parser's time and
    memory follow these more than the bytes: a list of numbers costs it four times as much as topics of the same size.
    """

    bytes: int
    commas: int | None = None
    containers: int | None = None


_FLAT = Bound(128 * _KIB, 20_000)  # some texts of 2,000 characters, which may be commas
_BOUNDS: Mapping[type[BaseModel], Bound] = {
    Plan: Bound(32 * _MIB, 2_000_000, 400_000),  # 70,000 topics with 800,000 partitions
    Failover: Bound(16 * _MIB, 1_500_000, 500_000),
    LedgerPart: Bound(16 * _MIB, 1_200_000, 80_000),
    Report: Bound(4 * _MIB, 400_000, 60_000),  # 20,000 partitions
    ReportChanges: Bound(4 * _MIB, 400_000, 60_000),
    GroupSyncReport: Bound(1 * _MIB),
    TrafficReport: Bound(1 * _MIB),
    TopicResult: Bound(4 * _MIB),
    OffsetMapping: Bound(2 * _MIB, 64),
}


def bound_of(kind: type[BaseModel]) -> Bound:
    """Return the maximum size of a kind of record."""
    return _BOUNDS.get(kind, _FLAT)


class TooMuch(ValueError):
    """A value that no writer of this kind of record writes."""


def check_size(kind: type[BaseModel], raw: bytes) -> None:
    """Check a value before it is parsed. Raises TooMuch."""
    if len(raw) <= _SMALL_BYTES:
        return
    bound = bound_of(kind)
    if len(raw) > bound.bytes:
        raise TooMuch(f"it has {len(raw):,} bytes, and a {kind.__name__} has {bound.bytes:,} at most")
    if _is_plain_run(kind, raw):
        return
    containers = raw.count(b"{") + raw.count(b"[")
    most = _FEW_CONTAINERS + len(raw) // _BYTES_PER_CONTAINER
    if containers > (most if bound.containers is None else min(most, bound.containers)):
        raise TooMuch(f"it has {containers:,} objects and lists in {len(raw):,} bytes")
    if bound.commas is not None and raw.count(b",") > bound.commas:
        raise TooMuch(f"it has {raw.count(b','):,} parts, and a {kind.__name__} has {bound.commas:,} at most")


def check_fields(kind: type[BaseModel], raw: bytes) -> None:
    """Check that a value's objects have only the fields of their records: the parser would report every other one, with
    its value. Raises TooMuch at the first one; not JSON at all is left to the parser."""
    if len(raw) <= _SMALL_BYTES or _is_plain_run(kind, raw):
        return
    try:
        value = value_of(raw)
    except ValueError:
        return
    _check(_fields(kind), value, "value")


def _is_plain_run(kind: type[BaseModel], raw: bytes) -> bool:
    """Return whether it has the fields of an offset segment and nothing else: the rest of this takes longer than all of its
    decoding, and a start decodes tens of thousands."""
    return kind is OffsetMapping and is_plain(raw)


class _Fields(NamedTuple):
    """Names of a record's fields, and those that hold records."""

    names: frozenset[str]
    inner: Sequence[tuple[str, type[BaseModel]]]


def _check(fields: _Fields, value: Any, place: str) -> None:
    if not isinstance(value, dict):
        return  # one error of the parser
    if not value.keys() <= fields.names:
        other = next(name for name in value if name not in fields.names)
        shown = other if _NAMED.fullmatch(other) else "(a name of another form)"
        raise TooMuch(f"{place}.{shown}: Extra inputs are not permitted")
    for name, kind in fields.inner:
        found, inner = value.get(name), _fields(kind)
        for one in found if isinstance(found, list) else (found,):
            _check(inner, one, f"{place}.{name}")


@cache
def _fields(kind: type[BaseModel]) -> _Fields:
    inner = [(name, found) for name, field in kind.model_fields.items() for found in _records_in(field.annotation)]
    return _Fields(frozenset(kind.model_fields), tuple(inner))


def _records_in(annotation: Any) -> Sequence[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (tuple, Union, UnionType, Annotated):
        return [found for each in get_args(annotation) for found in _records_in(each)]
    return []
