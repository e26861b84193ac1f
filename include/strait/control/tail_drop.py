"""Drops a link's tail: writes a map entry by which none of it is copied, and the decision into the loss log.

The engine itself writes such an entry when it passes over offsets with nothing to copy: record number n, the next one,
is at a later source offset. Nothing on the source or the destination topic is changed.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from strait.control.link_status import link_groups
from strait.control.resumption import ResumePoint, resumption
from strait.control.tail import TailReader
from strait.errors import ConfigError, PlanConflict
from strait.model import TopicPartition
from strait.planning.tail import Extent, TailPart
from strait.reasons import Reason
from strait.state.codec import run_key
from strait.state.link_handle import ConfiguredLink
from strait.state.offset_map import covering, destination_offset, gaps_of, pack
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping
from strait.text import plural
from strait.waiting import unix_ms


class Decision(NamedTuple):
    """The operator that drops the records, and the reason."""

    by: str
    reason: str


def require_at_rest(link: ConfiguredLink, parts: Collection[TailPart], doing: str = "dropping its tail") -> None:
    """Raises ConfigError unless the link is stopped, none of its slots reports, and each tail is exactly known."""
    status = link_groups(link)
    reporting = [f"{group.group}/{slot.slot}" for group in status.groups for slot in group.slots if not slot.silent]
    problems = [] if status.stopped else ["it is not stopped, so it may copy the records at any moment"]
    problems += [f"slot {slot} still reports" for slot in reporting]
    if problems:
        raise ConfigError(
            f"link {link.name}: {doing}",
            problems,
            hint=f"run `strait stop {link.name}`, then `strait wait {link.name} --for stopped`",
        )
    unknown = [f"{part.place}: {part.detail or 'its tail is unknown'}" for part in parts if not part.exact]
    if unknown:
        raise ConfigError(
            f"link {link.name}: {doing}", unknown, hint="choose other partitions with --topic and --partition"
        )


def drop(reader: TailReader, found: Mapping[TopicPartition, Extent], decision: Decision) -> list[TailPart]:
    """Make the link pass over these tails, up to the end that each had when it was read; return those that hold
    records.

    Args:
        found: of each partition to drop, how much it holds.

    Raises:
        ConfigError: see `require_at_rest`.
        PlanConflict: the destination or the map has changed since the tail was read; nothing was dropped.
        ClusterUnavailable, NotAuthorized, StateError
    """
    link = reader.link
    parts = [part for part in reader.parts if part.place in found and found[part.place].records]
    require_at_rest(link, parts)
    before = {point.place: point for point in reader.resumption.points}
    with link.state() as state, link.publisher().exclusive(state) as publication:
        now = {point.place: point for point in resumption(link, reader.source, reader.destination).points}
        _require_stopped(link.name, state)
        _require_unchanged(link.name, parts, before, now)
        now_ms = unix_ms()
        changes = [passed_over(now[part.place].runs, now[part.place].written, part.to_offset, now_ms) for part in parts]
        words = [run for change in changes for run in change.written]
        forgotten = [run for change in changes for run in change.forgotten]
        losses = [_loss(link.name, part, found[part.place], decision, now_ms) for part in parts]
        if parts:
            publication.publish((), words, losses, forgotten)
    return parts


class MapChange(NamedTuple):
    """Entries to write, and entries to remove. ``runs``: all entries afterward, by sequence_base."""

    written: Sequence[OffsetMapping]
    forgotten: Sequence[OffsetMapping]
    runs: Sequence[OffsetMapping]


def passed_over(
    runs: Sequence[OffsetMapping], number: int, to_offset: int, now_ms: int, destination: int | None = None
) -> MapChange:
    """Return the map entries by which record ``number``, the next one to be copied, is at ``to_offset`` or later.

    Statements about earlier records stay. Those about this record and later ones are removed: entries that were written
    ahead of records that never came, and confirmations of records that the destination has lost. They would contradict
    the new entry once other records have these numbers.

    Args:
        runs: of one partition and these topics, by sequence_base.
        destination: the record's destination offset; None: directly after the one before.
    """
    run = covering(runs, number)
    word = run.model_copy(
        update={
            "sequence_base": number,
            "source_base": to_offset,
            "destination_base": destination_offset(run, number) if destination is None else destination,
            "gaps": "",
            "sequence_end": number,
            "checkpoint_at_ms": now_ms,
            "source_epoch": -1,
            "after_unknown": any(one.after_unknown for one in runs if one.sequence_base == number),
        }
    )
    older = [one for one in runs if one.sequence_base < number]
    shortened = [_before(one, number) for one in older]
    kept = {run_key(one) for one in (word, *shortened)}
    changed = [new for new, old in zip(shortened, older, strict=True) if new != old]
    return MapChange([word, *changed], [one for one in runs if run_key(one) not in kept], [*shortened, word])


def _before(run: OffsetMapping, number: int) -> OffsetMapping:
    """Return the entry without its statements about record ``number`` and later ones."""
    said, gaps = gaps_of(run)[1:], gaps_of(run, run.sequence_base + 1, number)
    if len(gaps) < len(said):
        text = pack(gaps, sequence_base=run.sequence_base, source_base=run.source_base)
        run = run.model_copy(update={"gaps": text})
    if run.sequence_end > number:
        run = run.model_copy(update={"sequence_end": number, "source_epoch": -1})
    return run


def _require_stopped(link: str, state: StateReader) -> None:
    """Check the plans as they are now: a process that starts the link after this takes over its control first."""
    if not all(plan.stopped for plan in state.plans.values()):
        raise PlanConflict(
            f"link {link}: dropping its tail: somebody has started it; nothing was dropped",
            hint=f"run `strait stop {link}`, then `strait wait {link} --for stopped`",
        )


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
        detail=f"{decision.by}: {decision.reason} ({plural(extent.records, 'record')})",
    )
