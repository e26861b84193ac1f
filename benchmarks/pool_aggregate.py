"""Mirus' own picture: many sources into one aggregate, by `strait run --pool`, while one source is dead, another has lost
records and a third is behind. Each link has to say of itself, and of no other, what is wrong."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from pool_scene import Scene, proportional_set_size, say
from strait.config.links import load
from strait.control.pausing import pause, resume
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.planning.plan.pauses import Scope
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_same_records, read_all
from support.links.foreground_run import Run
from support.links.load import writing

TOPIC, PARTITIONS = "orders", 4
_PER_SECOND = 100
_DELETED = 200  # records of each partition that the second source loses before they are copied
_BUDGET = 20_000  # bytes per second of the third link: less than is written


class Measured(NamedTuple):
    """``memory_bytes`` and ``share`` of a core: of all processes of the one application."""

    partitions: int
    memory_bytes: int
    share: float
    result: str


class Seen(NamedTuple):
    """What one link says of itself."""

    reasons: frozenset[str]
    lag: int  # records; -1: unknown
    lost: int  # offsets in its loss log


def aggregate(scene: Scene, count: int) -> Measured:
    """Run ``count`` sources (at least four) into the scene's destination."""
    names = [f"eu-{number}" for number in range(count)]
    dead, lossy, behind, *rest = names
    with ExitStack() as opened:
        sources = {name: opened.enter_context(Cluster(scene.folder / name)) for name in names}
        say(f"{count} sources are started")
        for name, source in sources.items():
            Admin(source.client_properties, name).create([NewTopic(TOPIC, PARTITIONS, 1)])
        path = scene.folder / "links.yaml"
        path.write_text(yaml.safe_dump(_links_file(sources, scene.destination, lossy, behind)))
        run = Run(path, scene.folder, "aggregate", "--pool", "main", "--interval", "5")
        opened.callback(run.end)
        with ExitStack() as load_:
            for number, source in enumerate(sources.values()):
                load_.enter_context(writing(source, {TOPIC: PARTITIONS}, seed=number, per_second=_PER_SECOND))
            eventually(
                lambda: all(copied(scene, name) > 100 for name in names),
                what=lambda: f"all copy: {[copied(scene, name) for name in names]} {run.errors.read_text()[-1000:]}",
                within_seconds=300.0,
            )
            say("all are copied; one loses records now, and one is killed")
            lose(path, lossy, sources[lossy], scene)
            sources[dead].kill(1)
            seen = eventually(lambda: told_apart(path, names), what=lambda: f"each its own: {look(path, names)}")
            say("each tells its own trouble")
            eventually(lambda: any(one.name() == "java" for one in run.applications()), what="Spark runs")
            measured = _measured(run, scene.seconds)
            sources[dead].start_broker(1)
        for name in (dead, lossy, *rest):
            _compare(sources[name], scene, name, lost=seen[name].lost)
        applications = {one.name for one in (run.folder / "applications").iterdir() if one.is_dir()}
        if applications != {"strait-pool-main"}:
            raise AssertionError(f"one application expected: {applications}")
    result = (
        f"{dead}: {', '.join(sorted(seen[dead].reasons))}; {lossy}: {seen[lossy].lost} records lost; {behind}: "
        f"{seen[behind].lag} records behind; {len(rest)} others: no reason, no loss, at most "
        f"{max(seen[name].lag for name in rest)} records behind; {count - 1} compared record by record"
    )
    return Measured(count * PARTITIONS, *measured, result)


def told_apart(path: Path, names: list[str]) -> Mapping[str, Seen]:
    """What each link says, once each says what is true of it and of no other; nothing before."""
    seen = look(path, names)
    dead, lossy, behind, *rest = (seen[name] for name in names)
    right = (
        dead.reasons == {Reason.SOURCE_UNREACHABLE}
        and dead.lost == 0
        and (lossy.lost, lossy.reasons) == (_DELETED * PARTITIONS, frozenset())
        and behind.lag > _PER_SECOND * 5
        and behind.lost == 0
        and all(not one.reasons and not one.lost and 0 <= one.lag < _PER_SECOND * 5 for one in rest)
    )
    return seen if right else {}


def look(path: Path, names: list[str]) -> Mapping[str, Seen]:
    """As `strait status` and `strait losses` show it."""
    file, found = load(path), {}
    for name in names:
        link = f"{name}-to-all"
        with Control(file, link) as control:
            rows = [row for status in control.statuses() for row in status.partitions]
        with ConfiguredLink.of(file, link).state("losses") as state:
            state.catch_up()
            losses = state.losses
        lags = [row.lag_records for row in rows]
        found[name] = Seen(
            frozenset(row.reason for row in rows if row.reason and row.reason != Reason.THROTTLED),
            -1 if not lags or min(lags) < 0 else sum(lags),
            sum(loss.to_offset - loss.from_offset for loss in losses),
        )
    return found


def lose(path: Path, name: str, source: Cluster, scene: Scene) -> None:
    """Have the source delete records that the link has not copied: it is paused meanwhile."""
    link = ConfiguredLink.of(load(path), f"{name}-to-all")
    pause(link, Scope(), by="benchmark", reason="records are deleted meanwhile")
    eventually(lambda: stands_still(scene, name), what="it is paused")
    before = copied_each(scene, name)
    eventually(
        lambda: all(
            end > begin + 2 * _DELETED for end, begin in zip(ends(source, TOPIC, PARTITIONS), before, strict=True)
        ),
        what="records that are not copied",
    )
    first = [TopicPartition(TOPIC, number, begin + _DELETED) for number, begin in enumerate(before)]
    admin = AdminClient(source.client_properties)  # kept: a client that is collected never completes its futures
    for future in admin.delete_records(first).values():
        future.result(60)
    resume(link, Scope())


def stands_still(scene: Scene, name: str) -> bool:
    before = copied(scene, name)
    time.sleep(3.0)
    return copied(scene, name) == before


def copied(scene: Scene, name: str) -> int:
    """Records of one source on the destination."""
    return sum(copied_each(scene, name))


def copied_each(scene: Scene, name: str) -> list[int]:
    """By partition."""
    topic = f"{name}.{TOPIC}"
    if topic not in Admin(scene.destination.client_properties, "all").partition_counts():
        return [0] * PARTITIONS
    return list(ends(scene.destination, topic, PARTITIONS))


def _links_file(sources: Mapping[str, Cluster], destination: Cluster, lossy: str, behind: str) -> dict[str, Any]:
    def topics(name: str) -> dict[str, Any]:
        rules = [{"match": ".*", "on_loss": "continue"}] if name == lossy else []
        budget = {"bytes_per_second": _BUDGET} if name == behind else {}
        return {"include": [TOPIC], "rules": rules, "budget": budget}

    return {
        "clusters": {name: dict(one.client_properties) for name, one in {**sources, "all": destination}.items()},
        "pools": {"main": {"slots": 1, "default": True}},
        "links": {
            f"{name}-to-all": {
                "source": name,
                "destination": "all",
                "topics": topics(name),
                "naming": {"policy": "alias"},
            }
            for name in sources
        },
    }


def _measured(run: Run, seconds: float) -> tuple[int, float]:
    def cpu_seconds() -> dict[int, float]:
        return {one.pid: sum(one.cpu_times()[:2]) for one in run.applications()}

    before = cpu_seconds()
    time.sleep(seconds)
    spent = sum(after - before.get(pid, 0.0) for pid, after in cpu_seconds().items())
    return sum(proportional_set_size(one.pid) for one in run.applications()), spent / seconds


def _compare(source: Cluster, scene: Scene, name: str, *, lost: int) -> None:
    """Compare each record that the source still holds with its copy."""
    eventually(
        lambda: copied(scene, name) == sum(ends(source, TOPIC, PARTITIONS)) - lost,
        what=lambda: f"all of {name}: {copied(scene, name)} of {sum(ends(source, TOPIC, PARTITIONS)) - lost}",
        within_seconds=300.0,
    )
    held, copies = read_all(source, TOPIC, PARTITIONS), read_all(scene.destination, f"{name}.{TOPIC}", PARTITIONS)
    assert_same_records(held, [some[len(some) - len(ours) :] for ours, some in zip(held, copies, strict=True)])
