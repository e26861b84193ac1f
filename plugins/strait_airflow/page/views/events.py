"""The latest event of a link, from its state topics. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from strait.exporter.observation import Observation
from strait.planning.failover import called
from strait.planning.plan.pauses import Scope, pauses_of
from strait.state.schema import Loss


class Event(NamedTuple):
    """One event of a link, at ``at_ms`` (ms since 1970)."""

    at_ms: int
    text: str


def last_event(seen: Observation) -> dict[str, Any] | None:
    """Return the newest event in the link's state topics; None: they contain no event."""
    newest = max(_events(seen), default=None)
    return None if newest is None else newest._asdict()


def _events(seen: Observation) -> Iterator[Event]:
    for group, plan in seen.plans.items():
        if plan.stopped:
            yield Event(plan.published_at_ms, f"plan {plan.version} of task group {group} published, which stops it")
        if plan.replaced is not None:
            text = f"plan {plan.replaced.version} of task group {group} was not Strait's, and was replaced"
            yield Event(plan.replaced.at_ms, text)
    for pause in pauses_of(seen.plans.values()):
        reason = f": {pause.reason}" if pause.reason else ""
        yield Event(pause.at_ms, f"{Scope.of(pause)} paused by {pause.by}{reason}")
    for loss in _newest(seen.losses):
        lost = f"{loss.from_offset:,} to {loss.to_offset:,}"
        yield Event(loss.at_ms, f"{loss.topic}-{loss.partition}: {loss.cause}, offsets {lost} of the {loss.side}")
    for failover in seen.failovers.values():
        yield Event(
            failover.ended_at_ms or failover.began_at_ms, f"{called(failover)} {failover.outcome}, by {failover.by}"
        )


def _newest(losses: Sequence[Loss]) -> Sequence[Loss]:
    return [max(losses, key=lambda loss: loss.at_ms)] if losses else []
