"""The disk of Airflow is full: copying goes on, and what ended meanwhile is found as soon as Airflow works again."""

import contextlib
import time
from pathlib import Path

import pytest

from support.fixtures.airflow import PARTITIONS, deployment, launch
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_equal, read_all

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

COPIED = ("orders", "payments")
FULL_SECONDS = 45.0


def fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


def test_copying_goes_on_and_nothing_is_lost_or_doubled(small_disk, clusters):
    with deployment(small_disk, clusters.source, clusters.destination, include=list(COPIED)) as running:

        def copied() -> int:
            return sum(ends(clusters.destination, "orders", PARTITIONS["orders"]))

        eventually(lambda: running.application_pids() and copied() > 0, what="records", within_seconds=240)
        ballast = small_disk / "airflow" / "ballast"
        fill(ballast)
        before, pids = copied(), running.application_pids()
        time.sleep(FULL_SECONDS)
        assert running.airflow.missing_components(), "Airflow cannot work without its disk"
        assert copied() > before
        assert running.application_pids() == pids

        ended = running.application()
        running.kill_application()
        ballast.unlink()
        running.airflow.stop()  # what a full disk has ended it does not start again by itself
        launch(running.airflow)
        running.airflow.wait_until_healthy()
        eventually(lambda: running.application().id != ended.id, what="another submission", within_seconds=180)
        running.stop_writing()
        for topic in COPIED:
            source = ends(clusters.source, topic, PARTITIONS[topic])
            eventually(
                lambda topic=topic, source=source: ends(clusters.destination, topic, PARTITIONS[topic]) == source,
                what=f"{topic}: as many records as its source",
                within_seconds=180,
            )
            whole = [read_all(one, topic, PARTITIONS[topic]) for one in (clusters.source, clusters.destination)]
            assert_equal(*whole)
