"""Task groups on real brokers: what moves between them, while records keep coming, is copied once and in order."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from confluent_kafka import Producer

from strait.config import naming
from strait.config.links import parse
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.engine import throttle
from strait.engine.slot import run_slot
from strait.model import topic_id_text
from strait.state.codec import encode
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.report_records import PartitionReport
from strait.state.schema import Plan, PlannedTopic
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.topics import alter, produce
from support.links.engine_link import EngineLink
from support.model.reports import plain_report

pytestmark = pytest.mark.broker

MakeControl = Callable[..., Control]
Newest = Callable[[str, int], PartitionReport | None]


@pytest.fixture
def link(make_link: Callable[..., EngineLink], topic_name: str) -> EngineLink:
    """Two topics of three partitions; both sides have them."""
    made = make_link(topics={f"{topic_name}.moving": 3, f"{topic_name}.gold": 1})
    made.make_topics()
    return made


@pytest.fixture
def control(link: EngineLink) -> Iterator[MakeControl]:
    """Make a control plane of the link; ``moving`` is the group of its topic."""
    made: list[Control] = []

    def make(
        groups: dict[str, Any], moving: str = "default", budget: dict[str, Any] | None = None, **settings: Any
    ) -> Control:
        rules = [{"match": ".*gold", "group": "gold"}] if "gold" in groups else []
        rules.append({"match": ".*moving", "group": moving})
        topics = {"include": list(link.topics), "rules": rules, "budget": budget or {}}
        block = {"source": "source", "destination": "destination", "topics": topics, "groups": groups} | settings
        clusters = {"source": link.source.client_properties, "destination": link.destination.client_properties}
        named = {name: dict(properties) for name, properties in clusters.items()}
        made.append(Control(parse({"clusters": named, "links": {link.name: block}}, where="test"), link.name))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def writer(link: EngineLink) -> Iterator[Callable[[], None]]:
    """Writes a little into every partition all the time; called, it ends and has written all."""
    over = threading.Event()
    producer = Producer(link.source.client_properties | {"linger.ms": 5})

    def write() -> None:
        for number in itertools.count():
            if over.is_set():
                return
            for topic, partitions in link.topics.items():
                producer.produce(topic, f"{number}", partition=number % partitions)
            producer.poll(0)
            time.sleep(0.002)

    thread = threading.Thread(target=write)
    thread.start()

    def end() -> None:
        over.set()
        thread.join(60)
        assert producer.flush(60) == 0

    yield end
    over.set()
    thread.join(60)


def groups_of(plans: dict[str, Plan], topic: str) -> set[str]:
    """The groups that copy partitions of the topic."""
    return {
        group
        for group, plan in plans.items()
        for planned in plan.topics
        if planned.source == topic and any(slot is not None for slot in planned.slots)
    }


def until_it_goes_on(link: EngineLink, newest: Newest, topic: str) -> None:
    """Wait until more was copied than now."""
    now = newest(topic, 0)
    position = -1 if now is None else now.position

    def look() -> bool:
        row = newest(topic, 0)
        return row is not None and row.position > position + 100

    eventually(look, what=lambda: f"more copied than {position}: {newest(topic, 0)} {link.log()}")


@pytest.mark.core
def test_a_topic_moves_between_groups_without_a_gap_or_a_double(
    link: EngineLink, control: MakeControl, writer: Callable[[], None]
) -> None:
    groups: dict[str, Any] = {"default": {}, "gold": {}}
    moving, gold = link.topics
    plan = control(groups).apply().plans
    assert {group: plan[group].version for group in plan} == {"default": 1, "gold": 1}
    link.start_slot()
    link.start_slot(group="gold")
    with link.reports() as newest:
        for group in ("gold", "default"):
            outcome = control(groups, moving=group).apply()
            assert groups_of(dict(outcome.plans), moving) == {group}
            assert groups_of(dict(outcome.plans), gold) == {"gold"}
            until_it_goes_on(link, newest, moving)
    writer()
    link.until_copied()
    link.assert_equal()


def test_history_is_copied_in_its_own_lane_and_handed_over_when_it_has_caught_up(
    link: EngineLink, control: MakeControl, writer: Callable[[], None]
) -> None:
    moving, _ = link.topics
    producer = Producer(link.source.client_properties | {"compression.type": "lz4"})
    for number in range(20_000):
        producer.produce(moving, f"history {number}", partition=number % 3)
        producer.poll(0)
    assert producer.flush(60) == 0
    checkpointer = control({"default": {}, "gold": {}, "backfill": {}}, backfill={"behind_records": 2000})
    first = checkpointer.apply()
    assert groups_of(dict(first.plans), moving) == {"backfill"}
    assert not first.plans["backfill"].stopped
    for group in ("default", "gold", "backfill"):
        link.start_slot(group=group)
    last = eventually(
        lambda: groups_of(dict((outcome := checkpointer.apply()).plans), moving) == {"default"} and outcome,
        what=lambda: f"all of it handed over: {link.log()}",
    )
    assert last.plans["backfill"].stopped, "there is nothing left for it to do"
    writer()
    link.until_copied()
    link.assert_equal()


def test_under_a_budget_history_never_delays_what_is_written_now(link: EngineLink, control: MakeControl) -> None:
    """40 kB a second are written beside a backlog. Dealt by partitions, a budget of 60 kB leaves them 15."""
    history, live = link.topics
    producer = Producer(link.source.client_properties | {"linger.ms": 5})
    for number in range(6000):
        producer.produce(history, os.urandom(1000), partition=number % 3)
    assert producer.flush(60) == 0
    groups = {"default": {}, "backfill": {}}
    settings = {"backfill": {"behind_records": 1000}, "budget": {"bytes_per_second": 60_000}}
    plans = control(groups, **settings).apply().plans
    assert (groups_of(dict(plans), history), groups_of(dict(plans), live)) == ({"backfill"}, {"default"})
    for group in groups:
        link.start_slot(group=group)

    def copied() -> int:
        return sum(ends(link.destination, live, link.topics[live]))

    written = 0
    while written < 1200 or copied() == 0:
        producer.produce(live, os.urandom(1000), partition=0)
        producer.poll(0)
        written += 1
        time.sleep(0.025)
    begun, first = copied(), written
    while written < first + 1200:
        producer.produce(live, os.urandom(1000), partition=0)
        producer.poll(0)
        written += 1
        time.sleep(0.025)
    assert copied() - begun > 700, link.log()
    assert 0 < sum(ends(link.destination, history, 3)) < 6000


LANES: dict[str, Any] = {"default": {}, "backfill": {}}


def write_history(link: EngineLink, records: int, size: int = 1000) -> None:
    producer = Producer(link.source.client_properties)
    for number in range(records):
        producer.produce(next(iter(link.topics)), os.urandom(size), partition=number % 3)
    assert producer.flush(60) == 0


def until_live_is_copied(link: EngineLink, records: int) -> None:
    (_, live) = link.topics
    produce(link.source, live, records)
    wanted = sum(ends(link.source, live, 1))
    eventually(lambda: sum(ends(link.destination, live, 1)) == wanted, what=lambda: f"{wanted} copied: {link.log()}")


def hours_ahead(begin: float, end: float) -> dict[str, Any]:
    """A span that begins in so many hours."""
    now = datetime.now(UTC)
    return {
        "hours": [f"{now + timedelta(hours=begin):%H:%M}-{now + timedelta(hours=end):%H:%M}"],
        "timezone": "UTC",
    }


@contextmanager
def in_this_process(link: EngineLink) -> Iterator[None]:
    """A slot of each task group, on the clock of this process."""
    stop = threading.Event()
    slots = [
        threading.Thread(target=run_slot, args=(link.spec.model_copy(update={"group": group}), 0, group, stop.is_set))
        for group in LANES
    ]
    for slot in slots:
        slot.start()
    try:
        yield
    finally:
        stop.set()
        for slot in slots:
            slot.join(60)


@pytest.mark.core
def test_outside_its_hours_history_waits_while_live_topics_do_not_and_at_the_hour_it_continues(
    link: EngineLink, control: MakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, _ = link.topics
    write_history(link, 3000)
    plane = control(LANES, backfill={"behind_records": 1000}, budget={"backfill": hours_ahead(2, 3)})
    assert groups_of(dict(plane.apply().plans), history) == {"backfill"}

    def rows() -> list[tuple[str, str, int]]:
        found = [row for status in plane.statuses() for row in status.partitions if row.topic == history]
        return [(row.state, row.reason, row.lag_records) for row in found]

    with in_this_process(link):
        until_live_is_copied(link, 50)
        waits = ("waiting", "outside_hours")
        eventually(lambda: rows() == [(*waits, 1000)] * 3, what=lambda: f"it waits: {rows()}")
        write_history(link, 300)
        eventually(lambda: rows() == [(*waits, 1100)] * 3, what=lambda: f"its lag is that of now: {rows()}")
        (status,) = (status for status in plane.statuses() if status.group == "backfill")
        assert all(f"continues at {datetime.now(UTC):%Y-}" in row.detail for row in status.partitions)
        assert status.healthy and not status.stuck
        until_live_is_copied(link, 50)
        assert not plane.apply().published, "nothing moves to and fro"
        assert ends(link.destination, history, 3) == [0, 0, 0]
        real = throttle.unix_ms
        monkeypatch.setattr(throttle, "unix_ms", lambda: real() + 2 * 3_600_000 + 60_000)
        link.until_copied()
    link.assert_equal()


def test_a_source_that_is_away_outside_the_hours_is_said_and_forgotten_when_it_is_back(
    make_link: Callable[..., EngineLink], clusters: Any, third: Cluster, topic_name: str
) -> None:
    """Nothing is fetched then, so no answer to a fetch would end the reason."""
    link = make_link(topics={topic_name: 3}, source=third, destination=clusters.destination)
    link.make_topics()
    write_history(link, 3000)
    ends_of = {"source": dict(third.client_properties), "destination": dict(clusters.destination.client_properties)}
    topics = {"include": [topic_name], "budget": {"backfill": hours_ahead(2, 3)}}
    block = {"source": "source", "destination": "destination", "topics": topics, "groups": LANES}
    raw = {"clusters": ends_of, "links": {link.name: block | {"backfill": {"behind_records": 1000}}}}
    with Control(parse(raw, where="test"), link.name) as plane:
        plane.apply()
        link.start_slot(group="backfill")

        def reasons() -> set[str]:
            return {row.reason for status in plane.statuses() for row in status.partitions}

        eventually(lambda: reasons() == {"outside_hours"}, what=lambda: f"it waits: {reasons()} {link.log()}")
        third.stop()
        eventually(lambda: reasons() == {"source_unreachable"}, what=lambda: f"it is said: {reasons()} {link.log()}")
        third.start()
        eventually(lambda: reasons() == {"outside_hours"}, what=lambda: f"it is forgotten: {reasons()} {link.log()}")
        assert ends(link.destination, topic_name, 3) == [0, 0, 0]


def test_the_hours_begin_by_the_clock(link: EngineLink, control: MakeControl) -> None:
    """The next minute but one, at most, in a time zone that is half an hour off."""
    history, _ = link.topics
    write_history(link, 3000, size=100)
    zone = ZoneInfo("Asia/Kolkata")
    begin = (datetime.now(zone) + timedelta(seconds=20)).replace(second=0, microsecond=0) + timedelta(minutes=1)
    hours = {"hours": [f"{begin:%H:%M}-{begin + timedelta(hours=1):%H:%M}"], "timezone": "Asia/Kolkata"}
    control(LANES, backfill={"behind_records": 1000}, budget={"backfill": hours}).apply()
    for group in LANES:
        link.start_slot(group=group)
    while not sum(ends(link.destination, history, 3)):
        until_live_is_copied(link, 1)
    assert datetime.now(zone) >= begin
    link.until_copied()
    link.assert_equal()


def test_the_lanes_budget_is_kept_and_hours_and_budget_are_lifted_live(link: EngineLink, control: MakeControl) -> None:
    """Only the upper bound is held here, as for any budget."""
    history, _ = link.topics
    write_history(link, 8_000)
    late: dict[str, Any] = {"backfill": {"behind_records": 1000}}
    control(LANES, **late, budget={"backfill": {"bytes_per_second": 400_000} | hours_ahead(2, 3)}).apply()
    for group in LANES:
        link.start_slot(group=group)
    until_live_is_copied(link, 500)
    assert sum(ends(link.destination, history, 3)) == 0
    started_at = time.monotonic()
    control(LANES, **late, budget={"backfill": {"bytes_per_second": 400_000}}).apply()
    eventually(lambda: sum(ends(link.destination, history, 3)) > 2_000, what=lambda: f"it goes on: {link.log()}")
    copied = sum(ends(link.destination, history, 3))
    allowed = 400_000 * (time.monotonic() - started_at) * 1.1 + 1_000_000  # one batch for each partition comes at once
    assert copied * 1_000 <= allowed
    assert copied < 8_000, "the budget was never felt: no test"
    until_live_is_copied(link, 500)
    control(LANES, **late).apply()
    link.until_copied()
    link.assert_equal()


def test_slots_are_added_by_what_slots_report(link: EngineLink, control: MakeControl) -> None:
    checkpointer = control({"default": {"max_slots": 3, "slot_bytes_per_second": 90_000}})
    assert checkpointer.apply().plan.slots == 1
    moving, _ = link.topics
    alter(link.destination, naming.reports_topic(link.name), message_timestamp_type="CreateTime")
    producer = Producer(link.destination.client_properties)
    now_ms = int(time.time() * 1000)
    for seconds_ago, end in ((50, 0), (0, 5000)):  # 100 records of 1000 bytes a second in each of two partitions
        items = tuple(
            PartitionReport(
                topic=moving,
                partition=number,
                state="caught_up",
                position=end,
                end=end,
                lag_records=0,
                lag_seconds=0.0,
                records=10,
                bytes=10_000,
            )
            for number in range(2)
        )
        at_ms = now_ms - seconds_ago * 1000
        key, value = encode(plain_report(link=link.name, at_ms=at_ms, partitions=items))
        producer.produce(naming.reports_topic(link.name), key=key, value=value, timestamp=at_ms)
    assert producer.flush(30) == 0
    with control({"default": {"max_slots": 3, "slot_bytes_per_second": 90_000}}) as later:
        outcome = later.apply()
    assert outcome.plan.slots == 3
    busy = next(topic for topic in outcome.plan.topics if topic.source == moving)
    assert busy.slots[0] != busy.slots[1], "the two busy ones have a slot each"


def test_a_plan_of_very_many_partitions_is_published_and_read(link: EngineLink, control: MakeControl) -> None:
    first = control({"default": {}}).apply().plan
    topics = tuple(
        PlannedTopic(
            source=f"topic-{number:06}",
            destination=f"topic-{number:06}",
            source_id=topic_id_text(uuid4().bytes),
            destination_id=topic_id_text(uuid4().bytes),
            slots=(number % 64,) * 4,
        )
        for number in range(25_000)
    )
    plan = first.model_copy(update={"version": 2, "topics": topics, "slots": 64})
    properties = link.destination.client_properties
    with StateReader(properties, "destination", link.name, follow=("plan",)) as state:
        with ControlPublisher(properties, "destination", link.name).exclusive(state) as publication:
            publication.publish([plan])
        state.catch_up(60)
        assert state.plans["default"] == plan
