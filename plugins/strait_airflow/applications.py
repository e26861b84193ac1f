"""The applications of links, as this Airflow submits them: `strait.control.supervision` in Strait's directory."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strait.config.app_spec import AppSpec
    from strait.config.links import LinksFile, Spark
    from strait.control.supervision import Supervisor
    from strait.launch.base import Launcher
    from strait.state.schema import Plan
    from strait.state.signing import Proof

log = logging.getLogger(__name__)


def supervisor(file: "LinksFile", link: str, proofs: "Mapping[str, Proof] | None" = None) -> "Supervisor":
    """Return the supervisor of a link's applications. ``proofs``: of its plans, needed to act."""
    from strait.config.home import home
    from strait.control.supervision import Supervisor
    from strait.state.link_handle import ConfiguredLink

    return Supervisor(ConfiguredLink.of(file, link), home(), proofs)


def launcher(spark: "Spark") -> "Launcher":
    """Return the launcher for these settings; it knows every application that this Airflow has submitted there."""
    from strait.launch.launchers import launcher_for

    return launcher_for(spark, launch_directory())


def launch_directory() -> Path:
    """Return the directory in which launchers keep their submissions."""
    return folder("applications")


def starting(file: "LinksFile", link: str, group: str) -> bool:
    """Return whether the application of a task group is submitted and does not copy yet."""
    from strait.config.naming import application_of
    from strait.launch.base import State

    found = launcher(file.links[link].spark).state(application_of(link, file.links[link].pool, group))
    return found is not None and found.state is State.SUBMITTED


def end_separate(file: "LinksFile", link: str, plans: "Iterable[Plan]") -> list[str]:
    """Stop the applications that task groups of a link had before it joined its pool. Return a line for each."""
    from strait.config.naming import application_name
    from strait.launch.launchers import end_elsewhere

    spark, done = file.links[link].spark, []
    supervise = supervisor(file, link)
    for name in (application_name(link, plan.group, standby=standby) for plan in plans for standby in (False, True)):
        found = supervise.launcher.state(name)
        if found is not None and found.state.alive:
            supervise.end(name, "its link runs in a pool")
            done.append(f"{name}: ended, its link runs in pool {file.links[link].pool}")
        elif elsewhere := end_elsewhere(name, spark, launch_directory()):
            log.warning("application %s", elsewhere)
            done.append(elsewhere)
    return done


def spec_of(file: "LinksFile", link: str, plan: "Plan", *, standby: bool) -> "AppSpec":
    """Return the spec for the current plan, which may differ from the links file until the next plan is published."""
    return supervisor(file, link).spec(plan, standby)


def folder(name: str) -> Path:
    """Return a directory of Strait on this host."""
    from strait.config.home import home

    return home() / name
