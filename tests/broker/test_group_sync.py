"""A link's application keeps consumer groups ready to move, as long as it runs and whatever happens meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from strait.consumer_groups.sync import GroupSync, Ours
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, ConsumerGroups, Offsets
from strait.planning.consumer_groups import OffsetState
from strait.state.group_sync_records import GroupSyncReport
from strait.state.link_handle import LinkHandle
from strait.state.reader import StateReader
from strait.state.schema import PlannedGroupSync
from support.fixtures.waiting import eventually
from support.kafka.groups import Reader, commit, committed
from support.links.engine_link import EngineLink
from support.links.group_sync import application

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
YEAR_MS = 365 * 86_400_000


def settings(*, exclude: tuple[str, ...] = (), **others: bool) -> PlannedGroupSync:
    """Every second, of all groups but these."""
    return PlannedGroupSync(include=(".*",), exclude=exclude, interval_seconds=1, **others)


@contextmanager
def reports_of(link: EngineLink) -> Iterator[Callable[[], GroupSyncReport | None]]:
    """The newest one."""
    with StateReader(link.destination.client_properties, "b", link.name, follow=("reports",)) as state:

        def newest() -> GroupSyncReport | None:
            state.catch_up()
            return state.group_sync

        yield newest


def after_more_looks(newest: Callable[[], GroupSyncReport | None], looks: int = 3) -> GroupSyncReport:
    """The report of the last of so many looks that began from now on."""
    seen: set[int] = set()

    def enough() -> bool:
        report = newest()
        if report is not None:
            seen.add(report.at_ms)
        return len(seen) > looks + 1

    eventually(enough, what=lambda: f"{looks} more looks, so far {len(seen)}")
    found = newest()
    assert found is not None
    return found


@pytest.fixture
def link(make_link: MakeLink, topic_name: str) -> EngineLink:
    """It has copied 100 records; all groups but those with "left-out" in their names are synchronized."""
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    write(link, topic_name, 100)
    link.publish(consumer_groups=settings(exclude=(".*left-out.*",)))
    link.start_slot()
    link.until_copied()
    link.until_seen()
    return link


def write(link: EngineLink, topic: str, records: int) -> None:
    producer = Producer(link.source.client_properties)
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0


@pytest.mark.core
def test_a_group_at_work_is_followed_and_reported(link: EngineLink, topic_name: str) -> None:
    group, other = f"{topic_name}-work", f"{topic_name}-left-out"
    commit(link.source, other, {TopicPartition(topic_name, 0): 10})
    with application(link), reports_of(link) as newest:
        reader = Reader(link.source, group, topic_name)
        for read in (30, 30):
            reader.read(read)
            reader.commit()
            until = len(reader.keys)
            eventually(
                lambda until=until: committed(link.destination, group, topic_name) == {0: until},  # type: ignore[misc]
                what="the destination has what was committed on the source",
            )
        reader.read(10)
        reader.leave()
        report = after_more_looks(newest)
    assert committed(link.destination, group, topic_name) == {0: 70}
    assert committed(link.destination, other, topic_name) == {}
    assert report.application == "an-application"
    assert (report.offsets["in_sync"], report.trouble) == (report.in_sync, "")
    assert report.in_sync >= 1


def test_a_group_that_has_moved_is_not_rewound_by_a_restart(link: EngineLink, topic_name: str) -> None:
    group = f"{topic_name}-moved"
    commit(link.source, group, {TopicPartition(topic_name, 0): 50})
    with application(link):
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 50}, what="it is synchronized")
    reader = Reader(link.destination, group, topic_name)
    reader.read(20)
    reader.leave()
    commit(link.destination, group, {TopicPartition(topic_name, 0): 5})  # to read all of it again, on purpose
    commit(link.source, group, {TopicPartition(topic_name, 0): 60})
    with application(link), reports_of(link) as newest:
        assert after_more_looks(newest).offsets["held_moved"] >= 1
    assert committed(link.destination, group, topic_name) == {0: 5}
    link.publish(consumer_groups=settings(include_moved=True))
    with application(link):
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 60}, what="it is, where that is asked")


def test_a_group_that_never_came_goes_back_with_the_source(link: EngineLink, topic_name: str) -> None:
    """Somebody resets it there to consume again; or it is deleted, and begins anew."""
    group, place = f"{topic_name}-reset", TopicPartition(topic_name, 0)
    with application(link):
        for offset in (50, 5, 60):
            commit(link.source, group, {place: offset})
            eventually(
                lambda offset=offset: committed(link.destination, group, topic_name) == {0: offset},  # type: ignore[misc]
                what=f"{offset} on the destination",
            )
        Admin(link.source.client_properties, "a").delete_groups_each([group])
        commit(link.source, group, {place: 7})
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 7}, what="it begins anew")


def test_groups_that_neither_cluster_has_any_more_are_forgotten(link: EngineLink, topic_name: str) -> None:
    groups = [f"{topic_name}-{number}" for number in range(3)]
    ours: Ours = {}
    for group in groups:
        commit(link.source, group, {TopicPartition(topic_name, 0): 50})
    sync = GroupSync(LinkHandle.of_application(link.spec), selected=lambda name: name in groups, ours=ours)
    with sync:
        sync.sync()
        assert sorted(ours) == groups
        Admin(link.source.client_properties, "a").delete_groups_each(groups[:2])
        Admin(link.destination.client_properties, "b").delete_groups_each(groups[:1])
        sync.sync()
        assert sorted(ours) == groups[1:], "what the destination has may begin anew"


def test_an_offset_that_an_operator_set_on_the_destination_stays_until_it_is_taken_over(
    link: EngineLink, topic_name: str
) -> None:
    """Whatever the group does on the source, and when the application begins anew; without a member, as
    `kafka-consumer-groups --reset-offsets` does."""
    group, other = f"{topic_name}-set", f"{topic_name}-never-synchronized"
    place = TopicPartition(topic_name, 0)
    commit(link.source, group, {place: 50})
    with application(link):
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 50}, what="it is synchronized")
    commit(link.destination, group, {place: 5})
    commit(link.destination, other, {place: 5})
    for offset in (60, 70):
        commit(link.source, group, {place: offset})
        commit(link.source, other, {place: offset})
        with application(link), reports_of(link) as newest:
            report = after_more_looks(newest)
        assert committed(link.destination, group, topic_name) == {0: 5}
        assert committed(link.destination, other, topic_name) == {0: 5}
        assert report.offsets["held_own"] >= 2
        assert {group, other} <= {item.group for item in report.out_of_sync}
    with GroupSync(LinkHandle.of_application(link.spec), take_over=True) as sync:
        assert [status.synced for status in sync.sync([group])] == [True]
    commit(link.source, group, {place: 80})
    with application(link):
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 80}, what="it follows again")
        commit(link.source, group, {place: 7})
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 7}, what="back, too")


def test_edits_count_from_the_next_look_on(link: EngineLink, topic_name: str) -> None:
    group = f"{topic_name}-edited"
    place = TopicPartition(topic_name, 0)
    commit(link.source, group, {place: 10})
    with application(link), reports_of(link) as newest:
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 10}, what="it is synchronized")
        link.publish(consumer_groups=settings(exclude=(".*-edited",)))
        after_more_looks(newest)
        commit(link.source, group, {place: 20})
        after_more_looks(newest)
        assert committed(link.destination, group, topic_name) == {0: 10}
        link.publish(consumer_groups=None)
        commit(link.source, group, {place: 30})
        link.publish(consumer_groups=settings())
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 30}, what="it is again")


def test_a_group_deleted_on_the_destination_is_written_again(link: EngineLink, topic_name: str) -> None:
    group = f"{topic_name}-deleted"
    commit(link.source, group, {TopicPartition(topic_name, 0): 10})
    with application(link), reports_of(link) as newest:
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 10}, what="it is synchronized")
        after_more_looks(newest)  # it is remembered now
        client = Admin(link.destination.client_properties, "b")._client
        client.delete_consumer_groups([group])[group].result()
        eventually(lambda: committed(link.destination, group, topic_name) == {0: 10}, what="it is written again")


def test_where_nothing_has_changed_the_destination_is_not_asked(
    link: EngineLink, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where something has, for that group alone."""
    place = TopicPartition(topic_name, 0)
    names = [f"{topic_name}-{number}" for number in range(5)]
    with ConsumerGroups(link.source.client_properties, "a") as groups:
        groups.commit({name: {place: Committed(7, "")} for name in names}, YEAR_MS)
    asked: list[set[str]] = []
    real = ConsumerGroups.committed

    def noted(self: ConsumerGroups, wanted: Iterator[str], **options: bool) -> "dict[str, Offsets | int]":
        wanted = list(wanted)  # type: ignore[assignment]
        if self is sync._destination:
            asked.append({name for name in wanted if name.startswith(topic_name)})
        return real(self, wanted, **options)

    with ConsumerGroups(link.source.client_properties, "a") as groups:
        first, again = groups.committed(names), groups.committed(names)
        assert all(first[name] is again[name] for name in names)  # not even decoded anew
        groups.commit({names[0]: {place: Committed(7, "new")}}, YEAR_MS)
        assert groups.committed(names)[names[0]] == {place: Committed(7, "new")}
    with GroupSync(LinkHandle.of_application(link.spec), selected=lambda name: name in names) as sync:
        assert {status.group: status.committed for status in sync.sync()} == dict.fromkeys(names, 1)
        assert {status.group: status.synced for status in sync.sync()} == dict.fromkeys(names, True)
        monkeypatch.setattr(ConsumerGroups, "committed", noted)
        assert {status.group: status.synced for status in sync.sync()} == dict.fromkeys(names, True)
        assert asked == [set()]
        commit(link.source, names[3], {place: 9})
        asked.clear()
        assert {status.group: status.committed for status in sync.sync()} == dict.fromkeys(names, 0) | {names[3]: 1}
        assert asked == [{names[3]}, {names[3]}]
        assert {item.state for status in sync.sync() for item in status.offsets} == {OffsetState.IN_SYNC}
