"""Topics that differ are repaired on real brokers: compared record by record, groups and the link go on in them."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from strait.config.cluster import Cluster
from strait.control.link_status import link_groups
from strait.control.pausing import set_stopped
from strait.control.repair import copying
from strait.control.repair.carrying_out import repair
from strait.control.repair.plan import repair_plan
from strait.errors import ConfigError, StateError
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.wire.records import Record
from support.fixtures.waiting import eventually
from support.kafka.groups import commit, committed
from support.kafka.log_ends import ends
from support.kafka.records import read_all
from support.kafka.rot import rot_in
from support.kafka.topics import delete, delete_before
from support.links.auditing import planned_between
from support.links.mesh import Mesh

pytestmark = pytest.mark.broker

LINK = ("a", "b")
MakeLink = Callable[..., Mesh]


@pytest.fixture
def make_link(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[MakeLink]:
    made: list[Mesh] = []

    def make(*, rule: dict[str, Any] | None = None, **configs: str) -> Mesh:
        both = {"a": clusters.source, "b": clusters.destination}
        link = Mesh(clusters=both, links=[LINK], topic=topic_name, folder=tmp_path, rule=rule or {})
        made.append(link)
        Admin(clusters.source.client_properties, "a").create([NewTopic(topic_name, 2, 1, configs)])
        link.start(LINK)
        link.until_ready(LINK)
        return link

    yield make
    for link in made:
        link.stop()


def fill(link: Mesh, records: int, *, keys: int = 0) -> None:
    producer = Producer(link.clusters["a"].client_properties | {"linger.ms": 20, "batch.num.messages": 50})
    for number in range(records):
        key = b"%d" % (number % keys if keys else number)
        producer.produce(link.topic, b"value %d" % number, key, number % 2, headers=[("n", b"%d" % number)])
        producer.poll(0)
    assert producer.flush(60) == 0


def at_rest(link: Mesh) -> None:
    eventually(
        lambda: all(row.state == "caught_up" for row in link_groups(link.handle(LINK)).rows), what="all is copied"
    )
    set_stopped(link.handle(LINK), stopped=True, by="a test")
    eventually(
        lambda: all(slot.silent for group in link_groups(link.handle(LINK)).groups for slot in group.slots),
        what="no slot reports",
        within_seconds=60,
    )


def audited(link: Mesh, folder: Path) -> Any:
    found = planned_between(link.clusters["a"], link.clusters["b"], link.name(LINK))()
    found.write(folder)
    return found


def contents(link: Mesh, cluster: str, topic: str) -> list[list[Any]]:
    rows = read_all(link.clusters[cluster], topic, 2)
    return [[(one.key, one.value, one.headers, one.timestamp) for one in part] for part in rows]


def damaged(link: Mesh, topic: str) -> list[list[Any]]:
    """Copy 2,000 records, of which some are deleted on the source, and a batch of the copy is damaged. Return them all."""
    fill(link, 2000)
    at_rest(link)
    a, b = link.clusters["a"], link.clusters["b"]
    original = contents(link, "a", topic)
    commit(b, f"{topic}-g", {TopicPartition(topic, 0): 120, TopicPartition(topic, 1): 700})
    delete_before(a, topic, {0: 333})
    rot_in(b.directory, topic, 1, random.Random(7), lambda batch: batch.size - 20).flip()
    return original


def test_a_damaged_topic_is_copied_again_and_link_and_groups_go_on_in_it(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    """Some of its records are on the old copy alone."""
    link = make_link()
    a, b = link.clusters["a"], link.clusters["b"]
    original = damaged(link, topic_name)
    found = audited(link, tmp_path / "audit")
    assert found.body["verdict"] == "different"

    plan = repair_plan(tmp_path / "audit")
    assert [(one.topic, one.way, one.into) for one in plan.topics] == [(topic_name, "copy", f"{topic_name}.repaired")]
    told: list[str] = []
    (done,) = repair(link.handle(LINK), plan, told.append)
    assert (done.records, done.groups, done.groups_left) == (2000, {f"{topic_name}-g": 2}, {}), told
    assert contents(link, "b", done.into) == original
    with pytest.raises(ConfigError, match="exists already"):
        repair(link.handle(LINK), plan, told.append)

    new = read_all(b, done.into, 2)
    offsets = committed(b, f"{topic_name}-g", done.into)
    for partition, old in ((0, 120), (1, 700)):
        at = offsets[partition]
        assert next(one.key for one in new[partition] if one.offset >= at) == original[partition][old][0]

    link.rule = {"naming": {"policy": "suffix", "suffix": ".repaired"}}
    (tmp_path / f"{link.name(LINK)}.json").unlink()  # `start` applies the settings, and writes the spec again
    link.restart(LINK)
    fill(link, 100)
    eventually(lambda: sum(map(len, read_all(b, done.into, 2))) >= 2100, what="the link goes on in it")
    at_rest(link)
    now = contents(link, "b", done.into)
    assert [part[:1000] for part in now] == original
    assert [part[1000:] for part in now] == [part[-50:] for part in contents(link, "a", topic_name)]
    again = planned_between(a, b, link.name(LINK))()
    assert again.unexplained == {}, again.differences
    assert again.body["verdict"] in ("equal", "explained", "incomplete"), again.body


def test_a_repair_publishes_nothing_if_the_source_deletes_records_before_they_are_read(
    make_link: MakeLink, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are deleted while earlier ones are read from the old copy, which has them all; run again, it reads them there."""
    link = make_link()
    a, b, into = link.clusters["a"], link.clusters["b"], f"{topic_name}.repaired"
    original = damaged(link, topic_name)
    audited(link, tmp_path / "audit")
    plain = copying.records

    def slow(cluster: Cluster, place: TopicPartition, first: int, end: int, **options: Any) -> Iterator[Record]:
        yield from plain(cluster, place, first, end, **options)
        if place == (topic_name, 0) and end == 333:
            delete_before(a, topic_name, {0: 500})

    monkeypatch.setattr(copying, "records", slow)
    plan = repair_plan(tmp_path / "audit")
    with pytest.raises(StateError, match=f"{topic_name}-0: .* the offsets 333 to 499 were deleted"):
        repair(link.handle(LINK), plan, lambda _: None)
    with link.handle(LINK).state("map") as state:
        state.catch_up()
        assert {run.destination for runs in state.runs.values() for run in runs} == {topic_name}
    assert committed(b, f"{topic_name}-g", into) == {}
    delete(b, into)
    (done,) = repair(link.handle(LINK), plan, lambda _: None)
    assert (done.records, done.groups, done.groups_left) == (2000, {f"{topic_name}-g": 2}, {})
    assert contents(link, "b", into) == original


def test_groups_get_the_equivalents_of_the_offsets_that_they_commit_during_a_repair(
    make_link: MakeLink, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the source has deleted the records before them once they are copied."""
    link = make_link()
    a, b = link.clusters["a"], link.clusters["b"]
    original = damaged(link, topic_name)
    audited(link, tmp_path / "audit")
    offsets = {f"{topic_name}-g": {0: 700, 1: 710}, f"{topic_name}-new": {0: 40, 1: 1000}}
    plain = copying.settled_end

    def meanwhile(admin: Admin, place: TopicPartition) -> int:
        if place.partition == 1:
            for group, of_group in offsets.items():
                commit(b, group, {TopicPartition(topic_name, number): at for number, at in of_group.items()})
            delete_before(a, topic_name, {0: 900, 1: 900})
        return plain(admin, place)

    monkeypatch.setattr(copying, "settled_end", meanwhile)
    (done,) = repair(link.handle(LINK), repair_plan(tmp_path / "audit"), lambda _: None)
    assert (done.records, done.groups, done.groups_left) == (2000, dict.fromkeys(offsets, 2), {})
    new = read_all(b, done.into, 2)
    for group, of_group in offsets.items():
        found = committed(b, group, done.into)
        for number, old in of_group.items():
            following = [one.key for one in new[number] if one.offset >= found[number]]
            assert following == [row[0] for row in original[number][old:]]


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_what_others_may_write_is_not_overwritten(
    policy: str, make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(rule={"on_foreign": "expect"}, **{"cleanup.policy": policy})
    fill(link, 400, keys=50)
    at_rest(link)
    b = link.clusters["b"]
    theirs = Producer(b.client_properties)
    theirs.produce(topic_name, b"newer", b"4", 0)
    assert theirs.flush(30) == 0
    rot_in(b.directory, topic_name, 1, random.Random(7), lambda batch: batch.size - 20).flip()
    assert audited(link, tmp_path / "audit").body["verdict"] == "different"
    before = ends(b, topic_name, 2)
    with pytest.raises(ConfigError, match="other producers may write there"):
        repair(link.handle(LINK), repair_plan(tmp_path / "audit"), lambda _: None)
    assert ends(b, topic_name, 2) == before
    assert f"{topic_name}.repaired" not in Admin(b.client_properties, "b").observe(lambda _: True).topics


def test_the_newest_value_of_each_key_that_differs_is_appended_to_a_compacted_topic(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(**{"cleanup.policy": "compact"})
    fill(link, 400, keys=50)
    at_rest(link)
    foreign = Producer(link.clusters["b"].client_properties)
    for key, value in ((b"4", b"wrong"), (b"6", None), (b"nowhere", b"extra")):
        foreign.produce(topic_name, value, key, 0)
    assert foreign.flush(30) == 0
    found = audited(link, tmp_path / "audit")
    assert found.body["verdict"] == "different"
    plan = repair_plan(tmp_path / "audit")
    assert [(one.way, one.into) for one in plan.topics] == [("append", topic_name)]
    told: list[str] = []
    (done,) = repair(link.handle(LINK), plan, told.append)
    assert done.records == 3, told
    assert newest(contents(link, "b", topic_name)) == newest(contents(link, "a", topic_name))
    (again,) = repair(link.handle(LINK), plan, told.append)
    assert again.records == 0, "run again, it changes nothing"

    link.restart(LINK)
    fill(link, 100, keys=50)
    at_rest(link)
    assert newest(contents(link, "b", topic_name)) == newest(contents(link, "a", topic_name))


def newest(parts: list[list[Any]]) -> list[dict[bytes, Any]]:
    """Of each key that is not deleted its newest record."""
    found = [{row[0]: row[1:] for row in part} for part in parts]
    return [{key: row for key, row in part.items() if row[0] is not None} for part in found]


KILLS = 7


def dying(link: Mesh, folder: Path, step: int) -> "subprocess.CompletedProcess[str]":
    """A repair that is killed at this step."""
    file = folder / "links.yaml"
    file.write_text(yaml.safe_dump(link.contents))
    words = ["-m", "support.links.repair_process", str(file), link.name(LINK), str(folder / "audit"), str(step)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def killed_at(link: Mesh, folder: Path, after: Callable[[], None], steps: int) -> int:
    """Kill a repair at seeded steps, spread over so many, until none is left to die at. Return how often it was killed."""
    chance, kills = random.Random(11), 0
    for step in (chance.randrange(steps * number // KILLS, steps * (number + 1) // KILLS) for number in range(KILLS)):
        ended = dying(link, folder, step)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr[-3000:]
        kills += 1
        after()
    return kills


def test_a_repair_that_is_killed_again_and_again_is_run_again_and_nothing_is_twice_or_lost(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    """Its operator deletes what it has left, as its error says."""
    link = make_link()
    b, into = link.clusters["b"], f"{topic_name}.repaired"
    original = damaged(link, topic_name)
    audited(link, tmp_path / "audit")

    def delete_what_is_left() -> None:
        if into in Admin(b.client_properties, "b").observe(into.__eq__).topics:
            with pytest.raises(ConfigError, match="delete it if an interrupted repair left it"):
                repair(link.handle(LINK), repair_plan(tmp_path / "audit"), lambda _: None)
            delete(b, into)

    assert killed_at(link, tmp_path, delete_what_is_left, 42) == KILLS
    (done,) = repair(link.handle(LINK), repair_plan(tmp_path / "audit"), lambda _: None)
    assert (done.records, done.groups, done.groups_left) == (2000, {f"{topic_name}-g": 2}, {})
    assert contents(link, "b", into) == original

    link.rule = {"naming": {"policy": "suffix", "suffix": ".repaired"}}
    (tmp_path / f"{link.name(LINK)}.json").unlink()
    link.restart(LINK)
    fill(link, 100)
    at_rest(link)
    now = contents(link, "b", into)
    assert [part[:1000] for part in now] == original
    assert [part[1000:] for part in now] == [part[-50:] for part in contents(link, "a", topic_name)]


def test_values_that_a_killed_repair_appended_are_not_appended_again(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(**{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0", "segment.ms": "604800000"})
    keys = 2500
    fill(link, keys, keys=keys)
    at_rest(link)
    foreign = Producer(link.clusters["b"].client_properties)
    for number in range(0, keys, 2):
        foreign.produce(topic_name, b"wrong", b"%d" % number, 0)
    assert foreign.flush(30) == 0
    audited(link, tmp_path / "audit")
    before = sum(map(len, contents(link, "b", topic_name)))
    killed = killed_at(link, tmp_path, lambda: None, 21)
    assert killed >= 3
    repair(link.handle(LINK), repair_plan(tmp_path / "audit"), lambda _: None)
    assert newest(contents(link, "b", topic_name)) == newest(contents(link, "a", topic_name))
    assert sum(map(len, contents(link, "b", topic_name))) == before + keys // 2, "each value once"
    link.restart(LINK)
    fill(link, 100, keys=keys)
    at_rest(link)
    assert newest(contents(link, "b", topic_name)) == newest(contents(link, "a", topic_name))


def test_a_link_at_work_and_a_damaged_source_are_not_repaired(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link()
    fill(link, 1000)
    eventually(
        lambda: all(row.state == "caught_up" for row in link_groups(link.handle(LINK)).rows), what="all is copied"
    )
    rot = rot_in(link.clusters["a"].directory, topic_name, 1, random.Random(7), lambda batch: batch.size - 20)
    rot.flip()
    audited(link, tmp_path / "audit")
    plan = repair_plan(tmp_path / "audit")
    with pytest.raises(ConfigError, match="not stopped"):
        repair(link.handle(LINK), plan, lambda _: None)
    at_rest(link)
    with pytest.raises(StateError, match="is damaged, so its records cannot be copied"):
        repair(link.handle(LINK), plan, lambda _: None)
