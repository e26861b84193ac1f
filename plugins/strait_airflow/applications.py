"""Makes applications match the current plan. `strait.launch.applications` chooses the actions; this module executes
them."""

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from strait.config.app_spec import AppSpec
    from strait.config.links import LinksFile, Spark
    from strait.launch.base import Application, Launcher
    from strait.state.schema import Plan
    from strait.state.signing import Proof

log = logging.getLogger(__name__)


def launcher(spark: "Spark") -> "Launcher":
    """Return the launcher for these settings; it knows every application that this Airflow has submitted there."""
    from strait.launch.launchers import launcher_for

    return launcher_for(spark, launch_directory())


def launch_directory() -> Path:
    """Return the directory in which launchers keep their submissions."""
    return folder("applications")


def ensure_all(
    file: "LinksFile", link: str, plans: "Iterable[Plan]", proofs: "Mapping[str, Proof]", *, insist: str = ""
) -> list[str]:
    """Make the applications of each task group match its plan; if one fails, the others are unaffected. Return the
    lines of `ensure`.

    Args:
        proofs: task group -> whether its plan is proven by the key of this host or of the links file.
        insist: a task group whose application is submitted regardless of how often it has exited; "": none.

    Raises:
        StraitError: the first failure, after all applications were handled.
    """
    from strait.errors import StraitError

    done, failed = [], []
    for plan, standby in ((plan, standby) for plan in plans for standby in (False, True)):
        try:
            done += ensure(file, link, plan, proofs, standby=standby, insist=plan.group == insist)
        except StraitError as error:
            log.error("group %s: %s", plan.group, error)  # noqa: TRY400  the message is complete
            failed.append(error)
    if failed:
        raise failed[0]
    return done


def ensure(
    file: "LinksFile",
    link: str,
    plan: "Plan",
    proofs: "Mapping[str, Proof]",
    *,
    standby: bool = False,
    insist: bool = False,
) -> list[str]:
    """Leave, submit, replace or stop an application of one task group. Return a line with the action taken; none for a
    standby that is neither configured nor running.

    Args:
        insist: submit it regardless of how often it has exited.

    Raises:
        LaunchError: it could not be stopped or submitted, or it exits repeatedly and an operator must investigate.
    """
    from strait.config.naming import application_name
    from strait.errors import LaunchError
    from strait.launch.applications import GiveUp, Leave, Replace, decide
    from strait.launch.launchers import end_elsewhere
    from strait.state.admission import with_selection_of
    from strait.text import utc

    spark = file.links[link].spark
    launch, name = launcher(spark), application_name(link, plan.group, standby=standby)
    found = launch.state(name)
    if standby and not has_standby(file, link, plan.group):
        if found is None or not found.state.alive:
            return []
        end(launch, name, "its task group has no standby any more")
        return [f"{name}: ended, its task group has no standby"]
    wanted = None if plan.stopped else spec_of(file, link, plan, standby=standby)
    runs_with = None if found is None else launch.spec(found)
    if wanted is not None and found is not None and found.state.alive:
        wanted = with_selection_of(wanted, runs_with, plan, proofs)
    history = () if insist else launch.history(name)
    action = decide(wanted, found, runs_with, history, time.time_ns() // 1_000_000)
    ended = f": {launch.cause(found)}" if found is not None and not found.state.alive else ""
    if isinstance(action, Leave):
        log.info("application %s: unchanged: %s%s", name, action.because, ended)
        return [f"{name}: {action.because}"]
    if isinstance(action, GiveUp):
        raise LaunchError(
            f"application {name}: not submitted before {utc(action.until_ms)} UTC: {action.because}; the last time{ended}",
            hint=f"its log is {found.log if found else 'lost'}",
        )
    log.warning("application %s: submitting: %s%s", name, action.because, ended)
    if isinstance(action, Replace):
        launch.stop(name)
    elif elsewhere := end_elsewhere(name, spark, launch_directory()):
        log.warning("application %s", elsewhere)
    assert wanted is not None
    spec_path = folder("specs") / f"{name}.json"
    wanted.write(spec_path)
    submitted = launch.submit(name, spec_path, spark)
    log.info("application %s: submitted as %s, log %s", name, submitted.id, submitted.log)
    return [f"{name}: submitted: {action.because}{ended}"]


def has_standby(file: "LinksFile", link: str, group: str) -> bool:
    """Return whether the task group is configured to have a standby application."""
    return group in file.links[link].groups and file.links[link].groups[group].standby


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
    launch = launcher(spark)
    for name in (application_name(link, plan.group, standby=standby) for plan in plans for standby in (False, True)):
        found = launch.state(name)
        if found is not None and found.state.alive:
            end(launch, name, "its link runs in a pool")
            done.append(f"{name}: ended, its link runs in pool {file.links[link].pool}")
        elif elsewhere := end_elsewhere(name, spark, launch_directory()):
            log.warning("application %s", elsewhere)
            done.append(elsewhere)
    return done


def end(launch: "Launcher", name: str, because: str) -> None:
    """Stop an application in any state. Raises LaunchError."""
    log.warning("application %s: stopping it: %s", name, because)
    launch.stop(name)


def end_orphans(spark: "Spark") -> list[str]:
    """Stop applications that run there and belong to no link of the links file. Return a line for each."""
    from strait.launch.applications import orphans
    from strait_airflow.settings import link_names

    launch = launcher(spark)
    found, links = launch.list(), link_names()
    known = {application.name for application in found if _belongs_to(launch, application, links)}
    done = []
    for application in orphans(found, known):
        end(launch, application.name, "its link is not in the links file")
        done.append(f"{application.name}: ended, no link has it")
    return done


def spec_of(file: "LinksFile", link: str, plan: "Plan", *, standby: bool) -> "AppSpec":
    """Return the spec for the current plan, which may differ from the links file until the next plan is published."""
    from strait.config.naming import application_name
    from strait.control.plane import Control

    checkpoint_dir = folder("checkpoints") / application_name(link, plan.group, standby=standby)
    control = Control(file, link)
    return control.spec(plan, ledger_dir=folder("ledger"), checkpoint_dir=checkpoint_dir, standby=standby)


def _belongs_to(launch: "Launcher", application: "Application", links: "Collection[str]") -> bool:
    """Return whether the application belongs to one of these links; by its name if its spec cannot be read."""
    from strait.config.naming import application_name

    spec = launch.spec(application)
    if spec is not None:
        return any(link in links for link in spec.links)
    return any(application.name.startswith(application_name(link, "")) for link in links)


def folder(name: str) -> Path:
    """Return a directory of Strait on this host."""
    from strait.config.home import home

    return home() / name
