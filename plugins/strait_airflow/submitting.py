"""Determine which applications of a link need an action, and do that for one of them."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from strait_airflow.steps import Run, Steps, begin, last, utc_text

if TYPE_CHECKING:
    from strait.config.links import LinksFile
    from strait.control.supervision import Due, Supervisor
    from strait.planning.history.overrun import Reports
    from strait.state.schema import Plan
    from strait.state.signing import Proof

log = logging.getLogger(__name__)


def due_applications(
    link: str, steps: Steps, silent: Mapping[str, int], restart: str, run: Run
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the applications that need an action, and those that are held. Stop those that belong to no link."""
    from strait.control.supervision import still_silent
    from strait_airflow import pools
    from strait_airflow.applications import supervisor
    from strait_airflow.settings import link_names

    file = _with_selection(link)
    plans, proofs, reports = _plans(file, link)
    if not plans:
        log.info("no plan was ever published: there is nothing to run")
        return [], {}
    if file.links[link].pool is not None:
        return _in_pool(file, link, steps, plans, reports, silent, restart, run)
    supervise = supervisor(file, link, proofs)
    wanted: dict[str, dict[str, Any]] = {}
    held: dict[str, int] = {}
    for plan in (plan for _, plan in sorted(plans.items())):
        for due in steps.run(partial(supervise.due, [plan])) or ():
            wanted[due.name] = _asked(due, run)
        held |= steps.run(partial(supervise.held, [plan])) or {}
    for group in sorted(plans.keys() & silent.keys()):
        due = _due(supervise, link, group, "restart: its slots do not report")
        if still_silent(supervise.launcher.state(due.name), plans[group], reports, silent[group]):
            wanted[due.name] = _asked(due, run, restart="its slots do not report")
    if restart and (one := steps.run(lambda: _restart(supervise, link, restart, plans, run))) is not None:
        wanted[one["name"]] = one
    steps.run(lambda: pools.tidy(file, link))
    steps.run(lambda: supervise.end_orphans(link_names(), pools.in_use()))
    _tell(wanted.values(), held)
    return list(wanted.values()), held


def _in_pool(
    file: "LinksFile",
    link: str,
    steps: Steps,
    plans: "Mapping[str, Plan]",
    reports: "Reports",
    silent: Mapping[str, int],
    restart: str,
    run: Run,
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the application of the link's pool if it needs an action. Links share it: the first run of one of them acts."""
    from strait.config.naming import pool_application_name
    from strait.control.supervision import Due
    from strait_airflow import pools
    from strait_airflow.applications import end_separate, supervisor
    from strait_airflow.settings import link_names

    supervise, current = supervisor(file, link), [plan for _, plan in sorted(plans.items())]
    name = pool_application_name(file.links[link].pool or "")
    found = supervise.launcher.state(name)
    due, held = steps.run(lambda: pools.due(file, link, current, reports)) or ([], {})
    wanted = [_asked(one, run) for one in due]
    because, silent_at_ms = "", 0
    if restart and (found is None or found.submitted_at_ms <= run.after_ms):
        because = f"{run.by} wants it to restart"
    elif silent and steps.run(lambda: pools.hangs(file, link, max(silent.values()), partial(_reports, link, reports))):
        because, silent_at_ms = "none of its slots reports", max(silent.values())
    if because:
        others = [one for one in wanted if one["name"] != name]
        one = _asked(Due("", False, name, f"restart: {because}"), run, restart=because)
        wanted = [one | {"silent_at_ms": silent_at_ms}, *others]
    steps.run(lambda: end_separate(file, link, current))
    steps.run(lambda: pools.tidy(file, link))
    steps.run(lambda: supervise.end_orphans(link_names(), pools.in_use()))
    _tell(wanted, held)
    return wanted, held


def _reports(link: str, reports: "Reports", other: str) -> "Reports":
    """Return the newest reports of another link of the pool, or those that were read of this one."""
    return reports if other == link else _plans(_with_selection(other), other)[2]


def _tell(wanted: "Iterable[Mapping[str, Any]]", held: Mapping[str, int]) -> None:
    for name, until_ms in held.items():
        log.warning("application %s: not submitted before %s: it exited too often", name, utc_text(until_ms))
    for one in wanted:
        log.info("application %s: %s", one["name"], one["because"])


def _due(supervise: "Supervisor", link: str, group: str, because: str) -> "Due":
    from strait.config.naming import application_name
    from strait.control.supervision import Due

    return Due(group, False, application_name(link, group), because)


def _asked(due: "Due", run: Run, *, restart: str = "") -> dict[str, Any]:
    return {**due._asdict(), "restart": restart, "cleared": run.cleared}


def _restart(
    supervise: "Supervisor", link: str, group: str, plans: "Mapping[str, Plan]", run: Run
) -> dict[str, Any] | None:
    """Return the restart that a user wants, unless it was done: the run may have been cleared, weeks later."""
    from strait.config.validation import did_you_mean
    from strait.errors import ConfigError

    if group not in plans:
        raise ConfigError(f"link {link}", [f"its plan has no task group {group!r}{did_you_mean(group, plans)}"])
    due = _due(supervise, link, group, f"restart: {run.by} wants it")
    found = supervise.launcher.state(due.name)
    if found is not None and found.submitted_at_ms > run.after_ms:
        log.info("application %s: restarted already, at %s", due.name, utc_text(found.submitted_at_ms))
        return None
    return _asked(due, run, restart=f"{run.by} wants it to restart")


def submit(link: str, asked: Mapping[str, Any], *, restart: str = "") -> dict[str, Any]:
    """Submit, replace, stop or restart one application, as far as that is still needed.

    Args:
        asked: of `Monitored.due`.
        restart: why it is ended first, in any state, also if it exited too often; "": it is not.

    Returns: its task group ("" if it is a pool's), whether it is a standby, its name, the time of its newest submission
        (`since_ms`, 0 if there is none), and `line`, the action taken.

    Raises:
        StraitError
    """
    from strait_airflow import pools
    from strait_airflow.applications import supervisor

    begin(link)
    group, standby, name = asked["group"], bool(asked["standby"]), asked["name"]
    file = _with_selection(link)
    plans, proofs, reports = _plans(file, link)
    supervise = supervisor(file, link, proofs)
    if not _runs(file, link, asked, plans):
        line = f"{name}: its task group has no plan any more"
    else:
        silent_at_ms = int(asked.get("silent_at_ms", 0))
        if restart and silent_at_ms and restart == asked["restart"]:
            restart = restart if pools.end_hanging(file, link, restart, silent_at_ms) else ""
        elif restart:
            supervise.end(name, restart)
        if group:
            done = supervise.ensure(plans[group], standby=standby, insist=bool(restart))
        else:
            done = pools.ensure(file, link, plans.values(), reports, standby=standby, insist=bool(restart))
        line = "; ".join(done) or f"{name}: unwanted"
    found = supervise.launcher.state(name)
    since_ms = found.submitted_at_ms if found is not None else 0
    return {"group": group, "standby": standby, "name": name, "since_ms": since_ms, "line": last(line)}


def _runs(file: "LinksFile", link: str, asked: Mapping[str, Any], plans: "Mapping[str, Plan]") -> bool:
    """Return whether the application still is that of a planned task group, or of the link's pool."""
    from strait.config.naming import application_of

    group, pool = asked["group"], file.links[link].pool
    if not group:
        return pool is not None and application_of(link, pool, group, standby=asked["standby"]) == asked["name"]
    return pool is None and group in plans


def _with_selection(link: str) -> "LinksFile":
    """Return the link with the topics of its Variable, as specs contain the selection. An invalid Variable stops no
    application."""
    from strait.errors import ConfigError
    from strait_airflow.settings import clusters_of, with_live_topics

    file = clusters_of(link)
    with suppress(ConfigError):
        return with_live_topics(file, link)
    return file


def _plans(file: "LinksFile", link: str) -> "tuple[dict[str, Plan], dict[str, Proof], Reports]":
    """Return task group -> its current plan, whether that is proven, and the newest reports."""
    from strait.state.link_handle import ConfiguredLink

    with ConfiguredLink.of(file, link).with_key().state("plan", "reports") as state:
        state.catch_up()
        return dict(state.plans), dict(state.proofs), dict(state.reports)
