"""The DAGs of the how-to about other people's DAGs, in the real Airflow, over a link that replicates."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from strait.config.home import project_root
from strait.control.link_status import link_status
from strait.control.plane import Control
from strait.embedded.airflow_client import AirflowClient
from strait.state.link_handle import ConfiguredLink
from support.fixtures.airflow import OVER
from support.fixtures.page import GATEWAYS, Site
from support.fixtures.waiting import eventually
from support.kafka.topics import create
from support.links.copying import copying

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

LINK, TOPIC, RECORDS = "batches", "sales", 20
DAGS = ("hourly_orders", "release", "cut_over")
PAGE = project_root() / "docs/how-to/wait-for-data.md"


@pytest.fixture(scope="module")
def link(site: Site) -> Iterator[str]:
    """A further link, which nothing replicates yet, and the DAGs of the page for it."""
    before = site.links_file.read_text()
    file = yaml.safe_load(before)
    topics = {"include": [TOPIC]}
    file["links"][LINK] = {"source": "here", "destination": "there", "topics": topics, "spark": {"head_start": False}}
    create(site.clusters.source, TOPIC, 2)
    texts = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    dags = [site.links_file.parent / GATEWAYS / f"{name}.py" for name in DAGS]
    for dag in dags:
        (text,) = [one for one in texts if f"def {dag.stem}()" in one]
        text = text.replace('"shop"', f'"{LINK}"').replace('"orders"', f'"{TOPIC}"')
        dag.write_text(text.replace("minutes=1)", "seconds=1)"))
    site.links_file.write_text(yaml.safe_dump(file))
    try:
        yield LINK
    finally:
        for dag in dags:
            dag.unlink()
        site.links_file.write_text(before)


def write(site: Site, at: datetime, count: int) -> None:
    producer = Producer(site.clusters.source.client_properties)
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), timestamp=int(at.timestamp() * 1000))
    assert producer.flush(30) == 0


@contextmanager
def started(site: Site, dag: str, at: datetime | None = None) -> Iterator[tuple[AirflowClient, str]]:
    """A run of a DAG; that of its schedule if the scheduler was faster."""
    with closing(site.airflow.client()) as client:
        eventually(lambda: dag in {one["dag_id"] for one in client.dags()}, what="the DAG", within_seconds=120)
        assert client.import_errors() == []
        client.unpause(dag)
        body = {"logical_date": None if at is None else at.isoformat()}
        answer = site.airflows("POST", f"dags/{dag}/dagRuns", site.token(), body)
        if at is not None and answer.status_code == 409:
            (run,) = [
                one["dag_run_id"] for one in client.runs(dag) if at == datetime.fromisoformat(one["logical_date"])
            ]
        else:
            assert answer.status_code == 200, answer.text
            run = answer.json()["dag_run_id"]
        yield client, run


def end(client: AirflowClient, dag: str, run: str) -> dict[str, str | None]:
    """The states of a run's tasks, once it has ended."""
    eventually(lambda: client.run(dag, run)["state"] in OVER, what=f"the end of {dag}", within_seconds=180)
    return client.task_states(dag, run)


def test_the_batch_of_an_hour_starts_once_its_records_are_replicated(site: Site, link: str, tmp_path: Path):
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    write(site, hour - timedelta(minutes=5), RECORDS)
    dag = "hourly_orders"
    with started(site, dag, hour) as (client, run):
        eventually(
            lambda: client.task_states(dag, run).get("complete") == "deferred",
            what="the sensor waits",
            within_seconds=120,
        )
        with Control.of(site.links_file, link) as control, copying(control, tmp_path):
            states = end(client, dag, run)
        assert states == dict.fromkeys(("complete", "batch", "commit"), "success"), client.task_log(
            dag, run, "complete"
        )
    in_run = f"dags/{dag}/dagRuns/{run}/taskInstances"
    token = site.token()
    assert site.airflows("GET", f"{in_run}/batch/xcomEntries/return_value", token).json()["value"] == RECORDS
    buttons = site.airflows("GET", f"{in_run}/complete/links", token).json()["extra_links"]
    assert buttons["Strait"].endswith(f"/plugin/strait#/link/{link}")


def test_a_release_waits_for_the_link_and_a_cut_over_moves_it(site: Site, link: str, tmp_path: Path):
    write(site, datetime.now(UTC), RECORDS)
    eventually(
        lambda: not link_status(ConfiguredLink.load(site.links_file, link)).healthy,
        what="the application of an earlier test is known to be gone",
    )
    with started(site, "release") as (client, run):
        eventually(
            lambda: client.task_states("release", run).get("healthy") == "deferred",
            what=lambda: f"the gate is closed while nothing replicates: {client.task_states('release', run)}",
            within_seconds=120,
        )
        with Control.of(site.links_file, link) as control, copying(control, tmp_path):
            assert set(end(client, "release", run).values()) == {"success"}, client.task_log("release", run, "healthy")
            with started(site, "cut_over") as (_, moving):
                states = end(client, "cut_over", moving)
                logs = [
                    client.task_log("cut_over", moving, task)[-2000:]
                    for task, state in states.items()
                    if state != "success"
                ]
                assert (len(states), logs) == (5, [])
    status = link_status(ConfiguredLink.load(site.links_file, link))
    assert status.stopped
    assert "cut-over" in status.stopped_by
