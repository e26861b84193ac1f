"""Failovers of a link: begin one or go on with one, look at one before, lift its fence, list those that were."""

import contextlib
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NoReturn

from strait import __version__
from strait.config.links import LinksFile
from strait.control import pausing
from strait.control.failover.hooks import Hooks, RunDag
from strait.control.failover.journal import Journal
from strait.control.failover.observation import Observation
from strait.control.failover.planned import STOP, PlannedFailover, is_stopped, lift_fence
from strait.control.failover.rehearsal import Rehearsal
from strait.control.failover.turn import Settings, Tell, Turn
from strait.control.failover.unplanned import UnplannedFailover
from strait.errors import FailoverStopped
from strait.planning.waves import wave_of
from strait.state.failover_records import Failover

Kind = Literal["planned", "unplanned"]
_KINDS: Mapping[Kind, type[PlannedFailover] | type[UnplannedFailover]] = {
    "planned": PlannedFailover,
    "unplanned": UnplannedFailover,
}


def run(
    file: LinksFile, link: str, kind: Kind, settings: Settings, tell: Tell, run_dag: RunDag | None = None
) -> Failover:
    """Begin a failover, or go on with the one that was cut off. After one of the same topics that is done, and of which
    nothing was taken back since, another one says so, does what can still be done, and looks again.

    Args:
        run_dag: in Airflow, runs hooks that are DAGs.

    Raises:
        FailoverStopped: a step does not hold, or another process has taken over.
        ClusterUnavailable, NotAuthorized, ConfigError, StateError
    """
    look = Observation(file, link, settings.wave)
    journal = look.journal()
    before = [record for record in journal.all() if record.kind != "rehearsal"]
    record = _begun(look, kind, settings, before[-1] if before else None)
    earlier = [other for other in before if other.id != record.id]
    fence_before = earlier[-1].fence if earlier else ()
    turn = Turn(record, journal, tell, settings.timeout_seconds, fence_before, Hooks(file, link, run_dag))
    steps = _KINDS[kind](look, turn, settings)
    same = (other for other in reversed(earlier) if other.kind == kind and wave_of(other) == settings.wave)
    done = next((other for other in same if other.outcome == "done"), None)
    if turn.took(STOP):  # what the process before may be publishing is published now, or never
        pausing.end_publications(file, link)
    with _signals_as_errors():
        if done is not None and not record.steps and _still_over(look, done):
            steps.again(done)
        else:
            steps.run()
    return turn.record


def dry_run(
    file: LinksFile, link: str, kind: Kind, settings: Settings, tell: Tell, run_dag: RunDag | None = None
) -> Failover:
    """Look at what each step would find. Changes nothing, runs no hook, keeps nothing. Raises as `run`."""
    look = Observation(file, link, settings.wave)
    turn = Turn(_begun(look, kind, settings, None), None, tell, None, hooks=Hooks(file, link, run_dag))
    _KINDS[kind](look, turn, settings, dry_run=True).run()
    return turn.record


def rehearse(file: LinksFile, link: str, settings: Settings, tell: Tell, run_dag: RunDag | None = None) -> Failover:
    """Go through a failover with groups of other names, touching no client, and keep what it comes to. Raises as
    `run`."""
    look = Observation(file, link, settings.wave)
    hooks = Hooks(file, link, run_dag)
    turn = Turn(_begun(look, "rehearsal", settings, None), look.journal(), tell, None, hooks=hooks)
    Rehearsal(look, turn, settings).run()
    return turn.record


def unfence(file: LinksFile, link: str, tell: Tell, run_dag: RunDag | None = None) -> tuple[Failover, int]:
    """Lift the fence of the newest failover; one that was cut off before its link was stopped is given up. Returns it,
    and how many rules were removed.

    Raises:
        FailoverStopped: there was none.
        ClusterUnavailable, NotAuthorized, StateError
    """
    journal = Observation(file, link).journal()
    newest = _newest(journal)
    if newest is None:
        raise FailoverStopped(f"link {link}: no failover was ever begun")
    look = Observation(file, link, wave_of(newest))
    turn = Turn(newest, journal, tell, 0.0, hooks=Hooks(file, link, run_dag))
    lifted = 0

    def lift() -> None:
        nonlocal lifted
        lifted = lift_fence(look, turn, newest.fence)

    if newest.outcome == "running" and not (turn.took(STOP) and is_stopped(look)):
        turn.give_up(lift)
    else:
        lift()
    return turn.record, lifted


def history(file: LinksFile, link: str) -> Sequence[Failover]:
    """All failovers of the link, the oldest first. Raises ClusterUnavailable, NotAuthorized, StateError."""
    return Observation(file, link).journal().all()


def _begun(
    look: Observation, kind: Literal[Kind, "rehearsal"], settings: Settings, newest: Failover | None
) -> Failover:
    if kind == "unplanned" and settings.wave:
        raise FailoverStopped(
            f"link {look.name}: a wave drains its topics, which needs the source",
            hint="run --unplanned without --topics",
        )
    if newest is not None and newest.outcome == "running":
        if newest.kind == kind and wave_of(newest) == settings.wave:
            return newest
        if newest.kind == kind:
            raise FailoverStopped(
                f"link {look.name}: failover {newest.id}, of {wave_of(newest)}, is not over",
                hint="go on with it by the same --topics and --groups, or give it up with --unfence",
            )
        if newest.kind == "unplanned":
            raise FailoverStopped(
                f"link {look.name}: failover {newest.id}, an unplanned one, is not over", hint="go on with --unplanned"
            )
    now_ms = time.time_ns() // 1_000_000
    at = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    return Failover(
        id=f"{at}-{uuid.uuid4().hex[:6]}",
        link=look.name,
        source=look.link.source,
        destination=look.link.destination,
        kind=kind,
        by=settings.by,
        reason=settings.reason,
        turn="",
        wave_topics=settings.wave.topics,
        wave_groups=settings.wave.groups,
        strait_version=__version__,
        began_at_ms=now_ms,
        fence=() if newest is None else newest.fence,  # still to be lifted by whoever can
    )


def _still_over(look: Observation, record: Failover) -> bool:
    """Nobody has started the link since or, of a wave, nothing is left for it to move; then it looks at what it moved."""
    if not wave_of(record):
        return look.status().stopped and look.plan_versions() == record.plans
    before = {item.topic for item in record.topics}
    over = before <= look.moved and not look.topics()
    if over:
        look.look_again_at(before)
    return over


@contextlib.contextmanager
def _signals_as_errors() -> Iterator[None]:
    """What ends a process, such as Airflow or a closed terminal, lets it take back what was done, if it waits so
    long."""
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


def _newest(journal: Journal) -> Failover | None:
    """The last one that was more than a rehearsal."""
    return next((record for record in reversed(journal.all()) if record.kind != "rehearsal"), None)
