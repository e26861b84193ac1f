"""``make soak ARGS="--pool 20"``: twenty links in two tasks of a pool and one that stands by, of which one after the other is
killed under load. One link more has a source that never responds, and one is broken in the first task. At the end every
record of each link is compared."""

import random
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from strait.config.app_spec import AppSpec
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.reasons import Reason
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.engine_pool import EnginePool
from support.links.load import writing

LINKS, PARTITIONS, TASKS = 20, 2, 2
_PER_SECOND = 500.0
_DEAD = {"bootstrap.servers": "127.0.0.1:1"}

Say = Callable[[str], None]


def pool_rounds(folder: Path, kills: int, seed: int, say: Say) -> None:
    """Start two clusters, and kill that often; see the module."""
    with Cluster(folder / "source") as source, Cluster(folder / "destination") as destination:
        links = make_links(source, destination, folder, LINKS, f"soak{seed}")
        kill_tasks(folder, links, kills, seed, say)


def make_links(source: Cluster, destination: Cluster, folder: Path, count: int, name: str) -> list[EngineLink]:
    """Links with a topic each, planned and ready."""
    links = [
        EngineLink(
            f"{name}-{number}", source, destination, folder, {f"{name}.{number}": PARTITIONS}, slot_memory_bytes=1 << 22
        )
        for number in range(count)
    ]
    topics = [NewTopic(topic, PARTITIONS, 1) for link in links for topic in link.topics]
    for cluster in (source, destination):
        Admin(cluster.client_properties, "it").create(topics)
    for link in links:
        link.make_topics()
        link.publish()
    return links


def kill_tasks(folder: Path, links: Sequence[EngineLink], kills: int, seed: int, say: Say) -> list[float]:
    """Kill a task of the pool that often while all links are written to, and compare every record at the end. The last two
    links are the one whose source is dead and the one that is broken, until the pool starts again without either fault.
    Returns after how many seconds all links copied again, each time."""
    rng = random.Random(seed)
    *good, dead, broken = links
    pool = EnginePool(folder, tasks=TASKS)
    poison = next(iter(broken.topics))
    members: list[EngineLink | AppSpec] = [*good, broken, dead.spec.model_copy(update={"source": _DEAD})]
    pool.host(*members)
    seconds: list[float] = []
    say(f"seed {seed}: {len(links)} links, {kills} kills")
    try:
        tasks = [_start(pool, place, poison) for place in range(2 * TASKS)]
        topics = {topic: count for link in links for topic, count in link.topics.items()}
        with writing(good[0].source, topics, seed=seed, per_second=_PER_SECOND):
            _until_all_copy(good, pool)
            dead.until_waiting(next(iter(dead.topics)), 0, Reason.SOURCE_UNREACHABLE)
            for number in range(kills):
                time.sleep(rng.uniform(0.0, 2.0))
                place = rng.randrange(len(tasks))
                pool.kill(tasks[place])
                began = time.monotonic()
                if rng.random() < 0.5:  # else nobody but the standby, or nobody, until all have been without it
                    tasks[place] = _start(pool, place, poison)
                    _until_all_copy(good, pool)
                else:
                    _until_all_copy(good, pool)
                    tasks[place] = _start(pool, place, poison)
                seconds.append(time.monotonic() - began)
                say(f"kill {number + 1}, task {_name(place)}: all copy after {seconds[-1]:.1f} s")
            assert (dead.copied(), broken.copied()) == (0, 0)
            assert not (ended := [_name(place) for place, task in enumerate(tasks) if task.poll() is not None]), ended
            for task in tasks:
                pool.kill(task)
            pool.host(*links)
            tasks = [_start(pool, place, "") for place in range(2 * TASKS)]
            _until_all_copy(links, pool)
        for link in links:
            link.until_copied(within_seconds=300.0)
        say("comparing")
        for link in links:
            link.assert_equal()
    finally:
        pool.stop()
    say(f"{sum(link.copied() for link in links)} records of {len(links)} links equal; median {median(seconds):.1f} s")
    return seconds


def _start(pool: EnginePool, place: int, poison: str) -> subprocess.Popen[bytes]:
    """The first half of the places are the tasks, the second those of the standby."""
    return pool.start(place % TASKS, poisoned=poison, standby=place >= TASKS)


def _name(place: int) -> str:
    return f"{place % TASKS}{' of the standby' if place >= TASKS else ''}"


def _until_all_copy(links: Sequence[EngineLink], pool: EnginePool) -> None:
    """Until each has copied something that was written after this call."""
    before = [link.written() for link in links]
    eventually(
        lambda: all(link.copied() > written for link, written in zip(links, before, strict=True)),
        what=lambda: f"all copy: {pool.log()[-2000:]}",
    )
