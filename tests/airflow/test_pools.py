"""The application of a pool as the runs of its links keep it: submitted once, followed by all, ended with the last."""

import asyncio
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.triggers.base import TaskSuccessEvent, TriggerEvent
from typer.testing import CliRunner

from strait.cli.main import app
from strait.config.app_spec import PoolSpec
from strait.config.links import Spark
from strait.control.pausing import set_stopped
from strait.kafka.admin import Admin, NewTopic
from strait.launch.applications import RESTART_LIMIT
from strait.launch.base import Application
from strait.state.link_handle import ConfiguredLink
from strait.waiting import unix_ms
from strait_airflow import control
from strait_airflow.applications import launcher
from strait_airflow.healthy import StartTrigger
from strait_airflow.noticing import ACTED, Acted
from strait_airflow.page.watches.polled import _each_application
from strait_airflow.settings import clusters_of
from strait_airflow.steps import Run
from strait_airflow.submitting import submit
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied
from support.links.load import writing
from support.spark.idle import idle_spark_submit

pytestmark = [pytest.mark.airflow, pytest.mark.broker]

NAME = "strait-pool-main"
STANDBY = f"{NAME}.standby"


@pytest.fixture
def links(clusters: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Three planned links, each of its own topic."""
    names = [f"l-{uuid.uuid4().hex[:8]}" for _ in range(3)]
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(tmp_path / "links.yaml"))
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    stand_in = idle_spark_submit(tmp_path / "spark" / "bin" / "spark-submit")
    monkeypatch.setattr("strait.launch.local.find_spark_submit", lambda: stand_in)
    write(tmp_path, clusters, dict.fromkeys(names, "main"))
    Admin(clusters.source.client_properties, "a").create([NewTopic(name, 1, 1) for name in names])
    for name in names:
        control.apply(name)
    yield names
    for application in launcher(Spark()).list():
        launcher(Spark()).stop(application.name, grace_seconds=0)


def write(folder: Path, clusters: Any, pools: dict[str, str | None], **settings: Any) -> None:
    """Write the links file: link -> the pool that it names. ``settings``: of the pool."""
    raw = {
        "clusters": {"a": clusters.source.client_properties, "b": clusters.destination.client_properties},
        "pools": {"main": {"slots": 1} | settings},
        "links": {
            name: {"source": "a", "destination": "b", "topics": {"include": [name]}} | ({"pool": pool} if pool else {})
            for name, pool in pools.items()
        },
    }
    (folder / "links.yaml").write_text(yaml.safe_dump(raw))


def running() -> list[Application]:
    return [one for one in launcher(Spark()).list() if one.state.alive]


def spec() -> PoolSpec:
    (found,) = running()
    runs_with = launcher(Spark()).spec(found)
    assert isinstance(runs_with, PoolSpec)
    return runs_with


def beside(*calls: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def due(link: str, store: "Store | None" = None, restart: str = "") -> list[dict[str, Any]]:
    """The applications that a run of the link has to act upon: the boxes of its graph."""
    told = {"reasons": [], "plan": False, "silent": [], "at_ms": 0, "seen": {}}
    found = control.monitor(
        link, [told], Store() if store is None else store, Run(uuid.uuid4().hex, unix_ms()), restart=restart
    )
    assert found.failures == []
    return found.due


def applications(link: str) -> None:
    """Make the applications match the plan, as a run of the link does."""
    for asked in due(link):
        submit(link, asked)


class Store(dict[str, Any]):
    """The state of a link's asset, without Airflow's database."""

    set = dict.__setitem__


@pytest.mark.core
def test_runs_of_all_links_at_the_same_time_submit_one_application(links: list[str]) -> None:
    beside(*[lambda link=link: applications(link) for link in links])  # type: ignore[misc]
    assert [one.name for one in running()] == [NAME]
    assert len(launcher(Spark()).history(NAME)) == 1
    assert sorted(spec().links) == sorted(links)
    assert {placed.link for placed in spec().placement} == set(links)


def test_the_graph_of_whichever_run_comes_first_shows_the_pool_s_application(links: list[str]) -> None:
    first, second, third = links
    (asked,) = due(first)
    assert (asked["name"], asked["because"]) == (NAME, "submit: it was never submitted")
    also = due(second)
    assert submit(first, asked)["line"] == f"{NAME}: submitted: it was never submitted"
    assert submit(second, *also)["line"] == f"{NAME}: updated: other members, placement", "one submission"
    applications(third)
    assert [due(link) for link in links] == [[], [], []]
    (shown,) = _each_application(ConfiguredLink.of(clusters_of(first), first))
    assert (shown["name"], shown["pool"], shown["links"]) == (NAME, "main", sorted(links)), "the page shows its links"

    before = launcher(Spark()).state(NAME)
    assert before is not None
    launcher(Spark()).stop(NAME, grace_seconds=0)
    (asked,) = due(second)
    assert asked["because"].startswith("submit: it ended: ")
    submit(second, asked)
    assert [due(link) for link in links] == [[], [], []]

    (asked,) = due(third, restart="default")
    assert submit(third, asked, restart=asked["restart"])["line"].startswith(f"{NAME}: submitted")
    assert len(launcher(Spark()).history(NAME)) == 3


def test_a_pool_that_exits_too_often_is_held_like_any_application(links: list[str]) -> None:
    first, second, _ = links
    for _ in range(RESTART_LIMIT):
        applications(first)
        launcher(Spark()).stop(NAME, grace_seconds=0)
    for link in (first, second):
        store = Store()
        assert due(link, store) == []
        assert list(Acted.of(store.get(ACTED)).held) == [NAME]


def test_healthy_waits_until_the_pool_runs_the_slots_of_the_link(
    links: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_applications_copy(tmp_path, monkeypatch)
    for link in links[:2]:
        (asked,) = due(link)
        done = submit(link, asked)
        ended = started(link, done)
        assert isinstance(ended, TaskSuccessEvent)
        assert ended.xcoms == {"return_value": f"application {NAME}: each of its slots reports (1)"}
    assert len(launcher(Spark()).history(NAME)) == 1, "the second link has joined it"


RUNS = """#!/bin/sh
# --properties-file P JOB --spec S: a task of a pool without Spark.
PYTHONPATH={path} exec {python} -m support.links.pool_process "$5" 0 ""
"""


def let_applications_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = folder / "running" / "bin" / "spark-submit"
    runs.parent.mkdir(parents=True)
    runs.write_text(RUNS.format(path=":".join(sys.path), python=sys.executable))
    runs.chmod(0o700)
    monkeypatch.setattr("strait.launch.local.find_spark_submit", lambda: runs)


def started(link: str, done: dict[str, Any]) -> TriggerEvent:
    class AfterSubmit(StartTrigger):
        async def of_task(self, task: str, key: str, *, same_index: bool = False) -> Any:
            assert (task, key, same_index) == ("submit", "return_value", True)
            return done

    async def first() -> TriggerEvent:
        return await anext(AfterSubmit(link=link).run())

    return asyncio.run(first())


def test_links_stop_leave_and_join_without_another_submission(links: list[str], tmp_path: Path, clusters: Any) -> None:
    first, second, third = links
    for link in links:
        applications(link)
    (before,) = running()
    set_stopped(ConfiguredLink.of(clusters_of(first), first), stopped=True, by="test", reason="test")
    applications(first)
    assert sorted(spec().links) == sorted((second, third))

    write(tmp_path, clusters, {first: "main", second: None, third: "main"})
    applications(second)
    assert {one.name for one in running()} == {NAME, f"strait-{second}-default"}
    assert [one.id for one in running() if one.name == NAME] == [before.id]
    pool = next(launcher(Spark()).spec(one) for one in running() if one.name == NAME)
    assert pool is not None
    assert list(pool.links) == [third]

    write(tmp_path, clusters, dict.fromkeys(links, "main"))
    applications(second)
    assert [one.id for one in running()] == [before.id]
    assert sorted(spec().links) == sorted((second, third))


def test_a_removed_link_leaves_and_the_last_one_ends_the_application(
    links: list[str], tmp_path: Path, clusters: Any
) -> None:
    first, *_ = links
    for link in links:
        applications(link)
    write(tmp_path, clusters, {first: "main"})
    applications(first)
    assert list(spec().links) == [first]
    set_stopped(ConfiguredLink.of(clusters_of(first), first), stopped=True, by="test", reason="test")
    applications(first)
    assert running() == []


def test_a_standby_of_the_pool_follows_it_and_ends_with_the_setting(
    links: list[str], tmp_path: Path, clusters: Any
) -> None:
    first, second, _ = links
    write(tmp_path, clusters, dict.fromkeys(links, "main"), standby=True)
    assert [one["name"] for one in due(first)] == [NAME, STANDBY]
    applications(first)
    applications(second)
    assert {one.name for one in running()} == {NAME, STANDBY}
    hosted = {one.name: launcher(Spark()).spec(one) for one in running()}
    assert all(isinstance(one, PoolSpec) and sorted(one.links) == sorted((first, second)) for one in hosted.values())
    assert (hosted[NAME].standby, hosted[STANDBY].standby) == (False, True)  # type: ignore[union-attr]
    assert [due(link) for link in (first, second)] == [[], []]

    write(tmp_path, clusters, dict.fromkeys(links, "main"))
    (asked,) = due(second)
    assert (asked["name"], asked["because"]) == (STANDBY, "stop: its pool has no standby or no link")
    submit(second, asked)
    assert {one.name for one in running()} == {NAME}
    assert [due(link) for link in (first, second)] == [[], []]


def test_links_go_over_into_a_pool_under_load_by_one_command(
    links: list[str], tmp_path: Path, clusters: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file without pools: each link's own application ends with the run that has the pool take it up, and nothing is
    lost, copied twice or reordered."""
    let_applications_copy(tmp_path, monkeypatch)
    write(tmp_path, clusters, dict.fromkeys(links))
    path = tmp_path / "links.yaml"
    raw = yaml.safe_load(path.read_text())
    del raw["pools"]
    path.write_text(f"# of last year\n{yaml.safe_dump(raw)}")

    def copied(link: str) -> int:
        return sum(ends(clusters.destination, link, 1))

    def until_all_go_on(what: str) -> None:
        before = {link: copied(link) for link in links}
        eventually(lambda: all(copied(link) > before[link] + 50 for link in links), what=lambda: f"{what}: {before}")

    with writing(clusters.source, dict.fromkeys(links, 1), seed=1, per_second=300):
        for link in links:
            applications(link)
        assert {one.name for one in running()} == {f"strait-{link}-default" for link in links}
        until_all_go_on("each by itself")
        adopted = CliRunner().invoke(app, ["pools", "adopt", "-f", str(path)])
        assert adopted.output.startswith(f"pool main: runs 3 links: {', '.join(sorted(links))}"), adopted.output
        assert path.read_text().startswith("# of last year\n")
        for link in links:
            applications(link)
        assert {one.name for one in running()} == {NAME}
        until_all_go_on("in the pool")
    for link in links:
        eventually(lambda link=link: copied(link) == sum(ends(clusters.source, link, 1)), what=f"all of {link}")
        assert_copied(clusters.source, clusters.destination, link, 1)
