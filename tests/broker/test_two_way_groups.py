"""Groups move to and fro between two clusters that copy the same topic to each other: nothing is skipped, and what is
read again is what was said."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import permutations
from typing import Any

import pytest

from strait.config.app_spec import AppSpec
from strait.consumer_groups.sync import GroupSync
from strait.embedded.kafka import Cluster
from strait.model import TopicPartition
from strait.planning.consumer_groups import GroupStatus, OffsetState
from strait.state.translation import Fit
from support.fixtures.waiting import eventually
from support.kafka.groups import Reader, commit, committed
from support.kafka.records import read_all
from support.kafka.transactions import Transactions
from support.links.group_sync import application_of
from support.links.mesh import Mesh

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def clusters(own_clusters: Any) -> Any:
    """A link whose plans cannot be read may write to any topic of its cluster, and other tests leave such links."""
    return own_clusters


MakeMesh = Callable[..., Mesh]
THERE, BACK = ("a", "b"), ("b", "a")
DECIDED = {Fit.EXACT, Fit.OVERLAP}


def sync_of(mesh: Mesh, link: tuple[str, str], **settings: bool) -> GroupSync:
    return GroupSync(mesh.handle(link), **settings)


def until_decided(sync: GroupSync, group: str) -> GroupStatus:
    """Write, until the links have reported all that the group has consumed."""
    found: list[GroupStatus] = []

    def decided() -> bool:
        found[:] = sync.sync([group])
        return all(item.fit in DECIDED for item in found[0].offsets)

    eventually(decided, what=lambda: f"its offsets are decided: {found}")
    return found[0]


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.core), 2])
def test_a_group_moves_there_and_back_while_both_sides_write(make_mesh: MakeMesh, topic_name: str, seed: int) -> None:
    rng = random.Random(seed)
    mesh = make_mesh(links=[THERE, BACK])
    group = f"{topic_name}-group"
    for link in (THERE, BACK):
        mesh.start(link)
    seen: set[bytes] = set()

    def stint(cluster: str, records: int) -> int:
        """How many of these it had read before."""
        reader = Reader(mesh.clusters[cluster], group, topic_name)
        reader.read(records)
        reader.leave()
        again = sum(value in seen for value in reader.values)
        seen.update(reader.values)
        return again

    with mesh.writing(rounds=10, records=120, pause_seconds=0.3):
        stint("a", rng.randint(200, 600))
        told = until_decided(sync_of(mesh, THERE), group)
        assert told.rereads is not None
        assert stint("b", rng.randint(100, 500)) <= told.rereads
        until_decided(sync_of(mesh, BACK, include_moved=True), group)
        stint("a", rng.randint(50, 300))
    mesh.until_everywhere()
    until_decided(sync_of(mesh, THERE, include_moved=True), group)
    begins = committed(mesh.clusters["b"], group, topic_name)
    logs = read_all(mesh.clusters["b"], topic_name, mesh.partitions)
    left = [record.value for number, log in enumerate(logs) for record in log[begins.get(number, 0) :]]
    stint("b", len(left))
    assert len(seen) == sum(mesh.born.values())


def test_each_offset_is_that_of_the_first_record_not_seen(make_mesh: MakeMesh, topic_name: str) -> None:
    """Compared with both logs, with transactions and aborted records on both sides, links that are killed, and links
    that stand still for a while, so that each side has runs of its own records."""
    rng = random.Random(5)
    mesh = make_mesh(links=[THERE, BACK], partitions=1)
    writers = [Transactions(mesh.clusters[name], f"{topic_name}-{name}", topic_name, 1) for name in "ab"]
    for turn in range(5):
        running = [link for link in (THERE, BACK) if not turn or rng.random() < 0.8]
        for link in running:
            mesh.start(link)
        for _ in range(12):
            transactions = rng.choice(writers)
            transactions.begin()
            transactions.write(rng.randint(1, 5))
            transactions.end(rng.random() < 0.7)
            time.sleep(rng.choice((0.0, 0.1)))
        for link in running:
            mesh.kill(link)
    for link in (THERE, BACK):
        mesh.start(link)
    counted: dict[str, int] = {}
    looked: list[object] = []

    def compare(link: tuple[str, str]) -> bool:
        here, there = (read_all(mesh.clusters[name], topic_name, 1)[0] for name in link)
        looked[:] = len(here), len(there)
        if {record.key for record in here} != {record.key for record in there}:
            return False
        place = TopicPartition(topic_name, 0)
        with sync_of(mesh, link) as sync:
            asked = [(place, offset) for offset in range(here[-1].offset + 2)]
            found = sync._two_way.resolved(sync._offsets.to_destination(asked))
        looked[:] = [item for item in found if item.fit not in {*DECIDED, Fit.BEFORE_START}]
        if looked:
            return False
        counted.clear()
        for item in found:
            seen = {record.key for record in here if record.offset < item.offset}
            assert item.to_offset is not None
            assert not [record for record in there if record.offset < item.to_offset and record.key not in seen], item
            again = [record for record in there if record.offset >= item.to_offset and record.key in seen]
            assert len(again) == item.rereads or item.fit == Fit.BEFORE_START, item
            counted[item.fit] = counted.get(item.fit, 0) + 1
        return True

    for link in (THERE, BACK):
        eventually(partial(compare, link), what=lambda: f"all is copied: {looked[:9]} {mesh.log()}")
        assert counted[Fit.EXACT] > 0 < counted[Fit.OVERLAP], counted


@contextmanager
def applications(mesh: Mesh) -> Iterator[None]:
    """What the drivers of both links do beside copying."""
    there, back = (AppSpec.read(mesh.folder / f"{mesh.name(link)}.json") for link in (THERE, BACK))
    with application_of(there), application_of(back):
        yield


def test_the_applications_keep_a_group_ready_on_the_other_side(make_mesh: MakeMesh, topic_name: str) -> None:
    mesh = make_mesh(links=[THERE, BACK])
    group = f"{topic_name}-kept"
    for link in (THERE, BACK):
        mesh.start(link)
    with applications(mesh):
        with mesh.writing(rounds=4, records=50, pause_seconds=0.3):
            reader = Reader(mesh.clusters["a"], group, topic_name)
            reader.read(100)
        mesh.until_everywhere()
        reader.read(300)
        reader.commit()
        ends = {0: 200, 1: 200}
        eventually(lambda: committed(mesh.clusters["b"], group, topic_name) == ends, what="it is ready at the end")
    assert sync_of(mesh, THERE).status([group])[0].synced


def test_records_that_only_a_third_link_carries_hold_the_offsets_back(
    make_mesh: MakeMesh, topic_name: str, clusters: object, third: Cluster
) -> None:
    """In a full mesh a record takes one step: neither of the two links says what of the third cluster was seen."""
    mesh = make_mesh(links=[THERE, BACK])
    group = f"{topic_name}-held"
    for link in (THERE, BACK):
        mesh.start(link)
    mesh.write("a", 20)
    mesh.until_everywhere()
    commit(mesh.clusters["a"], group, {TopicPartition(topic_name, 0): 5})
    assert until_decided(sync_of(mesh, THERE), group).offsets[0].to_offset == 5
    full = make_mesh(clusters={**mesh.clusters, "c": third}, links=list(permutations("abc", 2)))
    full.start(("c", "a"))
    (status,) = sync_of(mesh, THERE).sync([group])
    assert [(item.state, item.to_offset) for item in status.offsets] == [(OffsetState.HELD_SHARED, None)]
    assert f"link {full.name(('c', 'a'))} writes to {topic_name} too" in status.offsets[0].detail


def test_without_a_link_back_the_offsets_are_held_back(make_mesh: MakeMesh, topic_name: str) -> None:
    mesh = make_mesh(links=[THERE])
    group = f"{topic_name}-alone"
    mesh.start(THERE)
    mesh.write("a", 20)
    mesh.until_everywhere()
    commit(mesh.clusters["a"], group, {TopicPartition(topic_name, 0): 5})
    (status,) = sync_of(mesh, THERE).sync([group])
    assert [item.state for item in status.offsets] == [OffsetState.HELD_SHARED]
    assert "no link is known to replicate" in status.offsets[0].detail
