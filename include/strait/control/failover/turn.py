"""Taking the steps of a failover: each is looked at until it holds, told, and kept."""

import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from strait.config.failover import When
from strait.control.failover.hooks import Hooks
from strait.control.failover.journal import Journal
from strait.errors import FailoverStopped
from strait.planning.failover import Check, Verdict
from strait.planning.waves import WHOLE_LINK, Wave
from strait.state.failover_records import Failover, FailoverStep
from strait.state.schema import GivenAcl

_POLL_SECONDS = 1.0
_TELL_SECONDS = 5.0

Tell = Callable[[FailoverStep], None]
"""Is told of each step when it is over, and of one that takes long every few seconds: then it is `waiting`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What whoever asks for a failover may decide.

    Attributes:
        fence: principals that are denied to write to the source's topics while it takes place, and after it.
        quiet_seconds: so long nothing must be written to the source before it counts as left by its producers.
        timeout_seconds: for each step.
        accept_inexact: names of consumer groups that need not continue exactly where they stopped; "*": any.
        accept_tail: go on although the link that copies the other way has not copied all that the destination has.
        include_moved: commit, forward, also for groups that have consumed on the destination before.
        even_if_source_answers: of an unplanned one.
        wave: what is moved.
    """

    by: str
    reason: str = ""
    fence: tuple[str, ...] = ()
    quiet_seconds: float = 10.0
    timeout_seconds: float = 600.0
    accept_inexact: tuple[str, ...] = ()
    accept_tail: bool = False
    include_moved: bool = False
    even_if_source_answers: bool = False
    wave: Wave = WHOLE_LINK


class Turn:
    """One process' turn at a failover.

    Args:
        journal: None: nothing is kept.
        timeout_seconds: for each step; None: nothing is waited for, a step that does not hold ends nothing, and no hook
            is run.
        hooks: None: none are run.
        fence_before: rules that earlier failovers left on purpose.
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
        """Rules that this failover has given, and none before it."""
        return tuple(rule for rule in self.record.fence if rule not in self._fence_before)

    def say(self, name: str, check: Check) -> None:
        """Tell of something that is no step."""
        self._tell(_step(name, check, _now_ms(), time.monotonic()))

    def look_ahead(self) -> None:
        """Tell whether the hooks could be run, where none are."""
        if self._hooks:
            self._take("hooks", self._hooks.look_ahead)

    def take(self, name: str, look: Callable[[], Check], *, announced: bool = False, hooked: str = "") -> None:
        """Take one step, between the hooks of ``hooked``, by default its name. ``announced``: that it has begun is kept
        before it is.

        Raises:
            FailoverStopped: it, or a hook, does not hold, or not in time.
        """
        self.run_hooks("before", hooked or name)
        self._take(name, look, announced=announced)
        self.run_hooks("after", hooked or name)

    def run_hooks(self, when: When, step: str) -> None:
        """Each is a step, too; one that is done, in this turn or one before, is not run again. Raises FailoverStopped."""
        if self._hooks is None or self._timeout_seconds is None:
            return
        done = {item.name for item in self.record.steps if item.verdict == "done"}
        for name, hook in self._hooks.at(when, step):
            if name not in done:
                self.say(name, Check(Verdict.WAITING, f"{hook} is run"))
                self._take(name, partial(self._hooks.run, hook, when, step, self.record))

    def _take(self, name: str, look: Callable[[], Check], *, announced: bool = False) -> None:
        began_ms, began = _now_ms(), time.monotonic()
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
        """Whether a step was begun, in this turn or one before."""
        return any(step.name == name for step in self.record.steps)

    def keep(self, **changes: Any) -> None:
        """Keep facts in the record. Raises FailoverTakenOver where another turn has begun since."""
        self.record = self.record.model_copy(update=changes)
        if self._journal is not None:
            self._journal.write(self.record)

    def give_up(self, undo: Callable[[], object] = lambda: None) -> None:
        """Take back what was done, with the hooks around it, and close the record. Raises what ``undo`` raises."""
        self._take_back_hooks("before")
        try:
            undo()
        finally:
            self._take_back_hooks("after")
        self.end("aborted")

    def _take_back_hooks(self, when: When) -> None:
        """One that fails is told, and ends nothing; kept with the record's end, since its cluster may be away now."""
        if self._hooks is None:
            return
        for name, hook in self._hooks.at(when, "take_back"):
            began_ms, began = _now_ms(), time.monotonic()
            step = _step(name, self._hooks.run(hook, when, "take_back", self.record), began_ms, began)
            self.record = self.record.model_copy(update={"steps": (*self.record.steps, step)})
            self._tell(step)

    def end(self, outcome: str, *, timed: bool = True, **changes: Any) -> None:
        """Close the record. ``timed``: it took as long as a failover takes."""
        now_ms = _now_ms()
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


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
