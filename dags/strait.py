"""The DAGs of each link of the links file: `strait_<link>` keeps it planned, `strait_<link>_health` keeps it alive, and
`strait_<link>_approval` asks a person first where the link wants that. `strait-pause` pauses and resumes any of them,
`strait-failover` moves the clients of one to its destination, and `strait-rehearsal` tries every week whether it could.

The copying itself is done by Spark applications. They are submitted from here and outlive every run, and Airflow too.
"""

from datetime import timedelta

import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import DAG, Param, dag, get_current_context, task

from strait_airflow.approval import APPROVE, REJECT
from strait_airflow.sensors import HealthSensor
from strait_airflow.settings import dag_id, link_names, links_with_approval

COMMON = {
    "schedule": "* * * * *",
    "start_date": pendulum.datetime(2025, 1, 1, tz="UTC"),
    "catchup": False,
    "max_active_runs": 1,  # a second planner would only be refused by the first one's publication
    "default_args": {
        "retries": 1,  # also because a stop of Airflow fails the tasks that run
        "retry_delay": timedelta(seconds=5),
        "execution_timeout": timedelta(minutes=2),
        "show_return_value_in_logs": False,  # it was logged already
    },
}
ANSWER_WITHIN = timedelta(hours=1)  # then the question is withdrawn and asked anew, about the plan as it is then

REHEARSAL_WITHIN = timedelta(hours=1)
FAILOVER_WITHIN = timedelta(hours=4)  # longer than all its steps together

MONITOR_PAGE = """
### What this DAG does, every minute

| task | |
|---|---|
| `plan` | Queries both clusters and prints the topics to create, copy and skip. Changes nothing. |
| `apply` | Plans again, creates missing topics and publishes the plan. Running applications apply it within 1 s. |
| `applications` | Submits applications that are not running (its log shows the cause), stops those without a plan. |
| `metrics` | Prints one line per topic: records, rates, lag, waiting partitions and their reason; then consumer groups that are not in sync, and why. Sends StatsD gauges. |

**Edit** the Variable `strait_topics_{link}` (`include`, `regex`, `exclude`) to change what is copied. An invalid edit
fails `plan` with one line; the last good plan stays active and copying continues. **Pause** this DAG to freeze the
plan; running applications keep copying.
"""

HEALTH_PAGE = """
### What this DAG does, every minute

`watch` follows the reports of the link's slots for nearly a minute, without occupying a worker. It finishes early if
an application has exited or a slot is not reporting; `restart` then resubmits the application. It also finishes early
if the link's Variable, a Connection or the links file is edited; `restart` then applies the edit, unless the monitor
DAG is paused. A run fails if the edit is invalid, or if an application had to be restarted too often: check the log.
"""

APPROVAL_PAGE = """
### What this DAG does, every minute while nothing is asked

`look` determines whether the plan has changes that need approval. `ask` shows them on the page *Required Actions* and
waits, without occupying a worker. `act` applies exactly the approved plan. If the plan has changed since, `act` fails
and the next run asks again. A rejected plan is not proposed again until it changes; the Variable
`strait_rejected_{link}` stores it. Without a response within one hour, the request is canceled and made again.
"""

PAUSE_PAGE = """
### Pause or resume a link, a topic or a partition

Trigger it with the scope in `what`: TOPIC or TOPIC:PARTITION of the source; empty means the whole link. Slots stop
within 2 s, and resume within a few seconds at the offset where they stopped. `strait status` shows the operator, the
time and the reason.
"""

FAILOVER_PAGE = """
### Move a link's clients to its destination

Trigger it first with `dry_run`: the log of `failover` shows what each step finds now, and nothing is changed. Without
`dry_run` it waits until producers have stopped and all records are copied, commits the consumer groups' offsets and
stops the link. Until then, a failure or a stop of the task takes back what was done; a task that was killed is continued
by its retry. `strait failover LINK --history` shows the reports.
"""

REHEARSAL_PAGE = """
### What this DAG does, every week

`rehearse` goes through a failover of each link with consumer groups of other names, without touching a client. Its log
shows what is missing, and how many percent of the steps hold. `strait failover LINK --history` shows the reports.
"""


def monitor(link: str) -> DAG:
    @dag(
        dag_id=dag_id(link),
        description=f"Plan the link {link} every minute and keep its applications running.",
        doc_md=MONITOR_PAGE.format(link=link),
        dagrun_timeout=timedelta(minutes=5),
        tags=["strait", link],
        **COMMON,
    )
    def build() -> None:
        @task
        def plan() -> str:
            from strait_airflow import control

            return control.plan(link)

        @task
        def apply() -> str:
            from strait_airflow import control

            return control.apply(link)

        @task(trigger_rule="all_done")  # a plan that cannot be made now is no reason to stop looking after the last one
        def applications() -> str:
            from strait_airflow import control

            return control.applications(link)

        @task(trigger_rule="all_done")
        def metrics() -> str:
            from strait_airflow import control

            return control.metrics(link)

        steps = [plan(), apply(), applications(), metrics()]
        steps[0] >> steps[1] >> steps[2] >> steps[3]
        # The only leaf, so the run is red whenever one of the steps is. Needs no worker.
        steps >> EmptyOperator(task_id="all_well")

    return build()


def health(link: str) -> DAG:
    @dag(
        dag_id=dag_id(link, "health"),
        description=f"Detect within seconds that the link {link} has stopped or was edited, and act on it.",
        doc_md=HEALTH_PAGE,
        dagrun_timeout=timedelta(minutes=3),
        tags=["strait", link],
        **COMMON,
    )
    def build() -> None:
        @task
        def restart(found: dict[str, object]) -> str:
            from strait_airflow import control

            if found["edited"]:
                frozen = get_current_context()["ti"].get_dag(dag_id(link)).is_paused
                return control.follow_edit(link, frozen=frozen)
            return control.restart(link, found["troubles"])

        restart(HealthSensor(task_id="watch", link=link).output)

    return build()


def approval(link: str) -> DAG:
    @dag(
        dag_id=dag_id(link, "approval"),
        description=f"Request approval for changes to the plan of the link {link}.",
        doc_md=APPROVAL_PAGE.format(link=link),
        dagrun_timeout=ANSWER_WITHIN + timedelta(minutes=10),
        tags=["strait", link],
        **COMMON,
    )
    def build() -> None:
        @task
        def look() -> dict[str, object]:
            from strait_airflow import approval

            return approval.look(link)

        @task
        def act(found: dict[str, object], answer: dict[str, object]) -> str:
            from strait_airflow import approval

            return approval.act(link, found, answer)

        found = look()
        ask = HITLOperator(
            task_id="ask",
            subject=f"Strait, link {link}: make these changes?",
            body="{{ ti.xcom_pull(task_ids='look')['body'] }}",
            options=[APPROVE, REJECT],
            defaults=REJECT,
            response_timeout=ANSWER_WITHIN,
        )
        found >> ask
        act(found, ask.output)

    return build()


def pause(links: tuple[str, ...]) -> DAG:
    @dag(
        dag_id="strait-pause",  # no link's: theirs begin with `strait_`
        description="Pause or resume a link, a topic or a partition.",
        doc_md=PAUSE_PAGE,
        schedule=None,
        max_active_runs=1,
        start_date=COMMON["start_date"],
        catchup=False,
        is_paused_upon_creation=False,
        dagrun_timeout=timedelta(minutes=5),
        default_args=COMMON["default_args"],
        tags=["strait"],
        params={
            "link": Param(links[0], enum=list(links)),
            "action": Param("pause", enum=["pause", "resume"]),
            "what": Param("", type="string", description="TOPIC or TOPIC:PARTITION; empty: the whole link."),
            "reason": Param("", type="string", description="Reason, shown in `strait status`."),
        },
    )
    def build() -> None:
        @task
        def change() -> str:
            from strait_airflow import pausing

            context = get_current_context()
            asked, by = context["params"], context["dag_run"].triggering_user_name
            return pausing.change(asked["link"], asked["action"], asked["what"], asked["reason"], by or "Airflow")

        change()

    return build()


def failover(links: tuple[str, ...]) -> DAG:
    @dag(
        dag_id="strait-failover",
        description="Move the clients of a link to its destination.",
        doc_md=FAILOVER_PAGE,
        schedule=None,
        max_active_runs=16,  # a disaster of one link does not wait for another link
        start_date=COMMON["start_date"],
        catchup=False,
        is_paused_upon_creation=False,
        dagrun_timeout=FAILOVER_WITHIN,
        default_args=COMMON["default_args"] | {"execution_timeout": FAILOVER_WITHIN},
        tags=["strait"],
        params={
            "link": Param(links[0], enum=list(links)),
            "kind": Param("planned", enum=["planned", "unplanned"], description="unplanned: the source is lost."),
            "dry_run": Param(True, type="boolean", description="Only show what each step finds now."),
            "fence": Param(
                [], type="array", items={"type": "string"}, description="Principals to deny WRITE, by ACLs."
            ),
            "quiet_seconds": Param(10, type="number", minimum=1, description="Without a write to the source."),
            "timeout_minutes": Param(10, type="number", minimum=0.1, maximum=30, description="For each step."),
            "accept_inexact": Param(False, type="boolean", description="Although groups would not continue exactly."),
            "accept_tail": Param(False, type="boolean", description="Although the reverse link is behind."),
            "include_moved": Param(False, type="boolean", description="Also groups that consumed there before."),
            "even_if_source_answers": Param(False, type="boolean", description="Of an unplanned failover."),
            "reason": Param("", type="string", description="Kept in the report."),
        },
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
        dag_id="strait-rehearsal",
        description="Rehearse a failover of every link.",
        doc_md=REHEARSAL_PAGE,
        schedule="@weekly",
        max_active_runs=1,
        start_date=COMMON["start_date"],
        catchup=False,
        dagrun_timeout=REHEARSAL_WITHIN,
        default_args=COMMON["default_args"] | {"execution_timeout": REHEARSAL_WITHIN},
        tags=["strait"],
    )
    def build() -> None:
        @task(map_index_template="{{ task.op_kwargs['link'] }}")
        def rehearse(link: str) -> str:
            from strait_airflow.failing_over import rehearse

            return rehearse(link)

        rehearse.expand(link=list(links))

    return build()


names = link_names()
for name in names:
    monitor(name)
    health(name)
for name in links_with_approval():
    approval(name)
if names:
    pause(names)
    failover(names)
    rehearsal(names)
