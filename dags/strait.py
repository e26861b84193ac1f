"""The DAGs of each link of the links file: `strait_<link>` keeps its plan current and its applications running, and
`strait_<link>_approval` requests an operator's approval first if the link requires it. `strait-pause` pauses and
resumes any link, `strait-quarantine` replays or discards quarantined records, `strait-failover` moves the clients of a
link to its destination, `strait-rehearsal` tests every week whether that would succeed, and `strait-audit` compares the
contents of both sides.

Spark applications do the replication. They are submitted from here and outlive every run, and Airflow too.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

import pendulum
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import (
    DAG,
    Asset,
    Param,
    dag,
    get_current_context,
    task,
    task_group,
)

from strait_airflow.alerts import approval_notifiers, dag_arguments
from strait_airflow.approval import APPROVE, REJECT
from strait_airflow.assets import hourly
from strait_airflow.dag_pages import (
    APPROVAL_PAGE,
    AUDIT_PAGE,
    FAILOVER_PAGE,
    MONITOR_PAGE,
    PAUSE_PAGE,
    QUARANTINE_PAGE,
    REHEARSAL_PAGE,
)
from strait_airflow.dag_params import audit_params, failover_params, pause_params, quarantine_params
from strait_airflow.graph import RETRIES
from strait_airflow.healthy import Healthy
from strait_airflow.metrics import Metrics
from strait_airflow.noticing import ACTING_MOST_MS
from strait_airflow.operators import StraitRehearsalOperator
from strait_airflow.outline import outline
from strait_airflow.page_address import PageButton, page_address
from strait_airflow.schedules import RUN_TYPES, watched, when_woken
from strait_airflow.settings import (
    AUDIT_DAG,
    FAILOVER_DAG,
    PAUSE_DAG,
    QUARANTINE_DAG,
    REHEARSAL_DAG,
    dag_id,
)
from strait_airflow.steps import HEALTHY, METRICS, MONITOR, SUBMIT, VERDICT

if TYPE_CHECKING:
    from strait.config.links import Alerts

COMMON = {
    "start_date": pendulum.datetime(2025, 1, 1, tz="UTC"),
    "catchup": False,
    "allowed_run_types": RUN_TYPES,
    "default_args": {
        "retries": RETRIES,  # also because stopping Airflow fails the running tasks
        "retry_delay": timedelta(seconds=5),
        "execution_timeout": timedelta(minutes=2),
        "show_return_value_in_logs": False,  # it is already logged
    },
}
ON_DEMAND = {
    "schedule": None,
    "allowed_run_types": RUN_TYPES,
    "start_date": COMMON["start_date"],
    "catchup": False,
    "is_paused_upon_creation": False,
    "tags": ["strait"],
}
ANSWER_WITHIN = timedelta(hours=1)  # then the request is canceled and made again for the current plan

SETTLED_WITHIN = timedelta(hours=1)
REHEARSAL_WITHIN = timedelta(hours=1)
AUDITED_WITHIN = timedelta(hours=12)
FAILOVER_WITHIN = timedelta(hours=4)  # longer than all its steps together
STARTED_WITHIN = timedelta(minutes=8)
MEASURED_WITHIN = timedelta(minutes=2)
RUNS_MOST = 4  # of a link: a run that waits until an application replicates delays no other


def monitor(link: str, asset: Asset, alerts: "Alerts | None", hourly: list[Asset]) -> DAG:
    @dag(
        dag_id=dag_id(link),
        description=f"Keep the link {link} planned and its applications running: a run for each event.",
        doc_md=MONITOR_PAGE.format(link=link, page=page_address(link)),
        schedule=when_woken(link, asset),
        dagrun_timeout=timedelta(milliseconds=ACTING_MOST_MS),
        tags=["strait", link],
        params={
            "restart": Param(
                "", type="string", description="Task group whose application is ended and submitted again."
            )
        },
        max_active_runs=RUNS_MOST,
        **dag_arguments(alerts),
        **COMMON,
    )
    def build() -> None:
        @task(
            task_id=MONITOR,
            inlets=[asset, *hourly],
            outlets=hourly,  # the task keeps those that get an event
            execution_timeout=timedelta(minutes=5),
            max_active_tis_per_dag=1,  # of two concurrent planners, one would wait for the other in vain
        )
        def look() -> list[dict[str, object]]:
            from strait_airflow import graph

            return graph.monitor(link, asset, get_current_context())

        @task(task_id=SUBMIT, multiple_outputs=False, map_index_template="{{ task.op_kwargs['asked']['name'] }}")
        def submitted(asked: dict[str, object]) -> dict[str, object]:
            from strait_airflow import graph

            return graph.submit(link, asked, get_current_context())

        @task_group(group_id="applications", prefix_group_id=False)
        def application(asked: dict[str, object]) -> None:
            done = submitted(asked=asked)
            done.operator.operator_extra_links = button
            waiting = Healthy(task_id=HEALTHY, link=link, within=STARTED_WITHIN)
            waiting.operator_extra_links = button
            done >> waiting

        @task(task_id=VERDICT, inlets=[asset], trigger_rule="all_done", max_active_tis_per_dag=1)
        def judge() -> str:
            from strait_airflow import graph

            return graph.verdict(link, asset, get_current_context())

        button = [PageButton(link)]
        looked, judged = look(), judge()
        measured = Metrics(task_id=METRICS, link=link, within=MEASURED_WITHIN, trigger_rule="all_done")
        application.expand(asked=looked) >> measured >> judged
        for made in (looked.operator, measured, judged.operator):
            made.operator_extra_links = button

    return build()


def approval(link: str, asset: Asset, alerts: "Alerts | None") -> DAG:
    @dag(
        dag_id=dag_id(link, "approval"),
        description=f"Request approval for changes to the plan of the link {link}.",
        doc_md=APPROVAL_PAGE.format(link=link, page=page_address(link)),
        schedule=when_woken(link, asset),
        dagrun_timeout=ANSWER_WITHIN + timedelta(minutes=10),
        tags=["strait", link],
        max_active_runs=1,
        **({key: value for key, value in dag_arguments(alerts).items() if key != "deadline"}),
        **COMMON,
    )
    def build() -> None:
        @task
        def look() -> dict[str, object]:
            from strait_airflow import approval

            return approval.look(link)

        @task(inlets=[asset])
        def act(found: dict[str, object], answer: dict[str, object]) -> str:
            from strait_airflow import approval

            context = get_current_context()
            return approval.act(link, found, answer, context["asset_state_store"][asset], context["ti"])

        found = look()
        ask = HITLOperator(
            task_id="ask",
            subject=f"Strait, link {link}: make these changes?",
            body="{{ ti.xcom_pull(task_ids='look')['body'] }}",
            options=[APPROVE, REJECT],
            defaults=REJECT,
            response_timeout=ANSWER_WITHIN,
            notifiers=approval_notifiers(alerts),
        )
        found >> ask
        acted = act(found, ask.output)
        for asking in (found.operator, ask, acted.operator):
            asking.operator_extra_links = [PageButton(link)]

    return build()


def pause(links: tuple[str, ...]) -> DAG:
    @dag(
        dag_id=PAUSE_DAG,
        description="Pause or resume a link, a topic or a partition, or decide about a deleted topic.",
        doc_md=PAUSE_PAGE,
        max_active_runs=1,
        dagrun_timeout=timedelta(minutes=5),
        default_args=COMMON["default_args"],
        params=pause_params(links),
        **ON_DEMAND,
    )
    def build() -> None:
        @task
        def change() -> str:
            from strait_airflow import pausing

            context = get_current_context()
            asked, by = context["params"], context["dag_run"].triggering_user_name
            given = (asked["link"], asked["action"], asked["what"], asked["reason"], by or "Airflow")
            return pausing.change(*given, asked["count"])

        change()

    return build()


def quarantine(links: tuple[str, ...]) -> DAG:
    @dag(
        dag_id=QUARANTINE_DAG,
        description="Replay or drop records that a destination rejected.",
        doc_md=QUARANTINE_PAGE,
        max_active_runs=1,  # if two resolve records, the later one takes over
        dagrun_timeout=SETTLED_WITHIN,
        default_args=COMMON["default_args"] | {"execution_timeout": SETTLED_WITHIN},
        params=quarantine_params(links),
        **ON_DEMAND,
    )
    def build() -> None:
        @task
        def settle() -> str:
            from strait_airflow import settling

            context = get_current_context()
            return settling.settle(context["params"], context["dag_run"].triggering_user_name or "Airflow")

        settle()

    return build()


def failover(links: tuple[str, ...]) -> DAG:
    @dag(
        dag_id=FAILOVER_DAG,
        description="Move the clients of a link to its destination.",
        doc_md=FAILOVER_PAGE,
        max_active_runs=16,  # a failover of one link does not wait for another link's
        dagrun_timeout=FAILOVER_WITHIN,
        default_args=COMMON["default_args"] | {"execution_timeout": FAILOVER_WITHIN},
        params=failover_params(links),
        **ON_DEMAND,
    )
    def build() -> None:
        @task(task_id="failover")
        def fail_over() -> str:
            from strait_airflow.failing_over import fail_over

            context = get_current_context()
            return fail_over(context["params"], context["dag_run"].triggering_user_name or "Airflow")

        fail_over()

    return build()


def rehearsal(links: tuple[str, ...]) -> DAG:
    @dag(
        dag_id=REHEARSAL_DAG,
        description="Rehearse a failover of every link.",
        doc_md=REHEARSAL_PAGE,
        schedule="@weekly",
        max_active_runs=1,
        start_date=COMMON["start_date"],
        catchup=False,
        allowed_run_types=RUN_TYPES,
        dagrun_timeout=REHEARSAL_WITHIN,
        default_args=COMMON["default_args"] | {"execution_timeout": REHEARSAL_WITHIN},
        tags=["strait"],
    )
    def build() -> None:
        made = StraitRehearsalOperator.partial(task_id="rehearse", map_index_template="{{ task.link }}")
        made.expand(link=list(links))

    return build()


def audit(links: tuple[str, ...]) -> DAG:
    @dag(
        dag_id=AUDIT_DAG,
        description="Compare the contents of every link's topics: a sample each night, or all.",
        doc_md=AUDIT_PAGE,
        schedule="@daily",
        max_active_runs=1,
        max_active_tasks=1,  # each reads both clusters
        start_date=COMMON["start_date"],
        catchup=False,
        allowed_run_types=RUN_TYPES,
        is_paused_upon_creation=True,
        dagrun_timeout=AUDITED_WITHIN,
        default_args=COMMON["default_args"] | {"execution_timeout": AUDITED_WITHIN},
        params=audit_params(links),
        tags=["strait"],
    )
    def build() -> None:
        @task
        def chosen() -> list[str]:
            link = get_current_context()["params"]["link"]
            return [link] if link else list(links)

        @task(map_index_template="{{ task.op_kwargs['link'] }}")
        def compare(link: str) -> str:
            from strait_airflow.auditing import audit

            context = get_current_context()
            run = context["dag_run"]
            day = (run.logical_date or run.run_after).date().isoformat()
            return audit(link, context["params"], context["ti"], day)

        compare.expand(link=chosen())

    return build()


known = outline()
for name in known.links:
    its_watch, its_alerts = watched(name), known.alerts.get(name)
    monitor(name, its_watch, its_alerts, [hourly(name, topic) for topic in known.hourly.get(name, ())])
    if name in known.with_approval:
        approval(name, its_watch, its_alerts)
if known.links:
    pause(known.links)
    quarantine(known.links)
    failover(known.links)
    rehearsal(known.links)
    audit(known.links)
