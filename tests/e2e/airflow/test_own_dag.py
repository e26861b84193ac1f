"""The DAG of the how-to about other people's DAGs, in the real Airflow, over a link that replicates."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from strait.config.home import project_root
from strait.control.plane import Control
from support.fixtures.airflow import OVER
from support.fixtures.page import GATEWAYS, Site
from support.fixtures.waiting import eventually
from support.kafka.topics import create
from support.links.copying import copying

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

LINK, TOPIC, DAG, RECORDS = "batches", "sales", "hourly_orders", 20
PAGE = project_root() / "docs/how-to/wait-for-data.md"


@pytest.fixture(scope="module")
def link(site: Site) -> Iterator[str]:
    """A further link, which nothing replicates yet, and the DAG of the page for it."""
    before = site.links_file.read_text()
    file = yaml.safe_load(before)
    topics = {"include": [TOPIC]}
    file["links"][LINK] = {"source": "here", "destination": "there", "topics": topics, "spark": {"head_start": False}}
    create(site.clusters.source, TOPIC, 2)
    texts = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (text,) = [one for one in texts if DAG in one]
    text = text.replace('"shop"', f'"{LINK}"').replace('"orders"', f'"{TOPIC}"').replace("minutes=1", "seconds=1")
    dag = site.links_file.parent / GATEWAYS / "hourly_orders.py"
    dag.write_text(text)
    site.links_file.write_text(yaml.safe_dump(file))
    try:
        yield LINK
    finally:
        dag.unlink()
        site.links_file.write_text(before)


def write(site: Site, at: datetime, count: int) -> None:
    producer = Producer(site.clusters.source.client_properties)
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), timestamp=int(at.timestamp() * 1000))
    assert producer.flush(30) == 0


def test_the_batch_of_an_hour_starts_once_its_records_are_replicated(site: Site, link: str, tmp_path: Path):
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    write(site, hour - timedelta(minutes=5), RECORDS)
    token = site.token()
    with closing(site.airflow.client()) as client:
        eventually(lambda: DAG in {dag["dag_id"] for dag in client.dags()}, what="the DAG", within_seconds=120)
        assert client.import_errors() == []
        client.unpause(DAG)
        started = site.airflows("POST", f"dags/{DAG}/dagRuns", token, {"logical_date": hour.isoformat()})
        assert started.status_code == 200, started.text
        run = started.json()["dag_run_id"]
        in_run = f"dags/{DAG}/dagRuns/{run}/taskInstances"

        def states() -> dict[str, str | None]:
            return client.task_states(DAG, run)

        eventually(lambda: states().get("complete") == "deferred", what="the sensor waits", within_seconds=120)
        with Control.of(site.links_file, link) as control, copying(control, tmp_path):
            eventually(lambda: client.run(DAG, run)["state"] in OVER, what="the end of the run", within_seconds=180)
        assert states() == {"complete": "success", "batch": "success"}, client.task_log(DAG, run, "complete")
        assert site.airflows("GET", f"{in_run}/batch/xcomEntries/return_value", token).json()["value"] == RECORDS
        buttons = site.airflows("GET", f"{in_run}/complete/links", token).json()["extra_links"]
        assert buttons["Strait"].endswith(f"/plugin/strait#/link/{link}")
