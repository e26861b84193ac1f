"""Failovers of a link: start or resume one, preview one, remove its fence, list earlier ones."""

import contextlib
import signal
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NoReturn

from strait import __version__
from strait.control import pausing
from strait.control.failover.checks import STOP, is_stopped, lift_fence
from strait.control.failover.hooks import Hooks, RunDag
from strait.control.failover.observation import Observation
from strait.control.failover.planned import PlannedFailover
from strait.control.failover.rehearsal import Rehearsal
from strait.control.failover.turn import Settings, Tell, Turn
from strait.control.failover.unplanned import UnplannedFailover
from strait.errors import FailoverStopped
from strait.planning.waves import WHOLE_LINK, Wave, wave_of
from strait.state.failover_records import Failover
from strait.state.link_handle import ConfiguredLink
from strait.waiting import unix_ms

Kind = Literal["planned", "unplanned"]
_KINDS: Mapping[Kind, type[PlannedFailover] | type[UnplannedFailover]] = {
    "planned": PlannedFailover,
    "unplanned": UnplannedFailover,
}


def run(link: ConfiguredLink, kind: Kind, settings: Settings, tell: Tell, run_dag: RunDag | None = None) -> Failover:
    """Start a failover, or resume the one that was interrupted. If one of the same kind and topics is done and nothing
    of it was taken back since, the new one reports that, repeats the steps that are still possible, and checks again.

    Args:
        run_dag: in Airflow, runs hooks that are DAGs.

    Raises:
        FailoverStopped: a step does not hold, or another process has taken over.
        ClusterUnavailable, NotAuthorized, ConfigError, StateError
    """
    look = Observation(link, settings.wave)
    journal = look.journal()
    before = [record for record in journal.all() if record.kind != "rehearsal"]
    record = _begun(look, kind, settings, before[-1] if before else None)
    earlier = [other for other in before if other.id != record.id]
    fence_before = earlier[-1].fence if earlier else ()
    hooks = Hooks(link, run_dag, look.topics)
    turn = Turn(record, journal, tell, settings.timeout_seconds, fence_before, hooks)
    steps = _KINDS[kind](look, turn, settings)
    same = (other for other in reversed(earlier) if other.kind == kind and wave_of(other) == settings.wave)
    done = next((other for other in same if other.outcome == "done"), None)
    if turn.took(STOP):  # the previous process's publication is complete after this, or never happens
        pausing.end_publications(link)
    with _signals_as_errors():
        if done is not None and not record.steps and _still_over(look, done):
            steps.again(done)
        else:
            steps.run()
    return turn.record


def dry_run(
    link: ConfiguredLink, kind: Kind, settings: Settings, tell: Tell, run_dag: RunDag | None = None
) -> Failover:
    """Preview the result of each step. Changes nothing, runs no hook, records nothing. Raises as `run`."""
    look = Observation(link, settings.wave)
    turn = Turn(_begun(look, kind, settings, None), None, tell, None, hooks=Hooks(link, run_dag))
    _KINDS[kind](look, turn, settings, dry_run=True).run()
    return turn.record


def rehearse(link: ConfiguredLink, settings: Settings, tell: Tell, run_dag: RunDag | None = None) -> Failover:
    """Rehearse a failover with consumer groups of other names, without affecting any client, and record the result.
    Raises as `run`."""
    look = Observation(link, settings.wave)
    hooks = Hooks(link, run_dag)
    turn = Turn(_begun(look, "rehearsal", settings, None), look.journal(), tell, None, hooks=hooks)
    Rehearsal(look, turn, settings).run()
    return turn.record


def unfence(
    link: ConfiguredLink, tell: Tell, run_dag: RunDag | None = None, wave: Wave = WHOLE_LINK
) -> tuple[Failover, int]:
    """Remove the ACLs of the newest failover; a failover that was interrupted before its stop is given up instead, which
    removes the ACLs that it has added. Return its record and the number of ACLs that were removed.

    Args:
        wave: of a failover that is over: remove only the ACLs of these topics.

    Raises:
        FailoverStopped: there was no failover.
        ClusterUnavailable, NotAuthorized, StateError
    """
    journal = Observation(link).journal()
    records = [record for record in journal.all() if record.kind != "rehearsal"]
    if not records:
        raise FailoverStopped(f"link {link.name}: no failover was ever begun")
    newest, fence_before = records[-1], records[-2].fence if len(records) > 1 else ()
    look = Observation(link, wave_of(newest))
    turn = Turn(newest, journal, tell, 0.0, fence_before, Hooks(link, run_dag, look.topics))
    if turn.took(STOP):  # a stop that another process was publishing is published now, or never
        pausing.end_publications(link)
    gives_up = newest.outcome == "running" and not (turn.took(STOP) and is_stopped(look, newest))
    fence = turn.added_fence if gives_up else [rule for rule in newest.fence if wave.takes(rule.name)]
    lifted = 0

    def lift() -> None:
        nonlocal lifted
        lifted = lift_fence(look, turn, fence)

    if gives_up:
        turn.give_up(lift)
    else:
        lift()
    return turn.record, lifted


def history(link: ConfiguredLink) -> Sequence[Failover]:
    """Return all failovers of the link, oldest first. Raises ClusterUnavailable, NotAuthorized, StateError."""
    return Observation(link).journal().all()


def _begun(
    look: Observation, kind: Literal[Kind, "rehearsal"], settings: Settings, newest: Failover | None
) -> Failover:
    if kind == "unplanned" and settings.wave:
        raise FailoverStopped(
            f"link {look.link.name}: a wave drains its topics, which needs the source",
            hint="run --unplanned without --topics",
        )
    if newest is not None and newest.outcome == "running":
        if newest.kind == kind and wave_of(newest) == settings.wave:
            return newest
        if newest.kind == kind:
            raise FailoverStopped(
                f"link {look.link.name}: failover {newest.id}, of {wave_of(newest)}, is not over",
                hint="go on with it by the same --topics and --groups, or give it up with --unfence",
            )
        if newest.kind == "unplanned":
            raise FailoverStopped(
                f"link {look.link.name}: failover {newest.id}, an unplanned one, is not over",
                hint="go on with --unplanned",
            )
    now_ms = unix_ms()
    at = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    return Failover(
        id=f"{at}-{uuid.uuid4().hex[:6]}",
        link=look.link.name,
        source=look.link.source.name,
        destination=look.link.destination.name,
        kind=kind,
        by=settings.by,
        reason=settings.reason,
        turn="",
        wave_topics=settings.wave.topics,
        wave_groups=settings.wave.groups,
        strait_version=__version__,
        began_at_ms=now_ms,
        fence=() if newest is None else newest.fence,  # still to be removed
    )


def _still_over(look: Observation, record: Failover) -> bool:
    """Return whether a completed failover still holds: the link was not started since or, for a wave, none of its
    topics is left to move. A wave's topics are then selected again, to check them."""
    if not wave_of(record):
        return look.status().stopped and look.plan_versions() == record.plans
    before = {item.topic for item in record.topics}
    over = before <= look.moved and not look.topics()
    if over:
        look.fix_topics(before)
    return over


@contextlib.contextmanager
def _signals_as_errors() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP, so that changes can be taken back if the sender, such as Airflow
    or a closed terminal, waits long enough."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> NoReturn:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
