"""Makes the applications of a link match its plans. `strait.launch.applications` chooses the actions (pure); this module
observes the applications, and carries the actions out."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from strait.config.app_spec import AppSpec, PoolSpec, Spec
from strait.config.naming import application_name, application_of, pool_application_name
from strait.control.plane import Control
from strait.errors import LaunchError
from strait.launch import submission
from strait.launch.applications import Action, GiveUp, Leave, Replace, Update, decide, dying, held_until_ms, orphans
from strait.launch.base import Application, Launcher
from strait.launch.launchers import end_elsewhere, ended_elsewhere, launcher_for
from strait.launch.submission import KEPT
from strait.planning.status.needs import Dying
from strait.state.admission import with_selection_of
from strait.state.link_handle import ConfiguredLink
from strait.state.report_records import Report
from strait.state.schema import Plan
from strait.state.signing import Proof
from strait.text import plural, utc
from strait.waiting import unix_ms

log = logging.getLogger(__name__)


class Due(NamedTuple):
    """An application that needs an action. Plain values: it is passed from task to task.

    Attributes:
        name: of the application.
        because: the action and its reason, as one line.
    """

    group: str
    standby: bool
    name: str
    because: str


@dataclass(frozen=True, slots=True)
class _Look:
    """``wanted`` None: the plan is stopped; ``unwanted``: a standby that is no longer configured."""

    name: str
    found: Application | None
    wanted: AppSpec | None
    action: Action
    unwanted: bool = False


class Supervisor:
    """Keeps the applications of one link running.

    Args:
        home: Strait's directory: for submissions, specs, checkpoints and the ledger.
        proofs: task group -> whether its plan is proven by the key of this host or of the links file.

    Raises (every method):
        LaunchError, SetupError: the launcher cannot do it, or does not respond.
    """

    def __init__(self, link: ConfiguredLink, home: Path, proofs: Mapping[str, Proof] | None = None) -> None:
        self._link = link
        self._home = home
        self._proofs = proofs or {}
        self._spark = link.settings.spark
        self.launcher: Launcher = launcher_for(self._spark, home / "applications")

    def has_standby(self, group: str) -> bool:
        """Return whether the task group is configured to have a standby application, its own or that of its pool."""
        if self._link.settings.pool is not None:
            return self._link.file.pools[self._link.settings.pool].standby
        groups = self._link.settings.groups
        return group in groups and groups[group].standby

    def due(self, plans: Iterable[Plan]) -> list[Due]:
        """Return the applications that `ensure` would submit, replace or stop now. Changes nothing."""
        found = []
        for plan, standby in _each(plans):
            look = self._look(plan, standby)
            if look.unwanted:
                found.append(Due(plan.group, standby, look.name, "stop: its task group has no standby"))
            elif not isinstance(look.action, Leave | GiveUp):
                verb = "replace" if isinstance(look.action, Replace | Update) else "submit"
                found.append(
                    Due(plan.group, standby, look.name, f"{verb}: {look.action.because}{self._ended(look.found)}")
                )
        return found

    def held(self, plans: Iterable[Plan]) -> dict[str, int]:
        """Return the applications that are not submitted for now, as they exited too often -> until when, in ms since
        1970."""
        looks = [self._look(plan, standby) for plan, standby in _each(plans)]
        return {look.name: look.action.until_ms for look in looks if isinstance(look.action, GiveUp)}

    def dying(self, plans: Iterable[Plan]) -> dict[str, Dying]:
        """Return the applications that restarting does not help."""
        found = {}
        for plan, standby in _each(plans):
            name = application_of(self._link.name, self._link.settings.pool, plan.group, standby=standby)
            history, now_ms = [] if plan.stopped else list(self.launcher.history(name)), unix_ms()
            if not (failed := dying(history, now_ms)):
                continue
            cause, until_ms = self.launcher.cause(failed[0]), held_until_ms(history, now_ms)
            held = f"; it is not submitted before {utc(until_ms)} UTC" if until_ms else ""
            times = (
                plural(len(failed), "time or more", "times or more")
                if len(history) >= KEPT
                else plural(len(failed), "time")
            )
            text = f"exited {times} within an hour, last: {cause}{held}; its log is {failed[0].log}"
            found[name] = Dying(text, cause)
        return found

    def ensure(self, plan: Plan, *, standby: bool = False, insist: bool = False) -> list[str]:
        """Leave, submit, replace or stop an application of one task group. Return a line with the action taken; none for
        a standby that is neither configured nor running.

        Args:
            insist: submit it regardless of how often it has exited.

        Raises (besides): LaunchError also if it exits repeatedly and an operator must investigate.
        """
        look = self._look(plan, standby, insist=insist)
        name, found, action = look.name, look.found, look.action
        if standby and not self.has_standby(plan.group):
            if not look.unwanted:
                return []
            self.end(name, "its task group has no standby any more")
            return [f"{name}: ended, its task group has no standby"]
        ended = self._ended(found)
        if isinstance(action, Leave):
            return [f"{name}: {action.because}"]
        if isinstance(action, GiveUp):
            raise LaunchError(
                f"application {name}: not submitted before {utc(action.until_ms)} UTC: {action.because}; the last time{ended}",
                hint=f"its log is {found.log if found else 'lost'}",
            )
        log.warning("application %s: submitting: %s%s", name, action.because, ended)
        if isinstance(action, Replace | Update):
            self.launcher.stop(name)
        elif elsewhere := end_elsewhere(name, self._spark, self._home / "applications"):
            log.warning("application %s", elsewhere)
        assert look.wanted is not None
        spec_path = self._home / "specs" / f"{name}.json"
        look.wanted.write(spec_path)
        submitted = self.launcher.submit(name, spec_path, self._spark)
        log.info("application %s: submitted as %s, log %s", name, submitted.id, submitted.log)
        return [f"{name}: submitted: {action.because}{ended}"]

    def end(self, name: str, because: str) -> None:
        """Stop an application in any state."""
        log.warning("application %s: stopping it: %s", name, because)
        self.launcher.stop(name)

    def end_orphans(self, links: Collection[str], pools: Collection[str]) -> list[str]:
        """Stop applications that run and belong to none of these links and pools: on this link's cluster, and on those that
        this host has submitted others to. Return a line for each."""
        found = self.launcher.list()
        known = {one.name for one in found if _belongs(one.name, self.launcher.spec(one), links, pools)}
        done = []
        for application in orphans(found, known):
            self.end(application.name, "its link is not in the links file")
            done.append(f"{application.name}: ended, no link has it")
        directory = self._home / "applications"
        for name in sorted(submission.names_in(directory) - known - {one.name for one in found if one.state.alive}):
            kept = submission.of_name(directory / name)
            if not kept or _belongs(name, submission.spec_of(kept[0]), links, pools):
                continue
            if on := ended_elsewhere(name, self._spark, directory).on:
                log.warning("application %s: stopped on %s: no link has it", name, on)
                done.append(f"{name}: ended on {on}, no link has it")
        return done

    def _look(self, plan: Plan, standby: bool, *, insist: bool = False) -> _Look:
        name = application_name(self._link.name, plan.group, standby=standby)
        found = self.launcher.state(name)
        if standby and not self.has_standby(plan.group):
            unwanted = found is not None and found.state.alive
            return _Look(name, found, None, Leave("its task group has no standby"), unwanted)
        wanted = None if plan.stopped else self.spec(plan, standby)
        runs_with = None if found is None else self.launcher.spec(found)
        if wanted is not None and found is not None and found.state.alive:
            wanted = with_selection_of(wanted, runs_with, plan, self._proofs)
        history: Sequence[Application] = () if insist else self.launcher.history(name)
        return _Look(name, found, wanted, decide(wanted, found, runs_with, history, unix_ms()))

    def spec(self, plan: Plan, standby: bool) -> AppSpec:
        """Return the spec for the current plan, which may differ from the links file until the next plan is
        published."""
        checkpoint_dir = self._home / "checkpoints" / application_name(self._link.name, plan.group, standby=standby)
        control = Control(self._link.file, self._link.name)
        return control.spec(plan, ledger_dir=self._home / "ledger", checkpoint_dir=checkpoint_dir, standby=standby)

    def _ended(self, found: Application | None) -> str:
        return f": {self.launcher.cause(found)}" if found is not None and not found.state.alive else ""


def _belongs(name: str, spec: Spec | None, links: Collection[str], pools: Collection[str]) -> bool:
    """Return whether an application belongs to one of these links or pools; by its name if its spec cannot be read."""
    if isinstance(spec, PoolSpec):
        return spec.pool in pools
    if spec is not None:
        return any(link in links for link in spec.links)
    if name in {pool_application_name(pool, standby=standby) for pool in pools for standby in (False, True)}:
        return True
    return any(name.startswith(application_name(link, "")) for link in links)


def still_silent(
    found: Application | None, plan: Plan, reports: Mapping[tuple[str, int], Sequence[Report]], at_ms: int
) -> bool:
    """Return whether an application that did not report at ``at_ms`` (ms since 1970) has not been replaced since, and
    at least one of its slots has not reported since."""
    if found is None or found.submitted_at_ms > at_ms:
        return False
    heard = [max((part.at_ms for part in reports.get((plan.group, slot), ())), default=0) for slot in range(plan.slots)]
    return min(heard) <= at_ms


_LIVE_MS = 15_000
"""A slot reports once a second. One whose last report was this long before another was found silent is silent, too; the
rest is for clocks of several hosts."""


def all_silent(found: Application | None, heard_ms: Iterable[int], at_ms: int) -> bool:
    """Return whether no slot of a pool reported when one of them was found silent at ``at_ms`` (ms since 1970), and the
    application has not been replaced since.

    Args:
        heard_ms: times of the slots' newest reports.
    """
    if found is None or not found.state.alive or found.submitted_at_ms > at_ms:
        return False
    return max(heard_ms, default=0) <= at_ms - _LIVE_MS


def _each(plans: Iterable[Plan]) -> Iterator[tuple[Plan, bool]]:
    return ((plan, standby) for plan in plans for standby in (False, True))
