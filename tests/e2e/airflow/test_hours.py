"""Hours of a replicated topic start the runs of another DAG, in the real Airflow: the DAG of the how-to."""

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

LINK, TOPIC, DAG, HOURS, PARTITIONS = "hourlies", "hour.sales", "orders_by_hour", 8, 2
PAGE = project_root() / "docs/how-to/wait-for-data.md"
PLAIN = """

@dag("plain_orders", schedule=[ORDERS], is_paused_upon_creation=False)
def plain():
    @task
    def batch() -> None:
        print("an event without a key")

    batch()


plain()
"""
"""A further DAG, which waits for any event of the asset that has no key: there must be none."""

FIRST = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS)


def written_in(number: int) -> int:
    """How many records an hour has: another number each."""
    return 3 + number


@pytest.fixture(scope="module")
def link(site: Site) -> Iterator[str]:
    """A further link, which nothing replicates yet, and the DAG of the page for it."""
    before = site.links_file.read_text()
    file = yaml.safe_load(before)
    assets = {"hourly": [TOPIC], "lateness_seconds": 0, "since": FIRST.isoformat()}
    ends = {"source": "here", "destination": "there", "spark": {"head_start": False}}
    file["links"][LINK] = ends | {"topics": {"include": [TOPIC]}, "assets": assets}
    create(site.clusters.source, TOPIC, PARTITIONS)
    producer = Producer(site.clusters.source.client_properties)
    for number in range(HOURS):
        at = FIRST + timedelta(hours=number, minutes=30)
        for record in range(written_in(number)):
            producer.produce(TOPIC, str(record), partition=0, timestamp=int(at.timestamp() * 1000))
    assert producer.flush(30) == 0
    texts = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (text,) = [one for one in texts if DAG in one]
    dag = site.links_file.parent / GATEWAYS / f"{DAG}.py"
    dag.write_text((text + PLAIN).replace('"shop"', f'"{LINK}"').replace('"orders"', f'"{TOPIC}"'))
    site.links_file.write_text(yaml.safe_dump(file))
    try:
        yield LINK
    finally:
        dag.unlink()
        site.links_file.write_text(before)


def test_a_dag_runs_once_for_each_hour_in_order_after_an_outage(site: Site, link: str, tmp_path: Path):
    keys = [(FIRST + timedelta(hours=number)).strftime("%Y-%m-%dT%H") for number in range(HOURS)]
    with closing(site.airflow.client()) as client:

        def runs() -> list[dict]:
            """Those of the DAG, in the order in which they began."""
            return sorted(client.runs(DAG), key=lambda run: run["start_date"] or "9")

        def known() -> bool:
            return {DAG, "plain_orders", f"strait_{LINK}"} <= {dag["dag_id"] for dag in client.dags()}

        eventually(known, what="the DAGs", within_seconds=120)
        assert client.import_errors() == []
        client.unpause(DAG)
        client.unpause(f"strait_{LINK}")
        first = eventually(
            lambda: [run for run in client.runs(f"strait_{LINK}") if run["state"] in OVER],
            what="a run of the link",
            within_seconds=240,
        )
        assert runs() == [], f"nothing is replicated yet: {first[0]['note']}"
        with Control.of(site.links_file, link) as control, copying(control, tmp_path):
            eventually(
                lambda: len([run for run in runs() if run["state"] in OVER]) >= HOURS,
                what=lambda: f"{HOURS} runs: {[(run['dag_run_id'], run['state']) for run in runs()]}",
                within_seconds=420,
            )
            begun = client.runs(f"strait_{LINK}")
            again = client.trigger(f"strait_{LINK}")
            client.wait_for_run(f"strait_{LINK}", again, 240)
        found = runs()
        told = [run["partition_key"] for run in found]
        assert told[:HOURS] == keys, "each hour once, in order"
        assert len(told) <= HOURS + 1, "an hour may have ended during the test"
        assert {run["state"] for run in found[:HOURS]} == {"success"}
        assert any("hours are replicated" in (run["note"] or "") for run in begun)
        assert client.runs("plain_orders") == [], "an outlet without an hour has no event"
        token = site.token()
        for number, run in enumerate(found[:HOURS]):
            path = f"dags/{DAG}/dagRuns/{run['dag_run_id']}/taskInstances/batch/xcomEntries/return_value"
            assert site.airflows("GET", path, token).json()["value"] == written_in(number)
