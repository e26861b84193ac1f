"""Events of a link, from its state topics and applications. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from strait.exporter.observation import Observation
from strait.planning.failover import called
from strait.planning.plan.pauses import Scope, pauses_of
from strait.state.failover_records import Failover
from strait.state.schema import Loss
from strait.text import plural

Kind = Literal["plan", "pause", "restart", "loss", "failover"]


class Event(NamedTuple):
    """One event of a link, at ``at_ms`` (ms since 1970)."""

    at_ms: int
    kind: Kind
    text: str


def last_event(seen: Observation) -> dict[str, Any] | None:
    """Return the newest event in the link's state topics that is no matter of course; None: they contain none."""
    losses = [max(seen.losses, key=lambda loss: loss.at_ms)] if seen.losses else []
    found = (*_stops(seen), *_pauses(seen), *_losses(losses), *_failovers(seen.failovers.values()))
    newest = max(found, default=None)
    return None if newest is None else newest._asdict()


def events_since(
    since_ms: int, seen: Observation | None, failovers: Iterable[Failover], applications: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the events since then, oldest first: current plans and pauses, losses, failovers and starts of applications.

    Args:
        applications: as `strait.launch.overview` returns them.
    """
    found = [*_failovers(failovers), *_submissions(applications)]
    if seen is not None:
        found += [*_plans(seen), *_stops(seen), *_pauses(seen), *_losses(seen.losses), *_starts(seen)]
    return [event._asdict() for event in sorted(set(found)) if event.at_ms >= since_ms]


def _plans(seen: Observation) -> Iterator[Event]:
    for group, plan in seen.plans.items():
        if not plan.stopped:
            yield Event(plan.published_at_ms, "plan", f"plan {plan.version} of task group {group} published")


def _stops(seen: Observation) -> Iterator[Event]:
    for group, plan in seen.plans.items():
        if plan.stopped:
            text = f"plan {plan.version} of task group {group} published, which stops it"
            yield Event(plan.published_at_ms, "pause", text)
        if plan.replaced is not None:
            text = f"plan {plan.replaced.version} of task group {group} was not Strait's, and was replaced"
            yield Event(plan.replaced.at_ms, "plan", text)


def _pauses(seen: Observation) -> Iterator[Event]:
    for pause in pauses_of(seen.plans.values()):
        reason = f": {pause.reason}" if pause.reason else ""
        yield Event(pause.at_ms, "pause", f"{Scope.of(pause)} paused by {pause.by}{reason}")


def _losses(losses: Sequence[Loss]) -> Iterator[Event]:
    for loss in losses:
        lost = f"{loss.from_offset:,} to {loss.to_offset:,}"
        yield Event(
            loss.at_ms, "loss", f"{loss.topic}-{loss.partition}: {loss.cause}, offsets {lost} of the {loss.side}"
        )


def _failovers(failovers: Iterable[Failover]) -> Iterator[Event]:
    for one in failovers:
        yield Event(one.ended_at_ms or one.began_at_ms, "failover", f"{called(one)} {one.outcome}, by {one.by}")


def _starts(seen: Observation) -> Iterator[Event]:
    """Yield when each slot that reports was started; those of one application that were started together are one event."""
    starts: dict[tuple[str, int], list[int]] = {}
    for (_, slot), parts in seen.reports.items():
        for part in parts[:1]:
            starts.setdefault((part.application, part.started_at_ms // 60_000), []).append(slot)
    for (application, minute), slots in starts.items():
        named = f"slot {slots[0]}" if len(slots) == 1 else plural(len(slots), "slot")
        yield Event(minute * 60_000, "restart", f"{named} of application {application} started")


def _submissions(applications: Iterable[dict[str, Any]]) -> Iterator[Event]:
    for one in applications:
        for submission in one["submissions"]:
            yield Event(submission["submitted_at_ms"], "restart", f"application {one['name']} submitted")
