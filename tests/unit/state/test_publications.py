"""One publication, with a producer that keeps what it is given: nothing unreadable is written, and its time is its own."""

import time
from typing import Any, cast

import pytest

from strait.config import naming
from strait.errors import StateError
from strait.kafka.clients import Watch
from strait.state.codec import decode
from strait.state.publisher import Publication
from strait.state.schema import Budget, Plan
from strait.state.signing import Keys
from support.model.reports import plain_run


class Producer:
    """Takes ``room`` records before its queue is full; a poll empties it."""

    def __init__(self, room: int = 100) -> None:
        self.calls: list[str] = []
        self.records: list[tuple[str, bytes, bytes]] = []
        self.room = self._free = room

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def commit_transaction(self, _: float) -> None:
        self.calls.append("commit")

    def abort_transaction(self, _: float) -> None:
        self.calls.append("abort")

    def produce(self, topic: str, *, key: bytes, value: bytes, **_: Any) -> None:
        if not self._free:
            raise BufferError
        self._free -= 1
        self.records.append((topic, key, value))

    def poll(self, wait: float) -> None:
        if wait:
            self._free = self.room


class Reader:
    """Finds every plan that was published."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.plans: dict[str, Plan] = {}
        self.proofs: dict[str, Any] = {}

    def catch_up(self, _: float) -> None:
        topic = naming.plan_topic("l")
        written = [decode(Plan, key, value) for name, key, value in self._producer.records if name == topic]
        self.plans = {plan.group: plan for plan in written}


def publication(producer: Producer, seconds: float = 30.0) -> Publication:
    client, reader = cast(Any, producer), cast(Any, Reader(producer))
    return Publication(client, Watch("b"), reader, "l", Keys([]), time.monotonic() + seconds)


def plan(**fields: Any) -> Plan:
    return Plan(link="l", group="default", version=1, producer_id=7, slots=1, published_at_ms=0, **fields)


def test_a_plan_that_none_can_read_is_not_written() -> None:
    """Its successors could not be written either: each is based on the plan before it."""
    budget = Budget(bytes_per_second=1, slot_shares=(1.0,)).model_copy(update={"slot_shares": (1.0000000000000002,)})
    producer = Producer()
    with pytest.raises(StateError, match=r"^link l: publishing plan 1 of group default: .*slot_shares") as caught:
        publication(producer).publish([plan(), plan(budgets=(budget,))], [plain_run()])
    assert "\n" not in str(caught.value)
    assert not producer.calls
    assert not producer.records


def test_a_plan_is_written_with_its_first_runs_in_one_transaction() -> None:
    producer = Producer()
    publication(producer).publish([plan()], [plain_run()])
    assert producer.calls == ["begin", "commit"]
    assert [topic for topic, _, _ in producer.records] == [naming.map_topic("l"), naming.plan_topic("l")]


def test_deciding_takes_nothing_from_the_time_to_publish() -> None:
    """The queue of librdkafka holds 100,000 records: a first plan may have more partitions than that."""
    producer = Producer(room=3)
    overdue = publication(producer, seconds=-1.0)
    overdue.publish([plan()], [plain_run(partition=number) for number in range(10)])
    assert producer.calls == ["begin", "commit"]
    assert len(producer.records) == 11
