"""The DAGs of each link of the links file: `strait_<link>` keeps it planned, `strait_<link>_health` keeps it alive, and
`strait_<link>_approval` asks a person first where the link wants that. `strait-pause` pauses and resumes any of them.

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

MONITOR_PAGE = """
### What this DAG does, every minute

| task | |
|---|---|
| `plan` | looks at both clusters and says what it would create, copy and leave out. Changes nothing. |
| `apply` | looks again, creates missing topics, publishes the plan. Running applications follow it within a second. |
| `applications` | submits applications that do not run (its log has the cause of death), ends those in no plan. |
| `metrics` | one line for each topic: records, rates, lag, what waits and why. The same as gauges for StatsD. |

**Edit** the Variable `strait_topics_{link}` (`include`, `regex`, `exclude`) to change what is copied. An invalid edit
fails `plan` with one line; the last good plan stays in force and copying goes on. **Pause** this DAG to freeze the
plan; running applications keep copying.
"""

HEALTH_PAGE = """
### What this DAG does, every minute

`watch` follows the reports of the link's slots until the minute is nearly over, without holding a worker, and ends at
once when an application is dead or a slot is silent. `restart` then submits the application again. Trouble is data
here, not failure: a run is red only when an application had to be restarted too often, and a person should look.
"""

APPROVAL_PAGE = """
### What this DAG does, every minute while nothing is asked

`look` finds out whether the plan holds changes that a person has to approve. `ask` shows them and waits, without holding
a worker, on the page *Required Actions*. `act` does exactly what was shown, or says that it is not what would be done any
more; the next run then asks anew. What was rejected is not asked again until it is something else: the Variable
`strait_rejected_{link}` holds it. Nobody answers within an hour: the question is withdrawn and asked again.
"""

PAUSE_PAGE = """
### Pause or resume a link, a topic or a partition

Trigger it, and say which. `what` is TOPIC or TOPIC:PARTITION of the source; empty, it means the whole link. Slots stop
within two seconds, and go on within a few, exactly where they were. Who, when and why are shown by `strait status`.
"""


def monitor(link: str) -> DAG:
    @dag(
        dag_id=dag_id(link),
        description=f"Keep the link {link} planned and its applications running.",
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
        description=f"Notice within seconds when the link {link} stands still, and restart what does not run.",
        doc_md=HEALTH_PAGE,
        dagrun_timeout=timedelta(minutes=3),
        tags=["strait", link],
        **COMMON,
    )
    def build() -> None:
        @task
        def restart(troubles: list[dict[str, str]]) -> str:
            from strait_airflow import control

            return control.restart(link, troubles)

        restart(HealthSensor(task_id="watch", link=link).output)

    return build()


def approval(link: str) -> DAG:
    @dag(
        dag_id=dag_id(link, "approval"),
        description=f"Ask a person before what the link {link} copies, and how, is changed.",
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
            "reason": Param("", type="string", description="For whoever wonders later."),
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


names = link_names()
for name in names:
    monitor(name)
    health(name)
for name in links_with_approval():
    approval(name)
if names:
    pause(names)
