"""Tasks of a link's DAG. Each reads the state itself: only a line of text is passed from task to task.

A task returns that line; Airflow shows it as the task's XCom.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
    from strait.state.signing import Proof

log = logging.getLogger(__name__)

CLUSTERS = "clusters"
"""Key of the store: cluster -> its Kafka cluster ID."""

METRICS_SECONDS = 3.0
"""Time between the two readings from which rates are computed. Slots report once per second."""


class Store(Protocol):
    """The state of the link's asset, which the watch also reads."""

    def get(self, key: str, default: Any = None) -> Any: ...

    def set(self, key: str, value: Any) -> None: ...


def act(
    link: str, notices: Sequence[Mapping[str, Any]], store: Store, *, restart: str = "", by: str = "Airflow"
) -> str:
    """Do the work that the watch woke the DAG for; without notices, all pending work.

    Args:
        notices: the payloads that `LinkTrigger` fired, oldest first. Empty in an hourly run and one triggered manually.
        store: records the facts that were acted upon.
        restart: a task group whose application ``by`` wants to restart; "": none.

    Raises:
        AirflowFailException: the first failure; steps that do not depend on it were done.
    """
    from strait.errors import ConfigError
    from strait_airflow.errors import one_line, raise_for

    log.info("on the page: %s", page_address(link))
    for reason in (reason for notice in notices for reason in notice["reasons"]):
        log.info("because: %s", reason)
    seen = dict(Acted.of(store.get(ACTED)).seen)
    for found in [notice["seen"] for notice in notices] or [look_at(link)]:
        seen |= found
    # Only the newest notice: the silence in an earlier one may be over, or already handled.
    silent = dict.fromkeys(notices[-1]["silent"], int(notices[-1]["at_ms"])) if notices else {}
    steps: list[Callable[[], str]] = [lambda: applications(link, silent, restart=restart, by=by)]

    def planned() -> str:
        line, done = apply(link, store)
        if done:
            seen.pop(WORK, None)  # the same work is new if it appears again
        return line

    if not notices or any(notice["plan"] for notice in notices):
        # If planning fails, the applications are still made to match the last plan.
        steps.insert(0, planned)
    lines, failed = _all_of(steps)
    # Invalid settings are tried again once they change; any other failure may be fixed from outside.
    kind = "" if not failed else "final" if isinstance(failed[0], ConfigError) else "retriable"
    store.set(ACTED, Acted(seen, kind).data())
    if failed:
        raise_for(one_line(str(failed[0])), retriable=False)  # the watch retries, and starts runs for new findings
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
                log.error("%s", error)  # noqa: TRY400  the first is raised; messages are complete
            failed.append(error)
    return lines, failed


def apply(link: str, store: Store | None = None) -> tuple[str, bool]:
    """Plan, create missing topics, publish the plan. Changes that need approval are left to the approval DAG.

    Args:
        store: keeps the IDs of the link's clusters, so that another cluster at the same address is not taken for it.

    Returns: a summary line, and whether everything was done.
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
        line = _logged(outcome.as_text())
        if outcome.pending:
            line += f"; {len(outcome.pending)} changes wait for approval"
        return line, not (outcome.refused or outcome.pending)


def applications(
    link: str, silent: Mapping[str, int] = MappingProxyType({}), *, restart: str = "", by: str = "Airflow"
) -> str:
    """Make the applications match the current plan, regardless of whether a newer plan could be made.

    Args:
        silent: task groups whose applications run and did not report -> when that was observed (ms since 1970); those
            that still do not report are restarted.
        restart: a task group whose application is restarted in any state, also if it exited too often; "": none.

    Raises:
        ConfigError: the plan has no such task group.
    """
    from strait.config.naming import application_name
    from strait.errors import ConfigError
    from strait_airflow import pools
    from strait_airflow.applications import end, end_orphans, end_separate, ensure_all, launcher
    from strait_airflow.settings import clusters_of, with_live_topics

    file = clusters_of(link)
    with suppress(ConfigError):  # an invalid Variable stops no application
        file = with_live_topics(file, link)  # the spec contains the selection
    plans, proofs, reports = _plans(file, link)
    if not plans:
        return _logged("no plan was ever published: there is nothing to run")
    spark = file.links[link].spark
    launch = launcher(spark)
    steps = [
        partial(end, launch, name, "its slots do not report")
        for group in sorted(plans.keys() & silent.keys())
        if file.links[link].pool is None  # one link that is silent is no reason to restart the others
        and _still_silent(launch, name := application_name(link, group), plans[group], reports, silent[group])
    ]
    if restart:
        steps.append(partial(_end_to_restart, launch, link, file.links[link].pool, restart, plans, by))
    _, failed = _all_of(steps)  # if one cannot be stopped now, the others are still handled
    current = [found for _, found in sorted(plans.items())]
    if file.links[link].pool is None:
        done = ensure_all(file, link, current, proofs, insist=restart)
    else:
        done = pools.ensure(file, link, current, reports, insist=bool(restart)) + end_separate(file, link, current)
    done += pools.tidy(file, link) + end_orphans(spark)
    if failed:
        raise failed[0]
    return "; ".join(done)


def metrics(link: str) -> str:
    """Log a line of metrics for each topic, and send them as gauges."""
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
    """Return the control plane of the link as configured by the links file, the Connections and its Variable.

    Args:
        known: cluster -> its Kafka cluster ID.
    """
    from strait.config.links import with_known
    from strait.control.plane import Control
    from strait_airflow.settings import clusters_of, with_live_topics

    file = with_known(with_live_topics(clusters_of(link), link), known)
    return Control(file, link, lambda text: log.info("%s", text))


def _plans(file: "LinksFile", link: str) -> "tuple[dict[str, Plan], dict[str, Proof], Reports]":
    """Return task group -> its current plan, whether that is proven, and the newest reports."""
    from strait.state.reader import StateReader
    from strait.state.signing import with_key

    destination = file.links[link].destination
    properties = with_key(file.clusters[destination])
    with StateReader(properties, destination, link, follow=("plan", "reports")) as state:
        state.catch_up()
        return dict(state.plans), dict(state.proofs), dict(state.reports)


def _end_to_restart(
    launch: "Launcher", link: str, pool: str | None, group: str, plans: "Mapping[str, Plan]", by: str
) -> None:
    from strait.config.naming import application_of
    from strait.config.validation import did_you_mean
    from strait.errors import ConfigError
    from strait_airflow.applications import end

    if group not in plans:
        raise ConfigError(f"link {link}", [f"its plan has no task group {group!r}{did_you_mean(group, plans)}"])
    end(launch, application_of(link, pool, group), f"{by} wants it to start anew")


def _still_silent(launch: "Launcher", name: str, plan: "Plan", reports: "Reports", at_ms: int) -> bool:
    """Return whether an application that did not report at ``at_ms`` (ms since 1970) has not been replaced since, and
    at least one of its slots has not reported since."""
    found = launch.state(name)
    if found is None or found.submitted_at_ms > at_ms:
        return False
    heard = [max((part.at_ms for part in reports.get((plan.group, slot), ())), default=0) for slot in range(plan.slots)]
    return min(heard) <= at_ms


def _logged(text: str) -> str:
    """Log each line of the text; return the line that summarizes the plan, else the first one."""
    lines = text.splitlines()
    for line in lines:
        log.info("%s", line)
    return next((line for line in lines if line.startswith("plan ")), lines[0])
