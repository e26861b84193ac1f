"""The order in which records reach the client, whatever it rejects."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from strait.state.codec import encode_key, run_key
from strait.state.writer import StateWriter
from support.model.reports import plain_run


class Client:
    """Librdkafka's, without a cluster: notes the keys of all records, and rejects the first."""

    def __init__(self) -> None:
        self.given: list[bytes] = []
        self.is_full = False

    def produce(self, _: str, *, key: bytes, **__: Any) -> None:
        if self.is_full:
            raise BufferError
        self.given.append(key)
        if len(self.given) == 1:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

    def poll(self, _: float) -> None: ...


def test_what_is_written_because_a_record_was_rejected_follows_the_others_and_each_is_sent_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, runs = Client(), [plain_run(partition=number) for number in range(3)]
    monkeypatch.setattr("strait.kafka.verified.make_producer", lambda *_, **__: client)
    writer = StateWriter({}, "b", "l")
    client.is_full = True
    writer.write_run(runs[0], lambda error: writer.write_run(runs[2]) if error else None)
    writer.write_run(runs[1])
    assert client.given == []
    client.is_full = False
    writer.poll()
    writer.poll()
    assert client.given == [encode_key(run_key(run)) for run in runs]


def test_a_rejected_record_is_reported_later_than_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller may be in the middle of work that the failure must undo."""
    monkeypatch.setattr("strait.kafka.verified.make_producer", lambda *_, **__: Client())
    writer, told = StateWriter({}, "b", "l"), []
    writer.write_run(plain_run(), told.append)
    assert told == []
    writer.poll()
    assert [str(error) for error in told] and None not in told
    assert len(told) == 1
