"""Makes the applications of pools match the current plans of their links.

The run of each link changes the link's own part of the pool's spec, and whichever comes first submits the application:
they take turns by a lock, so there is one submission.
"""

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strait.config.app_spec import AppSpec, PoolSpec, Seat
    from strait.config.links import LinksFile, Pool, Spark
    from strait.planning.history.load import Reports
    from strait.state.schema import Plan

log = logging.getLogger(__name__)


def ensure(
    file: "LinksFile", link: str, plans: "Iterable[Plan]", reports: "Reports", *, insist: bool = False
) -> list[str]:
    """Have the pool's application run the task groups of this link by its plans. Return a line with the action.

    Args:
        insist: submit it regardless of how often it has exited.

    Raises:
        LaunchError: it could not be stopped or submitted, or it exits repeatedly and an operator must investigate.
    """
    from strait_airflow.applications import spec_of

    pool, spark = file.links[link].pool, file.links[link].spark
    assert pool is not None
    own = [spec_of(file, link, plan, standby=False) for plan in plans if not plan.stopped]
    return _PoolApplication(pool, file.pools[pool], spark).follow(link, own, _loads(link, reports), insist=insist)


def tidy(file: "LinksFile", link: str) -> list[str]:
    """Have every pool run no link that does not name it any more. Return a line for each such pool.

    Args:
        link: a link of the file, whose cluster of Spark is used if a pool was deleted with its last link.
    """
    from strait.config.links import pools_of
    from strait_airflow.applications import folder
    from strait_airflow.settings import links_file

    done: list[str] = []
    named = pools_of(links_file())
    for path in sorted(folder("pools").glob("*.json")):
        spec = _read(path)
        if spec is not None and any(named.get(one) != path.stem for one in spec.links):
            pool = file.pools.get(path.stem)
            spark = file.links[link].spark if pool is None else pool.spark
            done += _PoolApplication(path.stem, pool, spark).follow("", [], {})
    return done


class _PoolApplication:
    """The application of one pool. ``pool``: its settings; None if it is not configured any more."""

    def __init__(self, name: str, pool: "Pool | None", spark: "Spark") -> None:
        from strait.config.links import Pool
        from strait.config.naming import pool_application_name
        from strait_airflow.applications import folder, launcher

        self._pool = Pool() if pool is None else pool
        self._pool_name = name
        self._spark = spark
        self._launch = launcher(spark)
        self._directory = folder("pools")
        self._checkpoints = folder("checkpoints") / pool_application_name(name)
        self._path = self._directory / f"{name}.json"
        self.name = pool_application_name(name)

    def follow(
        self, link: str, own: "list[AppSpec]", loads: "Mapping[Seat, float]", *, insist: bool = False
    ) -> list[str]:
        """Replace the link's part of the pool's spec, and make the application match it. ``link`` "": of no link."""
        from strait.launch import submission

        with submission.locked(self._directory, self._pool_name):
            found = self._launch.state(self.name)
            runs = found is not None and found.state.alive
            runs_with = self._launch.spec(found) if found is not None else None
            before = _read(self._path)
            wanted = self._spec([*self._others(link, before), *own], before, loads, runs=runs)
            wanted.write(self._path)
            if not wanted.members:
                if runs:
                    log.warning("application %s: stopping it: no link runs in it", self.name)
                    self._launch.stop(self.name)
                return [f"{self.name}: no link runs in it"]
            return [f"{self.name}: {self._act(wanted, runs_with, insist=insist)}"]

    def _act(self, wanted: "PoolSpec", runs_with: object, *, insist: bool) -> str:
        from strait.config.app_spec import PoolSpec
        from strait.errors import LaunchError
        from strait.launch.applications import GiveUp, Leave, Replace, Update, decide
        from strait.launch.launchers import end_elsewhere
        from strait.text import utc
        from strait_airflow.applications import launch_directory

        found = self._launch.state(self.name)
        history = () if insist else self._launch.history(self.name)
        current = runs_with if isinstance(runs_with, PoolSpec) else None
        action = decide(wanted, found, current, history, time.time_ns() // 1_000_000)
        ended = f": {self._launch.cause(found)}" if found is not None and not found.state.alive else ""
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

    def _others(self, link: str, before: "PoolSpec | None") -> "list[AppSpec]":
        """Return the parts of the other links, if these still name the pool."""
        from strait.config.links import pools_of
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
    from strait import __version__
    from strait.config.app_spec import PoolSpec
    from strait.errors import ConfigError

    if not path.exists():
        return None
    try:
        spec = PoolSpec.read(path)
    except ConfigError as error:
        log.warning("the links of the pool join it again one by one: %s", error)
        return None
    # After an upgrade all links go over to this version together, with the first run of one of them.
    mine = {"strait": __version__}
    return spec.model_copy(update=mine | {"members": tuple(one.model_copy(update=mine) for one in spec.members)})
