"""Makes the applications of pools match the current plans of their links.

The run of each link changes the link's own part of the pool's spec, and whichever comes first submits the application, by a
task `submit` in its graph: they take turns by a lock, so there is one submission. The parts of the other links are those
that the application runs; a file on this host has them while it does not run.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from strait.waiting import unix_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from strait.config.app_spec import AppSpec, PoolSpec, Seat
    from strait.config.links import LinksFile, Pool, Spark
    from strait.control.supervision import Due
    from strait.launch.applications import Action
    from strait.launch.base import Application
    from strait.planning.history.load import Reports
    from strait.state.schema import Plan

log = logging.getLogger(__name__)


def due(
    file: "LinksFile", link: str, plans: "Iterable[Plan]", reports: "Reports"
) -> "tuple[list[Due], dict[str, int]]":
    """Return the applications of the link's pool, itself and its standby, if `ensure` would submit, replace, update or stop
    them now; and those that exited too often and are held: application -> until when, in ms since 1970. If one needs no
    action, store the link's part of its spec."""
    wanted: list[Due] = []
    held: dict[str, int] = {}
    own = _own(file, link, plans)
    for application in _of_link(file, link):
        due, until = application.due(link, own, _loads(link, reports))
        wanted += due
        held |= until
    return wanted, held


def ensure(
    file: "LinksFile",
    link: str,
    plans: "Iterable[Plan]",
    reports: "Reports",
    *,
    standby: bool = False,
    insist: bool = False,
) -> list[str]:
    """Have the pool's application, or its standby, run the task groups of this link by its plans. Return a line with the
    action.

    Args:
        insist: submit it regardless of how often it has exited.

    Raises:
        LaunchError: it could not be stopped or submitted, or it exits repeatedly and an operator must investigate.
    """
    application = _of_link(file, link)[standby]
    return application.follow(link, _own(file, link, plans), _loads(link, reports), insist=insist)


def hangs(file: "LinksFile", link: str, at_ms: int, read: "Callable[[str], Reports]") -> bool:
    """Return whether the pool's application runs, but none of the slots that it hosts reports, of any link. If some do, the
    cause is a link's own, and a restart would only stop the others.

    Args:
        at_ms: when a slot of the link was found silent, in ms since 1970.
        read: returns the newest reports of a link. If those of a link cannot be read, its slots may report.
    """
    from strait.control.supervision import all_silent
    from strait.errors import StraitError

    application = _of_link(file, link)[False]
    found = application.found()
    if not all_silent(found, (), at_ms):
        return False
    heard: list[int] = []
    for member in application.hosted(found):
        try:
            reports = read(member)
        except StraitError as error:
            log.warning("link %s of the pool: whether it reports is unknown: %s", member, error)
            return False
        heard += [one.at_ms for some in reports.values() for one in some]
    return all_silent(found, heard, at_ms)


def end_hanging(file: "LinksFile", link: str, because: str, at_ms: int) -> bool:
    """Stop the pool's application unless the run of another link has replaced it since ``at_ms``: all of them find it
    silent at about the same time. Return whether it was stopped."""
    return _of_link(file, link)[False].end_older(because, at_ms)


def _own(file: "LinksFile", link: str, plans: "Iterable[Plan]") -> "list[AppSpec]":
    from strait_airflow.applications import spec_of

    return [spec_of(file, link, plan, standby=False) for plan in plans if not plan.stopped]


def _of_link(file: "LinksFile", link: str) -> "tuple[_PoolApplication, _PoolApplication]":
    """Return the application of the link's pool, and its standby."""
    pool, spark = file.links[link].pool, file.links[link].spark
    assert pool is not None
    first = _PoolApplication(pool, file.pools[pool], spark)
    return first, _PoolApplication(pool, file.pools[pool], spark, first)


def tidy(file: "LinksFile", link: str) -> list[str]:
    """Have every pool run no link that does not name it any more. Return a line for each such pool.

    Args:
        link: a link of the file, whose cluster of Spark is used if a pool was deleted with its last link.
    """
    from strait.config.outline import pools_of
    from strait_airflow.applications import folder
    from strait_airflow.settings import links_file

    done: list[str] = []
    named = pools_of(links_file())
    for path in sorted(folder("pools").glob("*.json")):
        spec = _read(path)
        if spec is not None and any(named.get(one) != path.stem for one in spec.links):
            pool = file.pools.get(path.stem)
            spark = file.links[link].spark if pool is None else pool.spark
            first = _PoolApplication(path.stem, pool, spark)
            for application in (first, _PoolApplication(path.stem, pool, spark, first)):
                done += application.follow("", [], {})
    return done


def in_use() -> frozenset[str]:
    """Return the pools that a link names, or is in by default."""
    from strait.config.outline import pools_of
    from strait_airflow.settings import links_file

    return frozenset(pools_of(links_file()).values())


class _PoolApplication:
    """The application of one pool.

    Args:
        pool: its settings; None if it is not configured any more.
        first: the application whose standby this one is; None: it is no standby.
    """

    def __init__(self, name: str, pool: "Pool | None", spark: "Spark", first: "_PoolApplication | None" = None) -> None:
        from strait.config.links import Pool
        from strait.config.naming import pool_application_name
        from strait_airflow.applications import folder, launcher

        self._pool = Pool() if pool is None else pool
        self._pool_name = name
        self._spark = spark
        self._launch = launcher(spark)
        self._first = first
        self._directory = folder("pools")
        self.name = pool_application_name(name, standby=first is not None)
        self._checkpoints = folder("checkpoints") / self.name
        self._path = (self._directory if first is None else self._directory / "standby") / f"{name}.json"

    def found(self) -> "Application | None":
        """Return the application as last seen."""
        return self._launch.state(self.name)

    def hosted(self, found: "Application | None") -> "Iterable[str]":
        """Return the links that the application runs; if that is unknown, all that name the pool."""
        from strait.config.outline import pools_of
        from strait_airflow.settings import links_file

        spec = None if found is None else self._launch.spec(found)
        if spec is not None:
            return spec.links
        return [link for link, pool in pools_of(links_file()).items() if pool == self._pool_name]

    def end_older(self, because: str, at_ms: int) -> bool:
        """Stop the application if it was submitted before ``at_ms``. Return whether it was."""
        from strait.launch import submission

        with submission.locked(self._directory, self._pool_name):
            found = self._launch.state(self.name)
            if found is None or found.submitted_at_ms > at_ms:
                return False
            log.warning("application %s: stopping it: %s", self.name, because)
            self._launch.stop(self.name)
            return True

    def due(self, link: str, own: "list[AppSpec]", loads: "Mapping[Seat, float]") -> "tuple[list[Due], dict[str, int]]":
        """Return the action that `follow` would take, or that the application is held; see `due` of this module."""
        from strait.control.supervision import Due
        from strait.launch import submission
        from strait.launch.applications import GiveUp, Leave, Submit

        with submission.locked(self._directory, self._pool_name):
            found = self._launch.state(self.name)
            wanted, standby = self._wanted(link, own, loads), self._first is not None
            if not wanted.members:
                if found is None or not found.state.alive:
                    self._end_elsewhere(wanted, found)
                stop = Due("", standby, self.name, f"stop: {self._why_unwanted}")
                return [stop] if found is not None and found.state.alive else [], {}
            action = self._decide(wanted, found)
            if isinstance(action, GiveUp):
                return [], {self.name: action.until_ms}
            if isinstance(action, Leave):
                self._keep(wanted, found)
                return [], {}
        verb = "submit" if isinstance(action, Submit) else type(action).__name__.lower()
        return [Due("", standby, self.name, f"{verb}: {action.because}{self._ended(found)}")], {}

    def follow(
        self, link: str, own: "list[AppSpec]", loads: "Mapping[Seat, float]", *, insist: bool = False
    ) -> list[str]:
        """Replace the link's part of the pool's spec, and make the application match it. ``link`` "": of no link."""
        from strait.launch import submission

        with submission.locked(self._directory, self._pool_name):
            found = self._launch.state(self.name)
            wanted = self._wanted(link, own, loads)
            if not wanted.members:
                if found is not None and found.state.alive:
                    log.warning("application %s: stopping it: %s", self.name, self._why_unwanted)
                    self._launch.stop(self.name)
                    self._keep(wanted, found)
                elif not self._end_elsewhere(wanted, found) and self._first is not None:
                    return []
                return [f"{self.name}: {self._why_unwanted}"]
            self._keep(wanted, found)
            return [f"{self.name}: {self._act(wanted, found, insist=insist)}"]

    def _end_elsewhere(self, wanted: "PoolSpec", found: "Application | None") -> str:
        """Stop the application on the cluster of the pool's earlier settings. Return that cluster if it ran there, else "".
        The spec without links is stored only once nothing of it runs, since no later run searches for it."""
        from strait.launch.launchers import ended_elsewhere
        from strait_airflow.applications import launch_directory

        ended = ended_elsewhere(self.name, self._spark, launch_directory())
        if ended.on:
            log.warning("application %s: stopped on %s: %s", self.name, ended.on, self._why_unwanted)
        if ended.sure:
            self._keep(wanted, found)
        return ended.on

    def _act(self, wanted: "PoolSpec", found: "Application | None", *, insist: bool) -> str:
        from strait.errors import LaunchError
        from strait.launch.applications import GiveUp, Leave, Replace, Update
        from strait.launch.launchers import end_elsewhere
        from strait.text import utc
        from strait_airflow.applications import launch_directory

        action, ended = self._decide(wanted, found, insist=insist), self._ended(found)
        if isinstance(action, Leave):
            return action.because
        if isinstance(action, GiveUp):
            raise LaunchError(
                f"application {self.name}: not submitted before {utc(action.until_ms)} UTC: {action.because}; the last "
                f"time{ended}",
                hint=f"its log is {found.log if found else 'lost'}",
            )
        if isinstance(action, Update) and found is not None and self._launch.update(found, wanted):
            log.info("application %s: updated: %s", self.name, action.because)
            return f"updated: {action.because}"
        log.warning("application %s: submitting: %s%s", self.name, action.because, ended)
        if isinstance(action, Replace | Update):
            self._launch.stop(self.name)
        elif elsewhere := end_elsewhere(self.name, self._spark, launch_directory()):
            log.warning("application %s", elsewhere)
        submitted = self._launch.submit(self.name, self._path, self._spark)
        log.info("application %s: submitted as %s, log %s", self.name, submitted.id, submitted.log)
        return f"submitted: {action.because}{ended}"

    def _decide(self, wanted: "PoolSpec", found: "Application | None", *, insist: bool = False) -> "Action":
        from strait.config.app_spec import PoolSpec
        from strait.launch.applications import Leave, Replace, Update, decide

        runs_with = None if found is None else self._launch.spec(found)
        current = runs_with if isinstance(runs_with, PoolSpec) else None
        history = () if insist else self._launch.history(self.name)
        action = decide(wanted, found, current, history, unix_ms())
        restarts = isinstance(action, Replace) or (isinstance(action, Update) and not self._launch.passes_on_specs)
        if restarts and self._first is not None and not self._first.runs_as(wanted):  # this one may be copying
            return Leave("it is replaced once the first application runs with the same links and settings")
        return action

    def runs_as(self, standby: "PoolSpec") -> bool:
        """Return whether the application runs with the links and settings of this spec of its standby, so that nothing
        restarts it now."""
        from strait.config.app_spec import PoolSpec
        from strait.launch.applications import Leave, decide
        from strait.launch.base import State

        found = self._launch.state(self.name)
        if found is None or found.state is not State.RUNNING:
            return False
        has = self._launch.spec(found)
        if not isinstance(has, PoolSpec):
            return False
        return isinstance(decide(standby, found, has.as_standby(standby.checkpoint_dir), (), unix_ms()), Leave)

    def _ended(self, found: "Application | None") -> str:
        return f": {self._launch.cause(found)}" if found is not None and not found.state.alive else ""

    @property
    def _why_unwanted(self) -> str:
        return "no link runs in it" if self._first is None else "its pool has no standby or no link"

    def _keep(self, wanted: "PoolSpec", found: "Application | None") -> None:
        """Store the spec. Of a standby that was never wanted, nothing is stored; nor while the application cannot be seen,
        and so the other links that it runs."""
        from strait.launch.base import State

        if found is not None and found.state is State.UNKNOWN:
            return
        if wanted.members or self._path.exists() or self._first is None:
            wanted.write(self._path)

    def _wanted(self, link: str, own: "list[AppSpec]", loads: "Mapping[Seat, float]") -> "PoolSpec":
        """Return the spec with the link's part replaced. A standby hosts the slots of the first application, or none."""
        if self._first is not None:
            first = self._first._wanted(link, own, loads)  # noqa: SLF001  of the same class
            _, checkpoints = self._spark.directories("", str(self._checkpoints.resolve()))
            wanted = first.as_standby(checkpoints)
            return wanted if self._pool.standby else wanted.model_copy(update={"members": (), "placement": ()})
        found = self._launch.state(self.name)
        before, runs = self._before(found), found is not None and found.state.alive
        return self._spec([*self._others(link, before), *own], before, loads, runs=runs)

    def _before(self, found: "Application | None") -> "PoolSpec | None":
        """Return the spec that the application has, with the loads noted on this host; if it does not run, the spec made
        last.

        On YARN and in Kubernetes the links' runs may be on different hosts, so the file of this host can lack links that
        the application runs, or can be older than the application.
        """
        from strait.config.app_spec import PoolSpec
        from strait.launch.base import State

        kept = _read(self._path)
        if found is None or not (found.state.alive or (found.state is State.DEAD and self._is_older(found))):
            return kept
        has = self._launch.spec(found)
        if not isinstance(has, PoolSpec):
            return kept
        loads = dict(has.loads) | ({} if kept is None else dict(kept.loads))
        return _of_this_version(has.model_copy(update={"loads": loads}))

    def _is_older(self, found: "Application") -> bool:
        """Return whether the file was written before the application was submitted, or never."""
        try:
            return self._path.stat().st_mtime * 1000 < found.submitted_at_ms
        except FileNotFoundError:
            return True

    def _others(self, link: str, before: "PoolSpec | None") -> "list[AppSpec]":
        """Return the parts of the other links, if these still name the pool."""
        from strait.config.outline import pools_of
        from strait_airflow.settings import links_file

        pools = pools_of(links_file())
        members = () if before is None else before.members
        return [one for one in members if one.link != link and pools.get(one.link) == self._pool_name]

    def _spec(
        self, members: "list[AppSpec]", before: "PoolSpec | None", loads: "Mapping[Seat, float]", *, runs: bool
    ) -> "PoolSpec":
        from strait.planning.assignment.pools import pool_spec

        _, checkpoints = self._spark.directories("", str(self._checkpoints.resolve()))
        return pool_spec(
            self._pool_name, self._pool, members, before, checkpoints, measured=loads, runs=runs, balance=True
        )


def _loads(link: str, reports: "Reports") -> "Mapping[Seat, float]":
    from strait.config.app_spec import Seat

    newest = {place: max(some, key=lambda one: one.at_ms) for place, some in reports.items() if some}
    return {Seat(link, *place): report.bytes_per_second for place, report in newest.items()}


def _read(path: Path) -> "PoolSpec | None":
    """Return the spec that was made last; None if there is none that this version can use."""
    from strait.config.app_spec import PoolSpec
    from strait.errors import ConfigError

    if not path.exists():
        return None
    try:
        spec = PoolSpec.read(path)
    except ConfigError as error:
        log.warning("the links of the pool join it again one by one: %s", error)
        return None
    return _of_this_version(spec)


def _of_this_version(spec: "PoolSpec") -> "PoolSpec":
    """Return the spec as this version writes it. After an upgrade all links go over to it together, with the first run of
    one of them."""
    from strait import __version__

    mine = {"strait": __version__}
    return spec.model_copy(update=mine | {"members": tuple(one.model_copy(update=mine) for one in spec.members)})
