"""Checks and actions that several kinds of failovers share."""

from collections.abc import Collection

from strait.audit.publishing import ResultLog
from strait.control import pausing
from strait.control.failover.observation import Observation
from strait.control.failover.turn import Settings, Turn
from strait.control.link_status import link_groups
from strait.errors import ClusterError, StateError
from strait.model import TopicAcl
from strait.planning import failover, readiness
from strait.planning.failover import Check, Verdict
from strait.planning.waves import wave_of
from strait.state.failover_records import Failover
from strait.state.schema import GivenAcl
from strait.state.verified import verified
from strait.text import listed, plural

STOP = "stop"
"""The point of no return: from this step on the record is only continued."""
_LISTEN_SECONDS = 5.0
"""A slot reports once a second. By the timestamps of its reports alone, it would seem silent if the clock here is
ahead."""


def whole(look: Observation, *, patient: bool = False) -> Check:
    """Check whether everything that the link selects is being copied; see `failover.copying`."""
    status = look.status(listen_seconds=_LISTEN_SECONDS)
    return failover.copying(
        look.among(status.rows),
        stopped=status.stopped,
        pending=look.pending(),
        patient=patient,
        wave=look.wave,
        moved=look.moved,
    )


def take_transformed(look: Observation, turn: Turn, *, accept: bool) -> None:
    """Take the step that names topics whose records a rule transforms, if there are any, before anything is changed. Raises
    FailoverStopped unless they are accepted."""
    if names := look.transformed():
        turn.keep(transformed=tuple(sorted(names)))
        turn.take("transformed", lambda: failover.transformed(names, look.link.destination.name, accept=accept))


def tail_of(look: Observation, settings: Settings) -> Check:
    """Check whether the links in the opposite direction have copied all that is on the destination, and none of them is
    failing over itself. This failover is in its journal already, so of two that check, at least one sees the other."""
    if (other := look.opposite_failover()) is not None:
        return failover.opposite(other)
    if not (links := look.copying_back()):
        return Check(Verdict.DONE, "no link copies the other way")
    return failover.together([_tail_of(look, link, settings) for link in links])


def _tail_of(look: Observation, link: str, settings: Settings) -> Check:
    if moved := Observation(look.link.other(link)).moved & look.copies():
        return failover.still_moved(link, moved)
    there = link_groups(look.link.other(link))
    paused = [item.topic for item in there.pauses]
    found, unread = look.tail(link)
    return failover.tail(link, found, stopped=there.stopped, accept=settings.accept_tail, paused=paused, unread=unread)


def is_stopped(look: Observation, record: Failover) -> bool:
    """Return whether the stop was published: the link is stopped or, for a wave, a pause names the failover. All topics
    of a wave are paused in one edit."""
    status = look.status()
    return any(record.id in item.reason for item in status.pauses) if wave_of(record) else status.stopped


def stop(look: Observation, turn: Turn) -> Check:
    """Stop the link's applications, or pause the topics of a wave. Does nothing if that was already done. Raises
    FailoverTakenOver if another process has taken over the failover: its turn is checked once no other process can
    publish."""
    record = turn.record
    reason = f"{failover.called(record)} {record.id}" + (f", {record.reason}" if record.reason else "")
    if look.wave:
        return _pause(look, turn, reason)
    pausing.set_stopped(look.link, stopped=True, by=record.by, reason=reason, check=turn.keep)
    groups = look.status(listen_seconds=_LISTEN_SECONDS).groups
    heard = [f"{group.group}/{slot.slot}" for group in groups for slot in group.slots if not slot.silent]
    if heard:
        return Check(
            Verdict.WAITING, f"{plural(len(heard), 'slot still reports', 'slots still report')}: {listed(heard)}"
        )
    return Check(Verdict.DONE, "the link is stopped, and no slot reports")


def _pause(look: Observation, turn: Turn, reason: str) -> Check:
    topics = look.topics()
    pausing.pause_topics(look.link, topics, by=turn.record.by, reason=reason, check=turn.keep)
    groups = look.status(listen_seconds=_LISTEN_SECONDS).groups
    heard = [(group, slot) for group in groups for slot in group.slots if not slot.silent]
    behind = [f"{group.group}/{slot.slot}" for group, slot in heard if slot.plan_version < group.plan_version]
    if behind:
        return Check(
            Verdict.WAITING, f"{plural(len(behind), 'slot does', 'slots do')} not follow the plan yet: {listed(behind)}"
        )
    return Check(Verdict.DONE, f"{plural(len(topics), 'topic is', 'topics are')} paused: {listed(sorted(topics))}")


def audited(look: Observation) -> Check:
    """Report which of the topics that are moved are verified by audits. It never stops a failover, even if that cannot
    be read."""
    try:
        results = ResultLog(look.link.destination, look.link.name).newest()
        planned = [topic for plan in look.plans().values() for topic in plan.topics]
    except (ClusterError, StateError) as error:
        return Check(Verdict.WARNING, f"the results of audits are not known: {error}")
    return readiness.audited(look.link.name, look.topics(), verified(planned, results))


def reverse(look: Observation, *, ask: bool = True) -> Check:
    """Check whether links copy in the opposite direction. ``ask``: query the source, which has their plans."""
    ends = f"from {look.link.destination.name} to {look.link.source.name}"
    links = look.opposites()
    if not links:
        return Check(Verdict.WARNING, f"the links file has no link {ends}, so nothing is copied back")
    copies = f"link {links[0]} copies {ends}" if len(links) == 1 else f"links {listed(links)} copy {ends}"
    if not ask:
        return Check(Verdict.DONE, f"{copies}, once {look.link.source.name} is back")
    try:
        without = [link for link in links if not look.has_plan(link)]
    except ClusterError as error:
        return Check(Verdict.WARNING, f"{copies}; its state is not known: {error}")
    if without:
        return Check(Verdict.WARNING, f"{copies}; without a plan yet: {listed(without)}: run strait apply {without[0]}")
    return Check(Verdict.DONE, copies)


def lift_fence(look: Observation, turn: Turn, fence: Collection[GivenAcl]) -> int:
    """Remove these ACLs, which a failover has added; return how many of them existed: one that was rejected, or that an
    operator has removed, does not. Others than those of a fence are left: a foreign client may have written the record."""
    rules = {TopicAcl(**rule.model_dump()) for rule in fence if (rule.permission, rule.operation) == ("DENY", "WRITE")}
    if not rules:
        return 0
    existing = look.source.acls() & rules
    look.source.remove_acls_each(sorted(existing)).or_raise()
    turn.keep(fence=tuple(rule for rule in turn.record.fence if rule not in fence))
    return len(existing)
