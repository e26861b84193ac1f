"""`strait run --pool`: several links in one Spark application, with real clusters and Spark."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.kafka.admin import Admin, NewTopic
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied
from support.links.foreground_run import STRAIT, Run, lives
from support.links.load import writing

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

PARTITIONS = 2
GOOD = 3


class PoolRun:
    """Links with a topic each in one pool, and one more whose source does not respond."""

    def __init__(self, clusters: Any, topic: str, folder: Path) -> None:
        self.source, self.destination = clusters.source, clusters.destination
        self.topics = [f"{topic}-{number}" for number in range(GOOD)]
        self.links = [f"link-{one[-10:]}" for one in self.topics]
        self._folder = folder
        self._links_file = folder / "links.yaml"
        self._runs: list[Run] = []
        self.configure(GOOD)
        Admin(self.source.client_properties, "a").create([NewTopic(one, PARTITIONS, 1) for one in self.topics])

    def configure(self, count: int) -> None:
        """Write the links file, with that many of the good links in the pool."""
        links = {
            link: {"source": "a", "destination": "b", "topics": {"include": [topic]}, "pool": "main"}
            for link, topic in zip(self.links[:count], self.topics, strict=False)
        }
        links[f"dead-{self.topics[0][-8:]}"] = {"source": "dead", "destination": "b", "pool": "main"}
        raw = {
            "clusters": {
                "a": dict(self.source.client_properties),
                "b": dict(self.destination.client_properties),
                "dead": {"bootstrap.servers": "127.0.0.1:1"},
            },
            "pools": {"main": {"slots": 1}},
            "links": links,
        }
        self._links_file.write_text(yaml.safe_dump(raw))

    def start(self) -> Run:
        run = Run(self._links_file, self._folder, f"run-{len(self._runs)}", "--pool", "main")
        self._runs.append(run)
        return run

    def command(self, *arguments: str) -> str:
        return subprocess.run(
            [STRAIT, *arguments, "--config", str(self._links_file)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"STRAIT_HOME": str(self._folder / "home")},
        ).stdout

    def copied(self, number: int) -> int:
        topic = self.topics[number]
        there = topic in Admin(self.destination.client_properties, "b").observe(lambda _: False).topics
        return sum(ends(self.destination, topic, PARTITIONS)) if there else 0

    def load(self) -> ExitStack:
        load = ExitStack()
        for number, topic in enumerate(self.topics):
            load.enter_context(writing(self.source, {topic: PARTITIONS}, seed=number, per_second=100))
        return load

    def until_equal(self) -> None:
        for number, topic in enumerate(self.topics):
            eventually(
                lambda number=number, topic=topic: self.copied(number) == sum(ends(self.source, topic, PARTITIONS)) > 0,
                what=f"all of {topic}",
                within_seconds=300,
            )
            assert_copied(self.source, self.destination, topic, PARTITIONS)

    def end(self) -> None:
        for run in self._runs:
            if run.process.poll() is None:
                run.end()


@pytest.fixture
def pool(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[PoolRun]:
    found = PoolRun(clusters, topic_name, tmp_path)
    yield found
    found.end()


@pytest.mark.core
def test_one_application_copies_all_links_and_a_dead_one_and_a_kill_stop_none(pool: PoolRun) -> None:
    run = pool.start()
    with pool.load():
        eventually(
            lambda: all(pool.copied(number) > 100 for number in range(GOOD)),
            what=lambda: f"all copy: {run.errors.read_text()} {run.events('error')}",
            within_seconds=300,
        )
        names = {path.name for path in (run.folder / "applications").iterdir() if path.is_dir()}
        assert names == {"strait-pool-main"}
        for process in [one for one in run.applications() if one.name() == "java"]:
            process.kill()
        eventually(lambda: run.events("died"), what="news of its death")
        before = [pool.copied(number) for number in range(GOOD)]
        eventually(
            lambda: all(pool.copied(number) > before[number] + 100 for number in range(GOOD)),
            what="all go on",
            within_seconds=300,
        )

        pool.command("stop", pool.links[0], "--reason", "test")
        stopped = eventually(lambda: stands_still(pool), what="the first stands still, and the others go on")
        pool.command("start", pool.links[0])
        eventually(lambda: pool.copied(0) > stopped, what="it goes on")
    pool.until_equal()
    assert any(event["link"].startswith("dead-") for event in run.events("error")), "its trouble is told"
    assert len(run.events("submitted")) == 2, "once at the start, once after the kill"
    started = run.applications()
    code, _ = run.end()
    assert code == 0, run.errors.read_text()
    assert not any(lives(process) for process in started)


def stands_still(pool: PoolRun) -> int:
    """What is copied of the first link if that has not changed while the second went on, else 0."""
    first, second = pool.copied(0), pool.copied(1)
    eventually(lambda: pool.copied(1) > second + 100, what="the second goes on")
    return first if pool.copied(0) == first else 0
