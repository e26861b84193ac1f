"""What the tasks of the monitor and health DAGs do. Each looks for itself: nothing but a line of text goes from task to
task.

What is returned is that line; Airflow shows it as the task's XCom.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strait.config.links import LinksFile
    from strait.control.plane import Control
    from strait.state.schema import Plan

log = logging.getLogger(__name__)

METRICS_SECONDS = 3.0
"""How far apart the two looks are from which rates are taken. Slots report once a second."""


def plan(link: str) -> str:
    """Say what would be done. Changes nothing."""
    from strait.planning.review.text import proposal_text
    from strait_airflow.errors import airflow_errors

    with airflow_errors(), live_control(link) as control:
        return _logged(proposal_text(control.propose()))


def apply(link: str) -> str:
    """Look again, create missing topics, publish the plan. What needs approval is left to the approval DAG."""
    from strait.errors import ApprovalMissing
    from strait_airflow.errors import airflow_errors

    with airflow_errors(), live_control(link) as control:
        try:
            return _logged(control.apply().as_text())
        except ApprovalMissing as waits:
            return _logged(str(waits))


def applications(link: str) -> str:
    """Make the applications those of the plan in force, whether or not a newer plan could be made."""
    from strait_airflow.applications import end_orphans, ensure_all
    from strait_airflow.errors import airflow_errors
    from strait_airflow.settings import clusters_of

    with airflow_errors():
        file = clusters_of(link)
        plans = _plans(file, link)
        if not plans:
            return _logged("no plan was ever published: there is nothing to run")
        done = ensure_all(file, link, [found for _, found in sorted(plans.items())])
        return "; ".join([*done, *end_orphans(file.links[link].spark)])


def metrics(link: str) -> str:
    """Log a line of figures for each topic, and send them as gauges."""
    from strait.control.group_status import group_status
    from strait.planning.consumer_groups import summary
    from strait.planning.status.metrics import missing_destination_partitions, topic_metrics
    from strait.state.reader import StateReader
    from strait.text import printable
    from strait_airflow.applications import starting
    from strait_airflow.errors import airflow_errors
    from strait_airflow.gauges import send, send_groups
    from strait_airflow.settings import clusters_of

    with airflow_errors():
        file = clusters_of(link)
        destination = file.links[link].destination
        with StateReader(file.clusters[destination], destination, link, follow=("plan", "map", "reports")) as state:
            state.catch_up()
            earlier, until = dict(state.reports), time.monotonic() + METRICS_SECONDS
            while time.monotonic() < until:
                state.poll(0.5)
        lines = []
        for group, found in sorted(state.plans.items()):
            status = group_status(file, link, group, state)
            topics = topic_metrics(status, state.runs, earlier, state.reports)
            missing = missing_destination_partitions(found)
            send(status, topics, missing)
            lines += [str(topic) for topic in topics]
            if missing:
                lines.append(f"group {group}: {missing} partitions wait for their destination")
            if found.stopped:
                continue
            if starting(file, link, group):
                lines.append(f"group {group}: its application is starting")
            elif silent := [slot.slot for slot in status.slots if slot.silent]:
                lines.append(f"group {group}: slots that do not report: {', '.join(map(str, silent))}")
        if state.group_sync is not None:
            send_groups(state.group_sync, time.time_ns() // 1_000_000)
            lines.append(summary(state.group_sync, time.time_ns() // 1_000_000))
            lines += [printable(f"consumer group {one.group}: {one.why}") for one in state.group_sync.out_of_sync]
        return _logged("\n".join(lines) or "no plan was ever published: there is nothing to measure")


def restart(link: str, troubles: Sequence[Mapping[str, str]]) -> str:
    """Act on what the health sensor found: submit again what does not run, replace what does not report."""
    from strait.config.naming import application_name
    from strait.reasons import Reason
    from strait_airflow.applications import end, ensure_all, launcher
    from strait_airflow.errors import airflow_errors
    from strait_airflow.settings import clusters_of

    if not troubles:
        return _logged("nothing to do: every application runs and every slot reports")
    with airflow_errors():
        file = clusters_of(link)
        plans = _plans(file, link)
        for trouble in troubles:
            if trouble["reason"] == Reason.SLOT_SILENT:
                name = application_name(link, trouble["group"])
                end(launcher(file.links[link].spark), name, trouble["detail"])
        groups = {trouble["group"] for trouble in troubles}
        return "; ".join(ensure_all(file, link, [plan for group, plan in sorted(plans.items()) if group in groups]))


def follow_edit(link: str, *, frozen: bool) -> str:
    """Apply an edit at once, as the monitor would do a minute later.

    Args:
        frozen: the monitor DAG is paused, so that the plan stays as it is.
    """
    if frozen:
        return _logged("nothing is applied: the monitor DAG is paused")
    return "; ".join((apply(link), applications(link)))


def live_control(link: str) -> "Control":
    """The link as the links file, the Connections and its Variable have it."""
    from strait.control.plane import Control
    from strait_airflow.settings import clusters_of, with_live_topics

    return Control(with_live_topics(clusters_of(link), link), link)


def _plans(file: "LinksFile", link: str) -> "dict[str, Plan]":
    """Group -> the plan in force."""
    from strait.state.reader import StateReader

    destination = file.links[link].destination
    with StateReader(file.clusters[destination], destination, link, follow=("plan",)) as state:
        state.catch_up()
        return dict(state.plans)


def _logged(text: str) -> str:
    """Log each line of it; return the one that sums up a plan, else the first."""
    lines = text.splitlines()
    for line in lines:
        log.info("%s", line)
    return next((line for line in lines if line.startswith("plan ")), lines[0])
