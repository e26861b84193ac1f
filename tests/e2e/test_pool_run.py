"""`strait run --pool`: several links in one Spark application, with real clusters and Spark."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
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

    def __init__(self, clusters: Any, topic: str, folder: Path, count: int = GOOD) -> None:
        self.source, self.destination = clusters.source, clusters.destination
        self.topics = [f"{topic}-{number}" for number in range(count)]
        self.links = [f"link-{one[-10:]}" for one in self.topics]
        self._folder = folder
        self._links_file = folder / "links.yaml"
        self._runs: list[Run] = []
        self.configure(count)
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

    def have_applications_of_their_own(self) -> None:
        """A links file as it was before there were pools, of the good links."""
        raw = yaml.safe_load(self._links_file.read_text())
        del raw["pools"]
        links = {
            name: {key: value for key, value in link.items() if key != "pool"} for name, link in raw["links"].items()
        }
        raw["links"] = {name: link for name, link in links.items() if name in self.links}
        self._links_file.write_text(yaml.safe_dump(raw))

    def start(self, *arguments: str) -> Run:
        run = Run(self._links_file, self._folder, f"run-{len(self._runs)}", *(arguments or ("--pool", "main")))
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

    @cached_property
    def _there(self) -> Admin:
        """Kept: many ask for it at once, of a busy broker."""
        return Admin(self.destination.client_properties, "b")

    def copied(self, number: int) -> int:
        topic = self.topics[number]
        there = topic in self._there.observe(lambda _: False).topics
        return sum(ends(self.destination, topic, PARTITIONS)) if there else 0

    def load(self) -> ExitStack:
        load = ExitStack()
        topics = dict.fromkeys(self.topics, PARTITIONS)
        load.enter_context(writing(self.source, topics, seed=1, per_second=100 * GOOD))
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


def test_links_go_over_into_a_pool_under_load_by_one_command(pool: PoolRun) -> None:
    """Each has run by itself, from a file without pools; nothing is lost, copied twice or reordered on the way."""
    pool.have_applications_of_their_own()
    alone = [pool.start(link) for link in pool.links[:2]]
    with pool.load():
        eventually(
            lambda: all(pool.copied(number) > 100 for number in range(2)),
            what=lambda: f"each copies: {[run.errors.read_text() for run in alone]}",
            within_seconds=300,
        )
        assert pool.command("pools", "adopt").startswith(f"pool main: runs {GOOD} links")
        together = pool.start()
        eventually(lambda: pool.copied(2) > 100, what="the pool copies", within_seconds=300)
        for run in alone:
            code, _ = run.end()
            assert code == 0, run.errors.read_text()
        before = [pool.copied(number) for number in range(GOOD)]
        eventually(
            lambda: all(pool.copied(number) > before[number] + 100 for number in range(GOOD)),
            what=lambda: f"all go on in the pool: {together.errors.read_text()}",
            within_seconds=300,
        )
    pool.until_equal()
    code, _ = together.end()
    assert code == 0, together.errors.read_text()


def test_twenty_links_and_a_dead_one_are_equal_after_kills_of_their_application(
    clusters: Any, topic_name: str, tmp_path: Path
) -> None:
    pool = PoolRun(clusters, topic_name, tmp_path, 20)
    count = len(pool.topics)
    run = pool.start("--pool", "main", "--interval", "20")
    try:
        with pool.load():
            for kill in range(3):
                before = [pool.copied(number) for number in range(count)]
                eventually(
                    lambda before=before: all(pool.copied(number) > before[number] + 20 for number in range(count)),
                    what=lambda: f"all copy: {run.errors.read_text()} {run.events('error')}",
                    within_seconds=300,
                )
                for process in [one for one in run.applications() if one.name() == "java"]:
                    process.kill()
                eventually(lambda kill=kill: len(run.events("died")) == kill + 1, what="news of its death")
            before = [pool.copied(number) for number in range(count)]
            eventually(
                lambda: all(pool.copied(number) > before[number] + 20 for number in range(count)),
                what="all go on",
                within_seconds=300,
            )
        pool.until_equal()
        code, _ = run.end()
        assert code == 0, run.errors.read_text()
    finally:
        pool.end()


def test_a_link_fails_over_while_the_others_go_on(pool: PoolRun) -> None:
    run = pool.start()
    first, *others = pool.topics
    with writing(pool.source, {first: PARTITIONS}, seed=2, records=500):
        pass
    with writing(pool.source, dict.fromkeys(others, PARTITIONS), seed=1, per_second=200):
        eventually(
            lambda: pool.copied(0) == 500 and all(pool.copied(number) > 100 for number in (1, 2)),
            what=lambda: f"all copy: {run.errors.read_text()} {run.events('error')}",
            within_seconds=300,
        )
        before = [pool.copied(number) for number in range(GOOD)]
        told = pool.command("failover", pool.links[0], "--yes", "--reason", "test")
        assert "1 of 1 topic" in told, told
        eventually(
            lambda: all(pool.copied(number) > before[number] + 100 for number in (1, 2)), what="the others go on"
        )
    pool.until_equal()
    assert len(run.events("submitted")) == 1
    assert not run.events("died") and not run.events("replaced")
