"""Links that share a task: each copies its own, and what happens to one is not felt by the others."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from strait.reasons import Reason
from strait.state.reader import StateReader
from strait.state.view import Kind
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.engine_pool import EnginePool, newest_reports, status
from support.links.load import writing
from support.security.secured import Secured, link_between, produce, set_scram_password

pytestmark = [pytest.mark.broker]

MakeLink = Callable[..., EngineLink]
STATE: tuple[Kind, ...] = ("plan", "map", "reports")
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
    for link in links:
        with StateReader(link.destination.client_properties, "destination", link.name, follow=STATE) as state:
            state.catch_up()
            told = {row.topic for parts in state.reports.values() for report in parts for row in report.partitions}
            mapped = {topic for topic, _ in state.runs}
            planned = {topic.source for plan in state.plans.values() for topic in plan.topics}
        assert told == planned == link.topics.keys()
        assert mapped <= link.topics.keys(), "nothing of another link is in its topics"


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

        def told() -> bool:
            """It reports for a moment each time that it is started again."""
            found = status(poisoned)
            reasons = {row.detail for row in found.partitions}
            return found.slots[0].silent and reasons == {"slot 0 failed and is started again: ValueError: poisoned"}

        eventually(told, what=lambda: f"its status has the reason: {status(poisoned)}")
        assert not status(good).slots[0].failure
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


def test_a_standby_takes_over_all_links_of_a_killed_pool_and_steps_back(
    make_links: Callable[[int], list[EngineLink]], pool: EnginePool, clusters: Any
) -> None:
    """In the same process again and again: Spark runs a task anew only when all have ended."""
    *links, late = make_links(5)
    pool.host(*links)
    first, standby = pool.start(), pool.start(standby=True)

    def alone(process: Any) -> bool:
        return all(link.reporters() == {process.pid} for link in links)

    with ExitStack() as load:
        for number, link in enumerate([*links, late]):
            load.enter_context(writing(clusters.source, link.topics, seed=number, per_second=100))
        eventually(lambda: alone(first), what=lambda: f"only the first copies: {pool.log()}")
        for _ in range(2):
            before = [link.copied() for link in links]
            pool.kill(first)
            eventually(lambda: alone(standby), what=lambda: f"the standby copies all: {pool.log()}")
            eventually(
                lambda before=before: all(
                    link.copied() > copied + 50 for link, copied in zip(links, before, strict=True)
                ),
                what=lambda: f"all go on: {pool.log()}",
            )
            if late not in links:
                links.append(late)
                pool.host(*links)
                eventually(lambda: late.copied() > 50, what=lambda: f"one that comes meanwhile, too: {pool.log()}")
            first = pool.start()
            eventually(lambda first=first: alone(first), what=lambda: f"the standby steps back: {pool.log()}")
            assert standby.poll() is None
    until_all_copied(links)
    for link in links:
        link.assert_equal()


def test_a_standby_takes_over_a_link_whose_slot_alone_is_broken(
    make_links: Callable[[int], list[EngineLink]], pool: EnginePool, clusters: Any
) -> None:
    good, poisoned = links = make_links(2)
    pool.host(*links)
    first = pool.start(poisoned=next(iter(poisoned.topics)))
    eventually(lambda: good.reporters() == {first.pid}, what=lambda: f"it copies: {pool.log()}")
    standby = pool.start(standby=True)
    with ExitStack() as load:
        for number, link in enumerate(links):
            load.enter_context(writing(clusters.source, link.topics, seed=number, per_second=100))
        eventually(lambda: poisoned.copied() > 100, what=lambda: f"the standby copies it: {pool.log()}")
        assert good.reporters() == {first.pid}, "the other slot stays where it is"
        assert standby.poll() is None
    until_all_copied(links)
    for link in links:
        link.assert_equal()


def test_a_password_that_is_refused_stops_its_link_alone_until_it_is_rotated(
    secured: Secured, tmp_path: Path, topic_name: str
) -> None:
    mechanism, user, password = "SCRAM-SHA-256", "rotating", tmp_path / "password"

    def on_brokers(text: str) -> None:
        for cluster in (secured.source, secured.destination):
            set_scram_password(cluster, user, text, mechanism)

    password.write_text("first")
    on_brokers("first")
    own = {"sasl.username": user, "sasl.password": f"${{directory:{tmp_path}:password}}"}
    source, destination = (secured.sasl(one, mechanism) | own for one in (secured.source, secured.destination))
    rotating = link_between(secured, tmp_path, f"{topic_name}-rotating", source, destination)
    (tmp_path / "other").mkdir()
    source, destination = (secured.sasl(one, "PLAIN") for one in (secured.source, secured.destination))
    other = link_between(secured, tmp_path / "other", f"{topic_name}-other", source, destination)
    links = rotating, other
    pool = EnginePool(tmp_path)
    for link in links:
        link.publish()
    pool.host(*links)
    task = pool.start()
    try:
        for link in links:
            produce(link, next(iter(link.topics)), 500)
            link.until_copied()
        on_brokers("second")
        secured.restart()
        for link in links:
            produce(link, next(iter(link.topics)), 500)
        other.until_copied()
        assert rotating.copied() == 500
        password.write_text("second")
        rotating.until_copied()
        assert task.poll() is None
    finally:
        pool.stop()
    for link in links:
        link.assert_equal()
