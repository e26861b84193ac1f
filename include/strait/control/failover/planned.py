"""A failover with both clusters available: no record is lost, none is consumed twice.

Until the link is stopped, every change can be taken back, and is taken back after any error; a process that is killed
leaves a record, which the next one resumes. From the stop on, the steps only go forward.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence

from strait.config.route_names import topic_of
from strait.control.failover.checks import (
    STOP,
    audited,
    is_stopped,
    lift_fence,
    reverse,
    stop,
    tail_of,
    take_transformed,
    whole,
)
from strait.control.failover.observation import Observation
from strait.control.failover.turn import Settings, Turn
from strait.errors import ClusterError, ClusterUnavailable, FailoverTakenOver, StraitError
from strait.model import TopicAcl, TopicPartition
from strait.planning import failover, failover_groups, failover_report, recovery_point
from strait.planning.consumer_groups import GroupStatus
from strait.planning.failover import Attached, Check, Ends, Verdict
from strait.planning.topic_sync.sync import syncs_acls
from strait.state.failover_records import Failover, SourceEnd
from strait.state.schema import GivenAcl, finished_ends
from strait.state.translation import Fit
from strait.text import plural
from strait.waiting import unix_ms

_COPYING_PATIENCE_SECONDS = 45.0
"""Spark restarts a failed slot within this time."""
_GROUPS_SETTLE_SECONDS = 15.0
"""The application commits offsets too, and a check may fall between its read and its write."""
_GROUPS_CONFIRM_SECONDS = 75.0
"""A position that the offset map cannot determine exactly may become exact with the link's next checkpoint, which comes
once a minute."""


class PlannedFailover:
    """``dry_run``: only check, change nothing."""

    def __init__(self, observation: Observation, turn: Turn, settings: Settings, *, dry_run: bool = False) -> None:
        self._look = observation
        self._turn = turn
        self._settings = settings
        self._dry_run = dry_run
        self._places: list[TopicPartition] = []

    def run(self) -> None:
        """Run the failover. Raises FailoverStopped, and the errors of both clusters; before the stop, all changes are
        then taken back; from the stop on, they are kept for the next run."""
        if not (self._turn.took(STOP) and is_stopped(self._look, self._turn.record)):
            try:
                if self._turn.record.steps:
                    self._turn.start_over()
                self._before()
            except FailoverTakenOver:
                raise  # the process that has taken over needs the changes
            except BaseException:
                self._take_back()
                raise
        self._after()

    # --- steps that can be taken back ---------------------------------------------------------------------------------

    def _before(self) -> None:
        take = self._turn.take
        self._turn.look_ahead()
        take("copying", self._copying)
        take_transformed(self._look, self._turn, accept=self._settings.accept_transformed)
        self._places = self._source_partitions()
        take("tail", lambda: tail_of(self._look, self._settings))
        self._take_fence()
        take("producers", self._producers)
        take("drain", lambda: failover.drained(self._look.among(self._look.status().rows), self._ends()))
        take("consumers", self._consumers)
        take("groups", self._groups)
        self._turn.run_hooks("before", STOP)  # if one fails, all changes are taken back; one may take long
        take("quiet", self._quiet)

    def _copying(self) -> Check:
        """Check, for up to 45 s, whether everything is copied: a slot that stopped reporting a moment ago may resume.
        After that, an operator must check the slot."""
        began = time.monotonic()
        while True:
            check = whole(self._look, patient=not self._dry_run)
            if check.verdict is not Verdict.WAITING or self._dry_run:
                return check
            if time.monotonic() >= began + _COPYING_PATIENCE_SECONDS:
                return Check(Verdict.FAILED, check.detail)
            time.sleep(1.0)

    def _source_partitions(self) -> list[TopicPartition]:
        """Return all source partitions of the planned topics, including those that no plan has yet, without those whose
        copy has ended: nothing that is written to them is copied, so its producers need not stop."""
        planned, over = self._look.topics(), finished_ends(self._look.plans().values())
        topics = self._look.source.observe(lambda _: False).topics
        return [
            TopicPartition(name, number)
            for name in sorted(planned)
            if topic_of(name) in topics
            for number in range(topics[topic_of(name)].partitions)
            if TopicPartition(name, number) not in over
        ]

    def _take_fence(self) -> None:
        """Add the fence. Without one, run its hooks only: an external fence, such as a gateway's, is a hook."""
        if self._settings.fence:
            self._turn.take_with_hooks("fence", self._fence)
        else:
            self._turn.run_hooks("before", "fence")
            self._turn.run_hooks("after", "fence")

    def _fence(self) -> Check:
        topics = {topic_of(place.topic) for place in self._places}
        if any(syncs_acls(self._look.link.settings, topic) for topic in topics):
            return failover.fence_that_is_copied(self._look.link.destination.name)
        rules, there = _rules(self._settings.fence, topics), self._look.source.acls()
        if open_to_all := failover.open_topics(topics, there):
            return failover.fence_for_all(open_to_all)
        new = [rule for rule in rules if rule not in there]
        if self._dry_run:
            return Check(
                Verdict.DONE, f"would deny {', '.join(self._settings.fence)} to write: {plural(len(new), 'rule')}"
            )
        kept = {*self._turn.record.fence, *(GivenAcl(**rule._asdict()) for rule in new)}
        self._turn.keep(fence=tuple(sorted(kept, key=str)))  # recorded first, so that they can be taken back
        self._look.source.add_acls_each(new).or_raise()
        return Check(Verdict.DONE, f"{', '.join(self._settings.fence)} may not write to the source's topics any more")

    def _producers(self) -> Check:
        before = self._look.ends(self._places)
        time.sleep(self._settings.quiet_seconds)
        after = self._look.ends(self._places)
        check = failover.still(before, after, self._look.writers(self._places), unix_ms())
        if check.verdict is Verdict.DONE:
            self._turn.keep(ends=_kept(after))
        return check

    def _consumers(self) -> Check:
        if not self._look.synchronizes:
            return Check(Verdict.WARNING, "the link does not synchronize consumer groups, so they were not looked at")
        return failover.attached(self._attached())

    def _attached(self) -> Attached:
        topics = {topic_of(place.topic) for place in self._places}
        return self._look.attached(self._statuses(sync=False), topics)

    def _statuses(self, *, sync: bool) -> list[GroupStatus]:
        return self._look.groups(sync=sync, include_moved=self._settings.include_moved)

    def _groups(self) -> Check:
        if not self._look.synchronizes:
            return Check(Verdict.WARNING, "the link does not synchronize consumer groups")
        began = time.monotonic()
        while True:
            refused = {} if self._dry_run else {each.group: each for each in self._statuses(sync=True) if each.refused}
            found = (
                self._look.trial(include_moved=self._settings.include_moved) if self._dry_run else self._kept(refused)
            )
            check = failover_groups.groups(found, accept=self._settings.accept_inexact, soon=self._dry_run)
            if not self._dry_run:
                self._count(found)
            if check.verdict is not Verdict.FAILED or time.monotonic() >= began + self._groups_patience(found):
                return check
            time.sleep(1.0)

    def _kept(self, refused: Mapping[str, GroupStatus]) -> list[GroupStatus]:
        """Return the current state of the groups; for a group of which an offset was just rejected, the state with that
        rejection."""
        return [status if status.synced else refused.get(status.group, status) for status in self._statuses(sync=False)]

    def _groups_patience(self, found: Iterable[GroupStatus]) -> float:
        if self._dry_run:
            return 0.0
        inexact = any(item.fit == Fit.INEXACT for status in found if status.selected for item in status.offsets)
        return _GROUPS_CONFIRM_SECONDS if inexact else _GROUPS_SETTLE_SECONDS

    def _count(self, found: Sequence[GroupStatus]) -> None:
        chosen = [status for status in found if status.selected]
        named = failover_report.groups_of(found)
        self._turn.keep(groups=len(chosen), groups_exact=sum(status.synced for status in chosen), group_list=named)

    def _quiet(self) -> Check:
        """Check that no producer or consumer has appeared since they were found to have stopped. Wait for groups whose
        topics are unknown: a group of other topics may rebalance at any time."""
        places = self._source_partitions()
        check = failover.still(self._ends() or self._look.ends(places), self._look.ends(places), {}, unix_ms())
        if check.verdict is Verdict.DONE and self._look.synchronizes and (found := self._attached()).members:
            check = failover.attached(found)
            if found.all_unknown:
                return check
        return check if check.verdict is Verdict.DONE else Check(Verdict.FAILED, check.detail)

    def _ends(self) -> Ends:
        if self._dry_run and not self._turn.record.ends:
            return self._look.ends(self._places)
        return {TopicPartition(item.topic, item.partition): item.offset for item in self._turn.record.ends}

    def _take_back(self) -> None:
        """Take back all changes. If that fails, report it, but do not hide the error that stopped the failover."""
        if self._dry_run:
            return
        with contextlib.suppress(ClusterError):  # the ACLs are on the source: continue without the destination
            try:
                self._turn.keep()
            except FailoverTakenOver:
                return
        try:
            self._turn.give_up(lambda: lift_fence(self._look, self._turn, self._turn.added_fence))
        except StraitError as error:
            left = f"{plural(len(self._turn.added_fence), 'ACL')} may be left on {self._look.link.source.name}"
            self._turn.say(
                "take back", Check(Verdict.FAILED, f"{error}; {left}: strait failover --unfence removes them")
            )

    def again(self, done: Failover) -> None:
        """Apply the current settings after a failover that is done, and check the source again. Raises as `run`."""
        take = self._turn.take
        facts = ("ends", "plans", "groups", "groups_exact", "group_list", "topics", "topics_left", "transformed")
        self._turn.keep(**{name: getattr(done, name) for name in facts}, still_paused=self._look.still_paused())
        take("earlier", lambda: failover.done_before(done))
        try:
            self._places = self._source_partitions()
            if self._settings.fence:  # without hooks: the clients are on the destination
                take("fence", self._fence)
        except FailoverTakenOver:
            raise
        except BaseException:
            self._take_back()
            raise
        take("verify", self._verify)
        take("reverse", lambda: reverse(self._look))
        self._turn.end("done", timed=False)

    # --- steps that only go forward -----------------------------------------------------------------------------------

    def _after(self) -> None:
        if not self._dry_run:
            places = self._ends()
            if self._look.wave:  # no topic may move without the checks before the stop
                self._look.fix_topics({place.topic for place in places})
            self._turn.take_with_hooks(STOP, lambda: stop(self._look, self._turn), announced=True)
            self._turn.keep(
                plans=self._look.plan_versions(),
                topics=failover_report.topics_of(places, (), None, unix_ms()),
                topics_left=self._look.topics_left() if self._look.wave else None,
                still_paused=self._look.still_paused(),
            )
            self._turn.take_with_hooks("verify", self._verify)
        self._turn.take("audited", lambda: audited(self._look))
        self._turn.take("reverse", lambda: reverse(self._look))
        self._turn.end("done")

    def _verify(self) -> Check:
        drained, (words, _) = self._ends(), self._look.last_words()
        try:
            ends = recovery_point.wanted(self._look.ends(self._source_partitions()), words)
        except ClusterUnavailable as error:
            return Check(Verdict.WARNING, f"whether anything was written to the source too late is not known: {error}")
        copied = {place: max(drained.get(place, 0), words[place].position if place in words else 0) for place in ends}
        found = recovery_point.missing(copied, ends)
        number = failover.records(found)
        topics = failover_report.topics_of(ends, found, None, unix_ms())
        self._turn.keep(missing=found, topics=topics, rpo_records=number, rpo_seconds=None if number else 0.0)
        return recovery_point.late(found)


def _rules(principals: Iterable[str], topics: Iterable[str]) -> list[TopicAcl]:
    return [
        TopicAcl(topic, "LITERAL", principal, "*", "WRITE", "DENY")
        for principal in principals
        for topic in sorted(topics)
    ]


def _kept(ends: Ends) -> tuple[SourceEnd, ...]:
    return tuple(
        SourceEnd(topic=place.topic, partition=place.partition, offset=end) for place, end in sorted(ends.items())
    )
