"""A running link is upgraded under load from an earlier version to this one, and back: nothing is lost or written twice, and
each version reads the state topics of the other."""

import io
import json
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from e2e.test_run import PARTITIONS, Foreground
from strait.config.home import project_root
from strait.model import TopicPartition
from support.fixtures.waiting import eventually
from support.fixtures.wheel import Installed, install
from support.kafka.groups import commit, committed
from support.links.foreground_run import Run, strait_of

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(1200)]

FIRST_RELEASE = "348bde5c"
"""The commit of v0.1.0, for a checkout without tags."""

PAUSE_SECONDS = 0.05


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The version before, as its users have installed it."""
    tag = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^").stdout.decode().strip()
    archive = _git("archive", tag or FIRST_RELEASE)
    if archive.returncode:
        pytest.skip(f"this checkout has no commit {tag or FIRST_RELEASE}")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder / "sources", filter="data")
    return install(folder, project=folder / "sources")


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *words], cwd=project_root(), capture_output=True, check=False)


@pytest.fixture
def foreground(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Foreground]:
    found = Foreground(clusters.source, clusters.destination, topic_name, tmp_path)
    yield found
    found.kill_what_is_left()


@contextmanager
def written(link: Foreground) -> Iterator[None]:
    """Somebody writes to the source all the time, small batches into each partition."""
    stop = threading.Event()
    producer = Producer(link.source.client_properties | {"compression.type": "lz4", "linger.ms": 5})

    def write() -> None:
        number = 0
        while not stop.wait(PAUSE_SECONDS):
            for partition in range(PARTITIONS):
                for _ in range(5):
                    producer.produce(link.topic, key=f"k{number}", value=f"value {number}", partition=partition)
                    number += 1
            producer.poll(0)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join(30)
        assert producer.flush(60) == 0


def copies(run: Run, what: str) -> None:
    """Wait until it has replicated, from its start on."""
    eventually(
        lambda: [item for item in run.events("progress") if item["records"] > 0],
        what=lambda: f"{what} replicates: {run.events('progress')[-1:]} {run.errors.read_text()[-1000:]}",
        within_seconds=300,
    )


def status(link: Foreground, version: Installed | None, folder: Path) -> Any:
    """What `strait status` of a version reads in the state topics."""
    strait, environment = strait_of(version)
    command = [strait, "status", link.link, "-o", "json", "-f", str(folder / "links.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_link_is_upgraded_under_load_and_rolled_back(foreground: Foreground, before: Installed, tmp_path: Path):
    group = f"{foreground.topic}-group"
    at = TopicPartition(foreground.topic, 1)

    def follows(offset: int, who: str) -> None:
        commit(foreground.source, group, {at: offset})
        eventually(
            lambda: committed(foreground.destination, group, foreground.topic) == {1: offset},
            what=f"the group's offset is synchronized by {who}",
        )

    with written(foreground):
        runs: list[Run] = []
        for number, (version, who) in enumerate(
            [(before, "before"), (None, "after"), (before, "before again"), (None, "after again")]
        ):
            runs.append(foreground.start(version))
            copies(runs[-1], who)  # beside the other version, which still runs
            if number:
                assert runs[-2].end()[0] == 0, runs[-2].errors.read_text()
            follows(10 + number, who)
            for reader in (before, None):
                assert status(foreground, reader, tmp_path)
        foreground.produce(1_000)
    foreground.wait_until_caught_up()
    assert runs[-1].end()[0] == 0, runs[-1].errors.read_text()
    foreground.assert_equal()
