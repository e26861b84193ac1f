"""Dropping a link's tail: the map gets the word that nothing of it is to be copied, and the loss log the decision.

It is the word that the engine itself writes where it passes over offsets with nothing to copy: record number n, the next
one, is at a later source offset. Nothing on the source or the destination topic is changed.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from strait.config.links import LinksFile
from strait.control.link_status import link_groups
from strait.control.resumption import ResumePoint, resumption
from strait.control.tail import TailReader
from strait.errors import ConfigError, PlanConflict
from strait.model import TopicPartition
from strait.planning.tail import Extent, TailPart
from strait.reasons import Reason
from strait.state.offset_map import covering, destination_offset
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping


class Decision(NamedTuple):
    """Who drops the records, and why."""

    by: str
    reason: str


def require_at_rest(file: LinksFile, link: str, parts: Collection[TailPart]) -> None:
    """Raises ConfigError unless the link is stopped, none of its slots reports, and each tail is exactly known."""
    status = link_groups(file, link)
    reporting = [f"{group.group}/{slot.slot}" for group in status.groups for slot in group.slots if not slot.silent]
    problems = [] if status.stopped else ["it is not stopped, so it may copy the records at any moment"]
    problems += [f"slot {slot} still reports" for slot in reporting]
    if problems:
        raise ConfigError(
            f"link {link}: dropping its tail",
            problems,
            hint=f"run `strait stop {link}`, then `strait wait {link} --for stopped`",
        )
    unknown = [f"{part.place}: {part.detail or 'its tail is unknown'}" for part in parts if not part.exact]
    if unknown:
        raise ConfigError(
            f"link {link}: dropping its tail", unknown, hint="choose other partitions with --topic and --partition"
        )


def drop(
    file: LinksFile, reader: TailReader, found: Mapping[TopicPartition, Extent], decision: Decision
) -> list[TailPart]:
    """Let the link pass over these tails, up to where each ended when it was read; return those that hold records.

    Args:
        found: of each partition to drop, how much it holds.

    Raises:
        ConfigError: see `require_at_rest`.
        PlanConflict: the destination or the map has changed since the tail was read; nothing was dropped.
        ClusterUnavailable, NotAuthorized, StateError
    """
    link = reader.link
    parts = [part for part in reader.parts if part.place in found and found[part.place].records]
    require_at_rest(file, link, parts)
    before = {point.place: point for point in reader.resumption.points}
    publisher = ControlPublisher(reader.properties, reader.destination.cluster, link)
    with (
        StateReader(reader.properties, reader.destination.cluster, link) as state,
        publisher.exclusive(state) as publication,
    ):
        now = {point.place: point for point in resumption(file, link, reader.source, reader.destination).points}
        _require_unchanged(link, parts, before, now)
        now_ms = time.time_ns() // 1_000_000
        words = [_word(now[part.place], part, now_ms) for part in parts]
        forgotten = [
            run
            for part in parts
            for run in now[part.place].runs
            if run.sequence_base >= now[part.place].written and run not in words
        ]
        losses = [_loss(link, part, found[part.place], decision, now_ms) for part in parts]
        if parts:
            publication.publish((), words, losses, forgotten)
    return parts


def _require_unchanged(
    link: str,
    parts: Sequence[TailPart],
    before: Mapping[TopicPartition, ResumePoint],
    now: Mapping[TopicPartition, ResumePoint],
) -> None:
    for part in parts:
        one, other = before[part.place], now.get(part.place)
        if other is None or (one.offset, one.written, one.exact) != (other.offset, other.written, other.exact):
            raise PlanConflict(
                f"link {link}: dropping the tail of {part.place}: its position has changed; nothing was dropped",
                hint="list the tail again",
            )


def _word(point: ResumePoint, part: TailPart, now_ms: int) -> OffsetMapping:
    """Of the next record: it comes after the tail."""
    run = covering(point.runs, point.written)
    return run.model_copy(
        update={
            "sequence_base": point.written,
            "source_base": part.to_offset,
            "destination_base": destination_offset(run, point.written),
            "gaps": "",
            "sequence_end": point.written,
            "checkpoint_at_ms": now_ms,
            "source_epoch": -1,
        }
    )


def _loss(link: str, part: TailPart, extent: Extent, decision: Decision, now_ms: int) -> Loss:
    return Loss(
        link=link,
        topic=part.topic,
        partition=part.partition,
        side="source",
        cause=str(Reason.TAIL_DROPPED),
        from_offset=part.range[0],
        to_offset=part.to_offset,
        at_ms=now_ms,
        action="continued",
        detail=f"{decision.by}: {decision.reason} ({extent.records} records)",
    )
