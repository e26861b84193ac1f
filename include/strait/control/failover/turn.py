"""Runs the steps of a failover: each is repeated until its check passes, then reported and recorded."""

import contextlib
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from strait.config.failover import Hook, When
from strait.control.failover.hooks import Hooks, is_hook
from strait.control.failover.journal import Journal
from strait.errors import ClusterError, FailoverStopped
from strait.planning.failover import Check, Verdict
from strait.planning.waves import WHOLE_LINK, Wave
from strait.state.failover_records import Failover, FailoverStep
from strait.state.schema import GivenAcl
from strait.waiting import unix_ms

_POLL_SECONDS = 1.0
_TELL_SECONDS = 5.0

Tell = Callable[[FailoverStep], None]
"""Is called with each step when it is over, and every 5 s with a step that takes long: that one is `waiting`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that a request for a failover may choose.

    Attributes:
        fence: principals that are denied to write to the source's topics during the failover and after it.
        quiet_seconds: producers have stopped if nothing is written to the source for this long.
        timeout_seconds: for each step.
        accept_inexact: names of consumer groups that need not continue exactly at their position; "*": any.
        accept_tail: continue although the link in the opposite direction has not copied all that is on the destination.
        accept_transformed: continue although a rule transforms records, so that the destination has others than the source.
        include_moved: commit, only forward, also for groups that have consumed on the destination before.
        even_if_source_answers: for an unplanned failover: run it even if the source responds.
        wave: the topics and groups to move.
    """

    by: str
    reason: str = ""
    fence: tuple[str, ...] = ()
    quiet_seconds: float = 10.0
    timeout_seconds: float = 600.0
    accept_inexact: tuple[str, ...] = ()
    accept_tail: bool = False
    accept_transformed: bool = False
    include_moved: bool = False
    even_if_source_answers: bool = False
    wave: Wave = WHOLE_LINK


class Turn:
    """One process's turn at a failover.

    Args:
        journal: None: nothing is recorded.
        timeout_seconds: for each step; None: do not wait, continue after a step that does not hold, and run no hook.
        hooks: None: none are run.
        fence_before: ACLs that earlier failovers left on purpose.
    """

    def __init__(
        self,
        record: Failover,
        journal: Journal | None,
        tell: Tell,
        timeout_seconds: float | None,
        fence_before: Collection[GivenAcl] = (),
        hooks: Hooks | None = None,
    ) -> None:
        self.record = record.model_copy(update={"turn": uuid.uuid4().hex})
        self._journal = journal
        self._tell = tell
        self._timeout_seconds = timeout_seconds
        self._fence_before = fence_before
        self._hooks = hooks
        self.keep()

    @property
    def added_fence(self) -> tuple[GivenAcl, ...]:
        """ACLs that this failover has added, and none before it."""
        return tuple(rule for rule in self.record.fence if rule not in self._fence_before)

    def say(self, name: str, check: Check) -> None:
        """Report a result that is not a step."""
        self._tell(_step(name, check, unix_ms(), time.monotonic()))

    def look_ahead(self) -> None:
        """Check that all hooks can be run here, before anything is changed. Raises FailoverStopped."""
        if self._hooks:
            self.take("hooks", self._hooks.look_ahead)

    def start_over(self) -> None:
        """Discard the results of an earlier turn, which may be outdated. Its hooks count as started, and run again."""
        hooks = (item.model_copy(update={"verdict": "waiting"}) for item in self.record.steps if is_hook(item.name))
        self.keep(steps=tuple(hooks), ends=())

    def take_with_hooks(
        self, name: str, look: Callable[[], Check], *, announced: bool = False, hooked: str = ""
    ) -> None:
        """Take one step between the hooks of ``hooked``, by default its name. Raises as `take`."""
        self.run_hooks("before", hooked or name)
        self.take(name, look, announced=announced)
        self.run_hooks("after", hooked or name)

    def run_hooks(self, when: When, step: str) -> None:
        """Run the hooks of a step, each as a separate step; skip those that are done, in this turn or an earlier one.
        Raises FailoverStopped."""
        if self._hooks is None or self._timeout_seconds is None:
            return
        done = {item.name: item.detail for item in self.record.steps if item.verdict == "done"}
        for name, hook in self._hooks.at(when, step):
            if not done.get(name, "").startswith(str(hook)):  # the links file may have changed since
                self.say(name, Check(Verdict.WAITING, f"{hook} is run"))
                self.take(name, partial(self._run_hook, hook, when, step), announced=True)

    def _run_hook(self, hook: Hook, when: When, step: str) -> Check:
        assert self._hooks is not None
        return self._hooks.run(hook, when, step, self.record, self._still_mine)

    def _still_mine(self) -> None:
        """Raises FailoverTakenOver if another turn has started since; an unavailable journal is no evidence."""
        if self._journal is not None:
            with contextlib.suppress(ClusterError):
                self._journal.require_turn(self.record)

    def take(self, name: str, look: Callable[[], Check], *, announced: bool = False) -> None:
        """Take one step. ``announced``: record the start of the step before it starts.

        Raises:
            FailoverStopped: the step does not hold, or not in time.
        """
        began_ms, began = unix_ms(), time.monotonic()
        tell_at = began + _TELL_SECONDS

        def step(check: Check) -> FailoverStep:
            return _step(name, check, began_ms, began)

        if announced:
            self._put(step(Check(Verdict.WAITING, "begun")))
        while True:
            check = look()
            if check.verdict is not Verdict.WAITING or self._timeout_seconds is None:
                break
            if time.monotonic() >= began + self._timeout_seconds:
                check = Check(Verdict.FAILED, f"not within {self._timeout_seconds:g} s: {check.detail}")
                break
            if time.monotonic() >= tell_at:
                tell_at = time.monotonic() + _TELL_SECONDS
                self._tell(step(check))
            time.sleep(_POLL_SECONDS)
        self._put(step(check))
        self._tell(step(check))
        if check.verdict is Verdict.FAILED and self._timeout_seconds is not None:
            raise FailoverStopped(f"link {self.record.link}: failover {self.record.id}: {name}: {check.detail}")

    def took(self, name: str) -> bool:
        """Return whether a step was started, in this turn or an earlier one."""
        return any(step.name == name for step in self.record.steps)

    def keep(self, **changes: Any) -> None:
        """Store facts in the record. Raises FailoverTakenOver if another turn has started since."""
        self.record = self.record.model_copy(update=changes)
        if self._journal is not None:
            self._journal.write(self.record)

    def give_up(self, undo: Callable[[], object] = lambda: None) -> None:
        """Take back all changes, with the hooks before and after that if this failover has run a hook or added a fence,
        and close the record. Raises the errors of ``undo``."""
        changed = bool(self.added_fence) or any(is_hook(step.name) for step in self.record.steps)
        try:
            self._take_back_hooks("before", changed=changed)
        finally:
            try:
                undo()
            finally:
                self._take_back_hooks("after", changed=changed)
        self.end("aborted")

    def _take_back_hooks(self, when: When, *, changed: bool) -> None:
        """Run the hooks before or after changes are taken back. One that fails is reported and stops nothing; they are
        written with the record's end, since its cluster may be unavailable now."""
        if self._hooks is None or not changed:
            return
        for name, hook in self._hooks.at(when, "take_back"):
            began_ms, began = unix_ms(), time.monotonic()
            step = _step(name, self._hooks.run(hook, when, "take_back", self.record), began_ms, began)
            self.record = self.record.model_copy(update={"steps": (*self.record.steps, step)})
            self._tell(step)

    def end(self, outcome: str, *, timed: bool = True, **changes: Any) -> None:
        """Close the record. ``timed``: if it is done, store its duration as the recovery time, in seconds."""
        now_ms = unix_ms()
        rto_seconds = round((now_ms - self.record.began_at_ms) / 1000, 3) if timed and outcome == "done" else None
        self.keep(outcome=outcome, ended_at_ms=now_ms, rto_seconds=rto_seconds, **changes)

    def _put(self, step: FailoverStep) -> None:
        before = tuple(other for other in self.record.steps if other.name != step.name)
        self.keep(steps=(*before, step))


def _step(name: str, check: Check, began_ms: int, began: float) -> FailoverStep:
    seconds = round(time.monotonic() - began, 3)
    return FailoverStep(
        name=name, verdict=check.verdict.value, detail=check.detail, began_at_ms=began_ms, seconds=seconds
    )
