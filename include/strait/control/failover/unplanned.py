"""A failover without the source: it continues with the data on the destination and lists missing records as far as they
are known. The source is only checked for whether it responds."""

from strait.control.failover.checks import STOP, audited, is_stopped, reverse, stop, take_transformed
from strait.control.failover.observation import Observation
from strait.control.failover.turn import Settings, Turn
from strait.control.held_elsewhere import links_beside
from strait.errors import ConfigError, FailoverTakenOver
from strait.planning import failover, failover_groups, failover_report, recovery_point
from strait.planning.failover import Check, Verdict
from strait.planning.held_elsewhere import elsewhere
from strait.state.failover_records import Failover
from strait.state.group_sync_records import GroupSyncReport
from strait.waiting import unix_ms


class UnplannedFailover:
    """``dry_run``: only check, change nothing."""

    def __init__(self, observation: Observation, turn: Turn, settings: Settings, *, dry_run: bool = False) -> None:
        self._look = observation
        self._turn = turn
        self._settings = settings
        self._dry_run = dry_run
        self._group_sync: GroupSyncReport | None = None

    def run(self) -> None:
        """Run the failover. Raises FailoverStopped, and the errors of the destination; another run resumes it."""
        take = self._turn.take
        if not (self._turn.took(STOP) and is_stopped(self._look, self._turn.record)):
            try:
                self._turn.look_ahead()
                take("source", self._source)
                take_transformed(self._look, self._turn, accept=self._settings.accept_transformed)
                self._turn.run_hooks("before", STOP)
            except FailoverTakenOver:
                raise
            except BaseException:
                if not self._dry_run:
                    self._turn.give_up()
                raise
        if not self._dry_run:
            self._turn.take_with_hooks(STOP, lambda: stop(self._look, self._turn), announced=True)
            self._turn.keep(plans=self._look.plan_versions(), still_paused=self._look.still_paused())
        self._turn.take_with_hooks("missing", self._missing, hooked="verify")
        take("groups", self._groups)
        take("audited", lambda: audited(self._look))
        take("reverse", lambda: reverse(self._look, ask=False))
        if links_beside(self._look.link):
            take("elsewhere", self._elsewhere)
        self._turn.end("done")

    def again(self, done: Failover) -> None:
        """Report a failover that is done: facts that were unknown when it ended are still unknown. Raises as `run`."""
        reach = ("plans", "missing", "topics", "transformed", "held_elsewhere", "rpo_records", "rpo_seconds")
        facts = (*reach, "groups", "groups_exact", "group_list")
        self._turn.keep(**{name: getattr(done, name) for name in facts}, still_paused=self._look.still_paused())
        self._turn.take("earlier", lambda: failover.done_before(done))
        self._turn.take("reverse", lambda: reverse(self._look, ask=False))
        self._turn.end("done", timed=False)

    def _source(self) -> Check:
        if self._settings.even_if_source_answers:
            return Check(
                Verdict.WARNING, f"cluster {self._look.link.source.name} is not asked for anything, even if it answers"
            )
        try:
            trouble = self._look.source_trouble()
        except ConfigError as error:
            hint = "correct it here; --even-if-source-answers goes on without asking"
            return Check(
                Verdict.FAILED, f"whether cluster {self._look.link.source.name} answers is not known: {error}: {hint}"
            )
        if trouble:
            return Check(Verdict.DONE, f"cluster {self._look.link.source.name} cannot be asked: {trouble}")
        hint = "a planned failover loses nothing; --even-if-source-answers goes on without it"
        return Check(Verdict.FAILED, f"cluster {self._look.link.source.name} answers: {hint}")

    def _missing(self) -> Check:
        words, self._group_sync = self._look.last_words()
        found = recovery_point.missing(
            {place: word.position for place, word in words.items()}, {place: word.end for place, word in words.items()}
        )
        self._turn.keep(
            missing=found,
            topics=failover_report.topics_of(words, found, words, self._stopped_at_ms),
            rpo_records=recovery_point.rpo_records(words, found),
            rpo_seconds=recovery_point.rpo_seconds(words, self._stopped_at_ms),
        )
        return recovery_point.lost(found, words, self._stopped_at_ms)

    def _elsewhere(self) -> Check:
        found, unknown = self._look.held_elsewhere()
        self._turn.keep(held_elsewhere=found)
        return elsewhere(self._look.link.name, found, unknown)

    @property
    def _stopped_at_ms(self) -> int:
        """Time until which the link may have copied, in ms; without a stop, in a dry run, the start of the failover."""
        steps = {step.name: step for step in self._turn.record.steps}
        return steps[STOP].began_at_ms if STOP in steps else self._turn.record.began_at_ms

    def _groups(self) -> Check:
        report = self._group_sync
        there, unread = self._look.groups_there()
        named = failover_report.groups_known(report, there, unread)
        if report is not None:
            self._turn.keep(groups=report.groups, groups_exact=report.in_sync)
        self._turn.keep(group_list=named)
        return failover_groups.kept_groups(report, unix_ms(), unread)
