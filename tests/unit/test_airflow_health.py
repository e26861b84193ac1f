"""Airflow's components, by the ages of their heartbeats."""

from datetime import UTC, datetime

from strait.embedded.airflow_health import components_of

NOW = datetime(2026, 11, 26, 12, 0, 40, tzinfo=UTC)


def test_a_component_that_is_dead_is_named_with_the_age_of_its_heartbeat_and_the_consequence():
    health = {
        "metadatabase": {"status": "healthy"},
        "scheduler": {"status": "healthy", "latest_scheduler_heartbeat": "2026-11-26T12:00:38+00:00"},
        "triggerer": {"status": "unhealthy", "latest_triggerer_heartbeat": "2026-11-26T11:58:00+00:00"},
        "dag_processor": {"status": None, "latest_dag_processor_heartbeat": None},
    }
    found = {one.name: one for one in components_of(health, NOW)}
    assert (found["scheduler"].healthy, found["scheduler"].age_seconds, found["scheduler"].problem) == (True, 2.0, "")
    assert found["triggerer"].problem.startswith("triggerer: last heartbeat 160 s ago: events start no run")
    assert found["dag_processor"].problem.startswith("dag_processor: no heartbeat: ")


def test_an_answer_without_components_is_no_health():
    assert not any(one.healthy for one in components_of({}, NOW))
