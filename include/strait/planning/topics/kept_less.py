"""Records that a destination topic has deleted by its own settings although the source still holds them. Pure.

Retention moves the start of the destination's log, so the offset map has the deleted records. Compaction keeps the start and
makes holes: a destination log without other producers has a record at each offset.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from strait.model import TopicPartition
from strait.reasons import Reason
from strait.state.schema import Loss, OffsetMapping
from strait.state.translation import Fit, Translator
from strait.text import plural

RECORDED_EVERY_MS = 7 * 86_400_000
"""Time between two entries of one partition, whose records may be deleted all the time: the loss log is kept forever."""


class Span(NamedTuple):
    """A batch of a destination log: its offsets [``base``, ``end``), and how many of them hold a record."""

    base: int
    end: int
    records: int


class Holes(NamedTuple):
    """Destination offsets [``first``, ``end``) of which ``missing`` hold no record."""

    first: int
    end: int
    missing: int


@dataclass(frozen=True, slots=True)
class Remains:
    """The offsets that both sides of a partition hold.

    Attributes:
        source_start, destination_start: the first offsets that are left.
        settings: those that make the destination keep less, as text.
        spans: the first batches of the destination's log, without a gap between them in the log; empty: the destination
            is not compacted, or its log was not read.
        shared: other producers may write to the destination topic, so an offset without a record need not be one of the
            link's.
    """

    source_start: int
    destination_start: int
    settings: str
    spans: Sequence[Span] = ()
    shared: bool = False


class Deleted(NamedTuple):
    """Source offsets [``first``, ``end``) whose records the source holds, and how it is known which of them the
    destination has deleted."""

    first: int
    end: int
    detail: str


def deleted_there(runs: Sequence[OffsetMapping], remains: Remains) -> list[Deleted]:
    """Return the source offsets whose records the source holds and the destination has deleted; none if there are none,
    or if the map does not determine them.

    Args:
        runs: the offset segments of the partition's current topics.
    """
    if not runs:
        return []
    translator = Translator(runs, shared=remains.shared)
    start = max(remains.source_start, translator.first.source)
    kept = translator.to_source(remains.destination_start)
    found = []
    if kept.fit is Fit.EXACT and start < kept.offset:
        found.append(Deleted(start, kept.offset, remains.settings))
    begin = translator.to_destination(start)
    if remains.shared or (begin.fit is not Fit.EXACT and begin.fit is not Fit.BEFORE_START):
        return found
    gone = holes(remains.spans, max(remains.destination_start, begin.offset))
    if gone is not None:
        first, end = translator.to_source(gone.first), translator.to_source(gone.end)
        if first.fit is Fit.EXACT and end.fit is Fit.EXACT:
            what = f"compaction has deleted {gone.missing:,} of the {plural(gone.end - gone.first, 'record')} copied from there"
            found.append(Deleted(max(start, first.offset), end.offset, f"{what}: {remains.settings}"))
    return found


def start_to_read(runs: Sequence[OffsetMapping], remains: Remains) -> int:
    """Return the destination offset from which on compaction is looked for: that of the first record that the source
    holds."""
    translator = Translator(runs)
    start = max(remains.source_start, translator.first.source)
    return max(remains.destination_start, translator.to_destination(start).offset)


def holes(spans: Iterable[Span], start: int) -> Holes | None:
    """Return the offsets without a record from ``start`` on, from the first batch that lacks any to the last one; None
    if each offset has one. Batches that start before ``start`` are not counted."""
    found, following = None, start
    for span in spans:
        missing = 0
        if span.base >= following:
            missing = span.base - following + span.end - span.base - span.records
        if missing:
            first, before = (following, 0) if found is None else (found.first, found.missing)
            found = Holes(first, span.end, before + missing)
        following = max(following, span.end)
    return found


def recently_recorded(recorded: Iterable[Loss], now_ms: int) -> dict[TopicPartition, Loss]:
    """Return the newest such entry of each partition that has one which is not older than a week."""
    return {
        TopicPartition(loss.topic, loss.partition): loss
        for loss in sorted(recorded, key=lambda loss: loss.at_ms)
        if loss.cause == Reason.DESTINATION_KEEPS_LESS and now_ms - loss.at_ms < RECORDED_EVERY_MS
    }


def to_record(
    link: str,
    found: Mapping[TopicPartition, Sequence[Deleted]],
    recorded: Iterable[Loss],
    now_ms: int,
) -> tuple[Loss, ...]:
    """Return the entries for the loss log, sorted: none of a partition that has one of the last week.

    Args:
        found: partitions whose destination topics keep less than their sources.
        recorded: the loss log.
    """
    recent = recently_recorded(recorded, now_ms)
    return tuple(
        Loss(
            link=link,
            topic=place.topic,
            partition=place.partition,
            side="source",
            cause=Reason.DESTINATION_KEEPS_LESS,
            from_offset=deleted.first,
            to_offset=deleted.end,
            at_ms=now_ms,
            action="continued",
            detail=deleted.detail,
        )
        for place in sorted(found)
        if place not in recent
        for deleted in found[place]
    )
