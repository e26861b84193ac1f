"""Writers of several links on one producer: what goes wrong in one's callback is that one's alone, and order stays."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from strait.kafka.clients import Watch
from strait.state.schema import Loss
from strait.state.writer import StateProducer, StateWriter

PURGED = KafkaError(KafkaError._PURGE_QUEUE)


class Producer:
    """Keeps what is sent until it is told how that ended."""

    def __init__(self) -> None:
        self.watch = Watch("b")
        self.sent: list[tuple[str, Callable[[Any, Any], None]]] = []
        self.outcomes: list[Any] = []

    def produce(self, topic: str, *, on_delivery: Callable[[Any, Any], None], **_: Any) -> None:
        self.sent.append((topic, on_delivery))

    def poll(self) -> None:
        while self.outcomes:
            _, done = self.sent.pop(0)
            done(self.outcomes.pop(0), None)

    def flush(self, timeout_seconds: float) -> bool:
        return not self.sent


@pytest.fixture
def producer() -> Producer:
    return Producer()


def writer(producer: Producer, link: str) -> StateWriter:
    return StateWriter({}, "b", link, cast(StateProducer, producer))


def loss(link: str, offset: int) -> Loss:
    return Loss(
        link=link, side="source", topic="t", partition=0, cause="deleted", from_offset=offset, to_offset=offset + 1,
        action="continued", detail="", at_ms=1,
    )  # fmt: skip


def test_a_callback_that_fails_is_the_failure_of_its_own_link(producer: Producer) -> None:
    one, other = writer(producer, "one"), writer(producer, "other")
    acked: list[Any] = []

    def fails(_: Any) -> None:
        raise ValueError("a defect")

    one.write_loss(loss("one", 1), fails)
    other.write_loss(loss("other", 1), acked.append)
    producer.outcomes = [None, None]
    other.poll()
    assert acked == [None]
    with pytest.raises(ValueError, match="a defect"):
        one.poll()
    one.poll()


def test_records_that_a_renewed_producer_has_to_send_again_come_before_newer_ones(producer: Producer) -> None:
    one, other = writer(producer, "one"), writer(producer, "other")
    acked: list[int] = []
    for number in range(2):
        one.write_loss(loss("one", number), lambda _, number=number: acked.append(number))  # type: ignore[misc]
    other.write_loss(loss("other", 1), None)
    producer.outcomes = [PURGED, PURGED, None]
    other.poll()
    one.write_loss(loss("one", 2), lambda _: acked.append(2))
    producer.outcomes = [None] * 3
    other.poll()
    assert acked == [0, 1, 2]
