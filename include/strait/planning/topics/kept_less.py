"""Records that a destination topic has deleted by its own settings although the source still holds them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from strait.model import TopicPartition
from strait.reasons import Reason
from strait.state.schema import Loss, OffsetMapping
from strait.state.translation import Fit, Translator

RECORDED_EVERY_MS = 7 * 86_400_000
"""Time between two entries of one partition, whose records may be deleted all the time: the loss log is kept forever."""


class Remains(NamedTuple):
    """First offsets that both sides of a partition hold, and the settings that make the destination keep less."""

    source_start: int
    destination_start: int
    settings: str


def deleted_there(runs: Sequence[OffsetMapping], remains: Remains) -> tuple[int, int] | None:
    """Return the source offsets, from the first to one after the last, that the source holds and the destination has
    deleted; None if there are none, or if the map does not determine them.

    Args:
        runs: the offset segments of the partition's current topics.
    """
    if not runs:
        return None
    translator = Translator(runs)
    kept = translator.to_source(remains.destination_start)
    start = max(remains.source_start, translator.first.source)
    return (start, kept.offset) if kept.fit is Fit.EXACT and start < kept.offset else None


def to_record(
    link: str,
    found: Mapping[TopicPartition, Remains],
    runs: Mapping[tuple[str, int], Sequence[OffsetMapping]],
    recorded: Iterable[Loss],
    now_ms: int,
) -> tuple[Loss, ...]:
    """Return the entries for the loss log, sorted: of each partition at most one in a week.

    Args:
        found: partitions whose destination topics keep less than their sources.
        recorded: the loss log.
    """
    recent = {
        (loss.topic, loss.partition)
        for loss in recorded
        if loss.cause == Reason.DESTINATION_KEEPS_LESS and now_ms - loss.at_ms < RECORDED_EVERY_MS
    }
    losses = []
    for place, remains in sorted(found.items()):
        deleted = None if place in recent else deleted_there(runs.get(place, ()), remains)
        if deleted is not None:
            losses.append(
                Loss(
                    link=link,
                    topic=place.topic,
                    partition=place.partition,
                    side="source",
                    cause=Reason.DESTINATION_KEEPS_LESS,
                    from_offset=deleted[0],
                    to_offset=deleted[1],
                    at_ms=now_ms,
                    action="continued",
                    detail=remains.settings,
                )
            )
    return tuple(losses)
