"""A producer whose connection was lost, or whose secrets were replaced, sends nothing before the expected cluster has
answered its successor, and then everything, in order."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from strait.config.client_properties import CLUSTER_ID
from strait.errors import ConfigError
from strait.kafka import verified
from strait.kafka.clients import Watch
from strait.state.codec import encode_key, run_key
from strait.state.writer import StateProducer, StateWriter
from support.fixtures.waiting import eventually
from support.model.reports import plain_run

MINE, FOREIGN = "mine", "foreign"
LOST = "[thrd:b:9092/1]: b:9092/1: Disconnected: connection closed by peer (after 7ms in state UP)"
RUNS = [plain_run(partition=number) for number in range(4)]
KEYS = [encode_key(run_key(run)) for run in RUNS]


class Client:
    """Librdkafka's: keeps what it is given until the test acknowledges it, or it is purged."""

    def __init__(self, cluster: str | None, watch: Watch) -> None:
        self.cluster = cluster
        self.watch = watch
        self.queue: list[tuple[bytes, Any]] = []
        self.news: list[Callable[[], None]] = []
        self.is_closed = False

    def list_topics(self, _: str, timeout: float) -> Any:
        if self.cluster is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(cluster_id=self.cluster)

    def produce(self, _: str, *, key: bytes, on_delivery: Any, **__: Any) -> None:
        self.queue.append((key, on_delivery))

    def purge(self, blocking: bool = True) -> None:
        self.end(KafkaError(KafkaError._PURGE_INFLIGHT))

    def end(self, error: KafkaError | None) -> list[bytes]:
        queue, self.queue = self.queue, []
        self.news += [lambda done=done: done(error, None) for _, done in queue]  # type: ignore[misc]
        return [key for key, _ in queue]

    def poll(self, _: float) -> None:
        while self.news:
            self.news.pop(0)()

    def flush(self, _: float) -> int:
        self.poll(0)
        return len(self)

    def close(self) -> None:
        self.is_closed = True

    def __len__(self) -> int:
        return len(self.queue) + len(self.news)


class World:
    """``answers``: the cluster that answers a new client; None: none does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]) -> None:
        self.answers: str | None = MINE
        self.sent: list[bytes] = []
        self.clients: list[Client] = []
        self.problem: Exception | None = None
        self.settings: list[dict[str, Any]] = []
        monkeypatch.setattr(verified, "make_producer", self._make)
        self.producer = StateProducer(properties, "b")
        self.writer = StateWriter(properties, "b", "l", self.producer)
        self.acked: list[Any] = []

    def _make(self, _: Any, watch: Any, **settings: Any) -> Client:
        if self.problem is not None:
            raise self.problem
        self.settings.append(settings)
        self.clients.append(Client(self.answers, watch))
        return self.clients[-1]

    def write(self, *numbers: int) -> None:
        for number in numbers:
            self.writer.write_run(RUNS[number], self.acked.append)

    def lose(self, text: str = LOST) -> None:
        """A connection of the newest client, as the next poll learns."""
        client = self.clients[-1]
        client.news.append(lambda: client.watch.log(6, "%s [%s] %s", "FAIL", "producer-1", text))

    def until(self, condition: Callable[[], bool], *, acknowledging: bool = False) -> None:
        def met() -> bool:
            self.writer.poll()
            for client in self.clients if acknowledging else ():
                if client.cluster == MINE:
                    self.sent += client.end(None)
            return condition()

        eventually(met, what="it")

    def until_sent(self, *numbers: int) -> None:
        self.until(lambda: len(self.acked) >= len(numbers), acknowledging=True)
        assert self.sent == [KEYS[number] for number in numbers] and self.acked == [None] * len(numbers)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch, {CLUSTER_ID: MINE})


@pytest.mark.parametrize("wrong", [FOREIGN, None])
def test_nothing_goes_to_another_cluster_and_nothing_is_lost(world: World, wrong: str | None) -> None:
    world.write(0, 1)
    world.answers = wrong
    world.lose()
    world.writer.poll()
    world.write(2)
    world.until(lambda: len(world.clients) >= 3)  # two that do not help
    assert world.acked == [] and not any(client.queue for client in world.clients)
    assert not world.writer.flush(0.0), "the slot's end does not wait for longer than it may"
    world.answers = MINE
    world.write(3)
    world.until_sent(0, 1, 2, 3)
    eventually(lambda: all(client.is_closed for client in world.clients[:-1]), what="their ends")


def test_without_an_expected_cluster_librdkafka_reconnects_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, {})
    world.lose()
    world.writer.poll()
    world.write(0)
    world.until_sent(0)
    assert len(world.clients) == 1 and "log_connection_close" not in world.settings[0]


@pytest.mark.parametrize(
    "text",
    [
        "b:9092/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)",
        "b:9092/2: Failed to resolve 'b:9092': Name or service not known (after 1ms in state CONNECT)",
        "ssl://b:9092/2: Connection setup timed out in state SSL_HANDSHAKE (after 5000ms in state SSL_HANDSHAKE)",
    ],
)
def test_a_broker_that_is_down_costs_the_others_nothing(world: World, text: str) -> None:
    world.lose(text)
    world.writer.poll()
    world.write(0)
    world.until_sent(0)
    assert len(world.clients) == 1


@pytest.mark.parametrize("properties", [{}, {CLUSTER_ID: MINE}], ids=["any cluster", "one cluster"])
@pytest.mark.parametrize("answers", [True, False], ids=["in time", "never"])
def test_replaced_secrets_cost_no_wait_no_record_and_no_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, properties: dict[str, str], answers: bool
) -> None:
    """``answers``: the brokers acknowledge what is in flight."""
    monkeypatch.setattr(verified, "_FAREWELL_SECONDS", 60.0 if answers else 0.0)
    secret = tmp_path / "password"
    secret.write_text("first")
    world = World(monkeypatch, {**properties, "sasl.password": f"${{directory:{tmp_path}:password}}"})
    world.write(0)
    secret.write_text("second one")
    world.problem = ConfigError("b", ["the key is not replaced yet"])
    world.until(lambda: bool(world.producer.trouble))
    world.write(1)
    assert len(world.clients[0].queue) == 2, "the present one goes on"
    world.problem = None
    world.until(lambda: not world.producer.is_open or (len(world.clients[-1].queue) == 2 and len(world.clients) == 2))
    world.write(2)
    assert len(world.clients[0].queue) == (2 if answers else 0), "its successor sends it"
    if answers:
        world.sent += world.clients[0].end(None)
        world.until(lambda: world.producer.is_open)
    world.write(3)
    world.until_sent(0, 1, 2, 3)
    assert len(world.clients) == 2


def test_the_end_of_a_slot_waits_for_a_successor(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write(0)
    world.lose()

    def acknowledged(client: Client, _: float) -> int:
        if client is not world.clients[0]:
            world.sent += client.end(None)
        client.poll(0)
        return len(client)

    monkeypatch.setattr(Client, "flush", acknowledged)
    assert world.writer.flush(30.0)
    assert world.sent == [KEYS[0]] and world.acked == [None]


def test_records_wait_for_the_cluster_to_be_identified(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, {})
    for properties, wanted in (({}, True), ({CLUSTER_ID: MINE}, False)):
        producer = verified.VerifiedProducer(properties, "b", {}, identified=False)
        assert producer.is_open is wanted
        if not wanted:
            with pytest.raises(BufferError):
                producer.produce("t", key=b"", on_delivery=None)

        def is_open(producer: verified.VerifiedProducer = producer) -> bool:
            producer.poll()
            return producer.is_open

        eventually(is_open, what="the answer")
    assert len(world.clients) == 4
