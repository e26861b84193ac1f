"""Links that share a task: each copies its own, and what happens to one is not felt by the others."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from strait.reasons import Reason
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.engine_pool import EnginePool, newest_reports, status
from support.links.load import writing

pytestmark = [pytest.mark.broker]

MakeLink = Callable[..., EngineLink]
DEAD = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[EnginePool]:
    one = EnginePool(tmp_path)
    yield one
    one.stop()


@pytest.fixture
def make_links(make_link: MakeLink, clusters: Any, topic_name: str) -> Callable[[int], list[EngineLink]]:
    """Make links with a topic each, planned and ready."""

    def make(count: int) -> list[EngineLink]:
        links = [
            make_link(source=clusters.source, destination=clusters.destination, topics={f"{topic_name}-{number}": 2})
            for number in range(count)
        ]
        for link in links:
            link.make_topics()
            link.publish()
        return links

    return make


def until_all_copied(links: list[EngineLink]) -> None:
    for link in links:
        link.until_copied()


def test_links_of_one_task_copy_beside_one_another(
    make_links: Callable[[int], list[EngineLink]], pool: EnginePool, clusters: Any
) -> None:
    links = make_links(3)
    pool.host(*links)
    task = pool.start()
    with ExitStack() as load:
        for number, link in enumerate(links):
            load.enter_context(writing(clusters.source, link.topics, seed=number, per_second=100))
        eventually(lambda: all(link.copied() > 100 for link in links), what=lambda: f"all copy: {pool.log()}")
    until_all_copied(links)
    for link in links:
        link.assert_equal()
    eventually(lambda: len(newest_reports(links)) == 3, what="a report of each link")
    reports = newest_reports(links)
    assert {report.pid for report in reports.values()} == {task.pid}
    process_memory = [report.memory_bytes for report in reports.values()]
    assert sum(process_memory) < 2 * max(process_memory) * 3, "each tells its part of the process's memory"


def test_links_come_stop_start_and_go_while_the_others_go_on(
    make_links: Callable[[int], list[EngineLink]], pool: EnginePool, clusters: Any
) -> None:
    first, second, third = links = make_links(3)
    pool.host(first, second)
    pool.start()
    with ExitStack() as load:
        for number, link in enumerate(links):
            load.enter_context(writing(clusters.source, link.topics, seed=number, per_second=100))
        eventually(lambda: first.copied() > 50 and second.copied() > 50, what=lambda: f"two copy: {pool.log()}")
        pool.host(first, second, third)
        eventually(lambda: third.copied() > 50, what=lambda: f"the third copies, too: {pool.log()}")

        second.publish(stopped=True)
        eventually(lambda: "second" if not second.reporters() else "", what="the second is stopped")
        at = second.copied()
        before = first.copied()
        eventually(lambda: first.copied() > before + 100, what="the first goes on")
        assert second.copied() == at
        second.publish()
        eventually(lambda: second.copied() > at, what=lambda: f"the second goes on: {pool.log()}")

        began = newest_reports([second])[second.name].started_at_ms
        pool.host(first, second.spec.model_copy(update={"ledger_seconds": 60}), third)
        eventually(
            lambda: newest_reports([second])[second.name].started_at_ms > began, what="it starts with other settings"
        )
        at = second.copied()
        eventually(lambda: second.copied() > at + 50, what=lambda: f"it goes on: {pool.log()}")
        pool.host(first, second)
        eventually(lambda: not third.reporters(), what="the third has left")
        gone = third.copied()
        before = first.copied()
        eventually(lambda: first.copied() > before + 100, what="the first goes on")
        assert third.copied() == gone
        pool.host(*links)
    until_all_copied(links)
    for link in links:
        link.assert_equal()
    assert newest_reports([first])[first.name].recoveries == 2, (
        "each of its partitions was looked up once, at the start"
    )


def test_a_dead_source_and_a_defect_are_their_own_links_trouble(
    make_links: Callable[[int], list[EngineLink]], pool: EnginePool, clusters: Any
) -> None:
    good, poisoned, dead = links = make_links(3)
    for link in links:
        with writing(clusters.source, link.topics, seed=1, per_second=1000):
            eventually(lambda link=link: link.written() > 500, what="records")
    pool.host(good, poisoned, dead.spec.model_copy(update={"source": DEAD}))
    task = pool.start(poisoned=next(iter(poisoned.topics)))
    with writing(clusters.source, good.topics, seed=2, per_second=200):
        eventually(lambda: pool.log().count("failed and is started again") >= 2, what="it fails, and again")
        dead.until_waiting(next(iter(dead.topics)), 0, Reason.SOURCE_UNREACHABLE)
        before = good.copied()
        eventually(lambda: good.copied() > before + 200, what="the good one goes on")
        eventually(
            lambda: (
                {row.detail for row in status(poisoned).partitions}
                == {"slot 0 failed and is started again: ValueError: poisoned"}
            ),
            what=lambda: f"its status has the reason: {status(poisoned)}",
        )
        assert status(poisoned).slots[0].silent and not status(good).slots[0].failure
    good.until_copied()
    good.assert_equal()
    assert (poisoned.copied(), dead.copied()) == (0, 0)
    assert f"slot {poisoned.name}/default/0 failed and is started again in 1 s: poisoned" in pool.log()
    assert newest_reports([good])[good.name].recoveries == 2
    assert task.poll() is None

    pool.kill(task)
    pool.host(*links)
    pool.start()
    until_all_copied(links)
    for link in links:
        link.assert_equal()


def test_a_killed_task_loses_and_doubles_nothing_of_any_link(
    make_links: Callable[[int], list[EngineLink]], pool: EnginePool, clusters: Any
) -> None:
    links = make_links(6)
    pool.tasks = 2
    pool.host(*links)
    tasks = [pool.start(task) for task in range(2)]
    with ExitStack() as load:
        for number, link in enumerate(links):
            load.enter_context(writing(clusters.source, link.topics, seed=number, per_second=200))
        for turn in range(6):
            before = [link.copied() for link in links]
            eventually(
                lambda before=before: all(
                    link.copied() > copied + 50 for link, copied in zip(links, before, strict=True)
                ),
                what=lambda: f"all copy: {pool.log()}",
            )
            pool.kill(tasks[turn % 2])
            tasks[turn % 2] = pool.start(turn % 2)
    until_all_copied(links)
    for link in links:
        link.assert_equal()


def test_two_tasks_that_host_the_same_slots_do_no_harm(
    make_links: Callable[[int], list[EngineLink]], pool: EnginePool, clusters: Any
) -> None:
    links = make_links(2)
    pool.host(*links)
    tasks = [pool.start(), pool.start()]
    with ExitStack() as load:
        for number, link in enumerate(links):
            load.enter_context(writing(clusters.source, link.topics, seed=number, per_second=200))
        eventually(lambda: all(link.copied() > 500 for link in links), what=lambda: f"both copy: {pool.log()}")
        tasks[0].send_signal(signal.SIGSTOP)
        before = [link.copied() for link in links]
        eventually(
            lambda: all(link.copied() > copied + 200 for link, copied in zip(links, before, strict=True)),
            what="the other goes on",
        )
        tasks[0].send_signal(signal.SIGCONT)
    until_all_copied(links)
    for link in links:
        link.assert_equal()
