"""What the tasks of a link's DAG do. Each looks for itself: nothing but a line of text goes from task to task.

What is returned is that line; Airflow shows it as the task's XCom.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from strait_airflow.noticing import ACTED, WORK, Acted
from strait_airflow.page_address import page_address
from strait_airflow.watching import look_at

if TYPE_CHECKING:
    from strait.config.links import LinksFile
    from strait.control.plane import Control
    from strait.errors import StraitError
    from strait.launch.base import Launcher
    from strait.planning.history.overrun import Reports
    from strait.state.schema import Plan

log = logging.getLogger(__name__)

CLUSTERS = "clusters"
"""Key of the store: cluster -> Kafka's ID."""

METRICS_SECONDS = 3.0
"""How far apart the two looks are from which rates are taken. Slots report once a second."""


class Store(Protocol):
    """The state of the link's asset, which the watch reads too."""

    def get(self, key: str, default: Any = None) -> Any: ...

    def set(self, key: str, value: Any) -> None: ...


def act(
    link: str, notices: Sequence[Mapping[str, Any]], store: Store, *, restart: str = "", by: str = "Airflow"
) -> str:
    """Do what the watch woke the DAG for; all there is to do if nothing did.

    Args:
        notices: what `LinkTrigger` fired, the oldest first. Without any it is the hour's run, or one by hand.
        store: where it is written down what was acted upon.
        restart: a task group whose application ``by`` wants to be started anew; "": none.

    Raises:
        AirflowFailException: the first thing that failed; what does not depend on it was done.
    """
    from strait.errors import ConfigError
    from strait_airflow.errors import one_line, raise_for

    log.info("on the page: %s", page_address(link))
    for reason in (reason for notice in notices for reason in notice["reasons"]):
        log.info("because: %s", reason)
    seen = dict(Acted.of(store.get(ACTED)).seen)
    for found in [notice["seen"] for notice in notices] or [look_at(link)]:
        seen |= found
    # What an earlier one has told may be over, and what it has led to may be done.
    silent = dict.fromkeys(notices[-1]["silent"], int(notices[-1]["at_ms"])) if notices else {}
    steps: list[Callable[[], str]] = [lambda: applications(link, silent, restart=restart, by=by)]

    def planned() -> str:
        line, done = apply(link, store)
        if done:
            seen.pop(WORK, None)  # the same work is news when it is there again
        return line

    if not notices or any(notice["plan"] for notice in notices):
        # A plan that cannot be made now is no reason to stop looking after the last one.
        steps.insert(0, planned)
    lines, failed = _all_of(steps)
    # Wrong settings are tried again when they are other ones; anything else may be mended from outside.
    kind = "" if not failed else "final" if isinstance(failed[0], ConfigError) else "retriable"
    store.set(ACTED, Acted(seen, kind).data())
    if failed:
        raise_for(one_line(str(failed[0])), retriable=False)  # the watch tries again, and meanwhile runs what is new
    return "; ".join(lines)


def _all_of(steps: Sequence[Callable[[], Any]]) -> "tuple[list[Any], list[StraitError]]":
    from strait.errors import StraitError

    lines: list[Any] = []
    failed: list[StraitError] = []
    for step in steps:
        try:
            lines.append(step())
        except StraitError as error:
            if failed:
                log.error("%s", error)  # noqa: TRY400  the first one is raised, and its text says it all
            failed.append(error)
    return lines, failed


def apply(link: str, store: Store | None = None) -> tuple[str, bool]:
    """Plan, create missing topics, publish the plan. What needs approval is left to the approval DAG.

    Args:
        store: remembers which clusters the link has, so that no other one at their addresses is taken for them.

    Returns: a line that sums it up, and whether all of it was done.
    """
    from strait.errors import ApprovalMissing
    from strait.planning.review.text import proposal_text

    known = {} if store is None else store.get(CLUSTERS, {})
    with live_control(link, known) as control:
        proposal = control.propose()
        _logged(proposal_text(proposal))
        try:
            outcome = control.apply(proposal)
        except ApprovalMissing as waits:
            return _logged(str(waits)), False
        if store is not None:
            store.set(CLUSTERS, control.known_clusters)
        return _logged(outcome.as_text()), not outcome.refused


def applications(
    link: str, silent: Mapping[str, int] = MappingProxyType({}), *, restart: str = "", by: str = "Airflow"
) -> str:
    """Make the applications those of the plan in force, whether or not a newer plan could be made.

    Args:
        silent: task groups whose applications run and did not report, and when that was seen (ms since 1970): those that
            still do not are started anew.
        restart: a task group whose application is started anew whatever it does, also if it ended too often; "": none.

    Raises:
        ConfigError: the plan has no such task group.
    """
    from strait.config.naming import application_name
    from strait_airflow.applications import end, end_orphans, ensure_all, launcher
    from strait_airflow.settings import clusters_of

    file = clusters_of(link)
    plans, reports = _plans(file, link)
    if not plans:
        return _logged("no plan was ever published: there is nothing to run")
    spark = file.links[link].spark
    launch = launcher(spark)
    steps = [
        partial(end, launch, name, "its slots do not report")
        for group in sorted(plans.keys() & silent.keys())
        if _still_silent(launch, name := application_name(link, group), plans[group], reports, silent[group])
    ]
    if restart:
        steps.append(partial(_end_to_restart, launch, link, restart, plans, by))
    _, failed = _all_of(steps)  # one that cannot be ended now is no reason to leave the others alone
    done = ensure_all(file, link, [found for _, found in sorted(plans.items())], insist=restart)
    done += end_orphans(spark)
    if failed:
        raise failed[0]
    return "; ".join(done)


def metrics(link: str) -> str:
    """Log a line of figures for each topic, and send them as gauges."""
    from strait.state.reader import StateReader
    from strait_airflow import gauges
    from strait_airflow.errors import airflow_errors
    from strait_airflow.settings import clusters_of

    with airflow_errors():
        file = clusters_of(link)
        destination = file.links[link].destination
        with StateReader(file.clusters[destination], destination, link, follow=("plan", "map", "reports")) as state:
            state.catch_up()
            earlier, until = dict(state.reports), time.monotonic() + METRICS_SECONDS
            while time.monotonic() < until:
                state.poll(0.5)
        lines = gauges.measure(file, link, state, earlier)
        return _logged("\n".join(lines) or "no plan was ever published: there is nothing to measure")


def live_control(link: str, known: Mapping[str, str] = MappingProxyType({})) -> "Control":
    """The link as the links file, the Connections and its Variable have it.

    Args:
        known: cluster -> Kafka's ID of it.
    """
    from strait.config.links import with_known
    from strait.control.plane import Control
    from strait_airflow.settings import clusters_of, with_live_topics

    file = with_known(with_live_topics(clusters_of(link), link), known)
    return Control(file, link, lambda text: log.info("%s", text))


def _plans(file: "LinksFile", link: str) -> "tuple[dict[str, Plan], Reports]":
    """Group -> the plan in force; and the newest reports."""
    from strait.state.reader import StateReader

    destination = file.links[link].destination
    with StateReader(file.clusters[destination], destination, link, follow=("plan", "reports")) as state:
        state.catch_up()
        return dict(state.plans), dict(state.reports)


def _end_to_restart(launch: "Launcher", link: str, group: str, plans: "Mapping[str, Plan]", by: str) -> None:
    from strait.config.naming import application_name
    from strait.config.validation import did_you_mean
    from strait.errors import ConfigError
    from strait_airflow.applications import end

    if group not in plans:
        raise ConfigError(f"link {link}", [f"its plan has no task group {group!r}{did_you_mean(group, plans)}"])
    end(launch, application_name(link, group), f"{by} wants it to start anew")


def _still_silent(launch: "Launcher", name: str, plan: "Plan", reports: "Reports", at_ms: int) -> bool:
    """Whether an application that did not report at that time has neither been replaced nor has reported since."""
    found = launch.state(name)
    if found is None or found.submitted_at_ms > at_ms:
        return False
    heard = [max((part.at_ms for part in reports.get((plan.group, slot), ())), default=0) for slot in range(plan.slots)]
    return min(heard) <= at_ms


def _logged(text: str) -> str:
    """Log each line of it; return the one that sums up a plan, else the first."""
    lines = text.splitlines()
    for line in lines:
        log.info("%s", line)
    return next((line for line in lines if line.startswith("plan ")), lines[0])
