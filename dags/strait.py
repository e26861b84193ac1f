"""Two DAGs for each link of the links file: `strait_<link>` keeps it planned, `strait_<link>_health` keeps it alive.

The copying itself is done by Spark applications. They are submitted from here and outlive every run, and Airflow too.
"""

from datetime import timedelta

import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, dag, task

from strait_airflow.sensors import HealthSensor
from strait_airflow.settings import dag_id, link_names

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


for name in link_names():
    monitor(name)
    health(name)
