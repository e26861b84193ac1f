"""`strait run`: one link in the foreground, with real clusters and Spark, until a signal ends all of it."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from strait.config.naming import application_name
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.launch import processes
from strait.model import TopicPartition
from support.fixtures.waiting import eventually
from support.fixtures.wheel import Installed
from support.kafka.groups import commit, committed
from support.kafka.records import assert_equal, read_all
from support.links.foreground_run import Run, lives

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

PARTITIONS = 3


class Foreground:
    """A link of the test's own, and as many runs of it as are asked for."""

    def __init__(self, source: Cluster, destination: Cluster, topic: str, folder: Path) -> None:
        self.source, self.destination, self.topic = source, destination, topic
        self.link = "run-" + topic[-8:]
        self._folder = folder
        self._links_file = folder / "links.yaml"
        self._runs: list[Run] = []
        self.configure()
        Admin(source.client_properties, "a").create([NewTopic(topic, PARTITIONS, 1)])

    def configure(self, **settings: Any) -> None:
        """Write the links file."""
        clusters = {"a": dict(self.source.client_properties), "b": dict(self.destination.client_properties)}
        block = {"source": "a", "destination": "b", "topics": {"include": [self.topic]}} | settings
        self._links_file.write_text(yaml.safe_dump({"clusters": clusters, "links": {self.link: block}}))

    def start(self, version: Installed | None = None) -> Run:
        run = Run(self._links_file, self._folder, f"run-{len(self._runs)}", "--link", self.link, version=version)
        self._runs.append(run)
        return run

    def produce(self, count: int) -> None:
        producer = Producer(self.source.client_properties | {"compression.type": "lz4", "linger.ms": 5})
        for number in range(count):
            producer.produce(self.topic, key=f"k{number}", value=f"value {number}", headers={"n": str(number)})
        assert producer.flush(60) == 0

    def caught_up(self) -> bool:
        partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        source, copy = (
            Admin(cluster.client_properties, "x").offsets_each(partitions, "latest")
            for cluster in (self.source, self.destination)
        )
        return len(copy.results) == PARTITIONS and source.results == copy.results

    def assert_equal(self) -> None:
        assert_equal(*(read_all(cluster, self.topic, PARTITIONS) for cluster in (self.source, self.destination)))

    def has_destination(self) -> bool:
        return self.topic in Admin(self.destination.client_properties, "b").observe(lambda _: False).topics

    def wait_until_caught_up(self) -> None:
        eventually(self.has_destination, what="the destination topic")
        eventually(self.caught_up, what=f"all of {self.topic} on the destination", within_seconds=300)

    def kill_what_is_left(self) -> None:
        for run in self._runs:
            if run.process.poll() is None:
                run.end()


@pytest.fixture
def foreground(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Foreground]:
    found = Foreground(clusters.source, clusters.destination, topic_name, tmp_path)
    yield found
    found.kill_what_is_left()


LANE = {"groups": {"default": {}, "backfill": {}}, "backfill": {"behind_records": 1000}}


@pytest.mark.parametrize(
    ("number", "settings", "applications"),
    [
        pytest.param(signal.SIGTERM, {}, {"default"}, id="SIGTERM"),
        pytest.param(
            signal.SIGINT,
            LANE,
            {"default", "backfill"},
            id="SIGINT, with history in a lane of its own",
            marks=pytest.mark.core,
        ),
    ],
)
def test_what_is_there_and_what_comes_is_copied_until_a_signal_ends_it_all(
    foreground: Foreground, number: signal.Signals, settings: dict[str, Any], applications: set[str]
) -> None:
    foreground.configure(**settings)
    foreground.produce(20_000)
    group = f"{foreground.topic}-group"
    commit(foreground.source, group, {TopicPartition(foreground.topic, 1): 17})
    run = foreground.start()
    foreground.wait_until_caught_up()
    foreground.produce(5_000)
    foreground.wait_until_caught_up()
    eventually(
        lambda: committed(foreground.destination, group, foreground.topic) == {1: 17},
        what="its consumers can go on at the destination",
    )
    eventually(
        lambda: [item for item in run.events("progress") if (item["records"], item["lag_records"]) == (25_000, 0)],
        what=lambda: f"its progress: {run.events('progress')[-1:]}",
    )
    started, folder = run.applications(), run.folder
    names = {application_name(foreground.link, group) for group in applications}
    assert {path.name for path in (folder / "applications").iterdir() if path.is_dir()} == names
    code, seconds = run.end(number)
    assert code == 0, run.errors.read_text()
    assert seconds < 20  # ten where nothing else runs; the suite's other half does
    assert not any(lives(process) for process in started)
    assert not folder.exists()
    assert run.errors.read_text() == ""
    foreground.assert_equal()


def test_two_runs_of_one_link_copy_every_record_once(foreground: Foreground) -> None:
    one, other = foreground.start(), foreground.start()
    for run in (one, other):
        eventually(lambda run=run: run.events("submitted"), what="a submission")
    for _ in range(20):
        foreground.produce(2_000)
    foreground.wait_until_caught_up()
    for run in (one, other):
        eventually(lambda run=run: run.events("progress")[-1:], what="its progress")
    assert one.end()[0] == 0
    foreground.produce(2_000)
    foreground.wait_until_caught_up()
    assert other.end()[0] == 0
    foreground.assert_equal()


def test_an_application_that_dies_is_started_again_and_its_cause_is_told(foreground: Foreground) -> None:
    foreground.produce(10_000)
    run = foreground.start()
    foreground.wait_until_caught_up()
    java = [process for process in run.applications() if process.name() == "java"]
    assert java
    for process in java:
        process.kill()
    (died,) = eventually(lambda: run.events("died"), what="news of its death")
    assert "SIGKILL" in died["cause"] or "killed" in died["cause"]
    foreground.produce(10_000)
    foreground.wait_until_caught_up()
    assert run.end()[0] == 0
    foreground.assert_equal()


def test_nothing_goes_on_when_the_run_itself_is_killed(foreground: Foreground) -> None:
    run = foreground.start()
    foreground.wait_until_caught_up()
    eventually(lambda: run.events("submitted"), what="a submission")
    folder = run.folder
    eventually(lambda: run.applications(), what="its processes")
    run.process.kill()
    run.process.wait(30)
    eventually(lambda: not processes.find(folder / "applications"), what="the end of its application")
    again = foreground.start()
    eventually(lambda: again.events("submitted"), what="a submission")
    assert not folder.exists(), "what a killed run leaves is cleared away by the next one"
    assert again.end()[0] == 0
