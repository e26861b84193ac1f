"""What slots write: reports, which may be lost, and runs of the map, which may not."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from confluent_kafka import KafkaError, Message

from strait import naming
from strait.errors import StraitError
from strait.kafka.clients import Watch, make_producer
from strait.state.codec import encode
from strait.state.schema import Report, Run

OnAck = Callable[[StraitError | None], None]

RECORD_BYTES = 8 << 20
"""Largest record of a state topic; the topics are created with this `max.message.bytes`."""

_QUEUE_KIB = 16 << 10  # what waits for a slow destination counts towards a slot's memory
_SEND_TIMEOUT_MS = 30_000


class _Pending(NamedTuple):
    topic: str
    key: bytes
    value: bytes
    on_ack: OnAck | None


class StateWriter:
    """Writes a slot's records without ever blocking it. Not thread-safe.

    One request is in flight at a time, so nothing overtakes: the last run written under a key is the one that stays.
    That gives order without a producer id of its own, which could become invalid and would have to be renewed. A
    record that arrives twice changes nothing.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str, link: str) -> None:
        self._map_topic = naming.map_topic(link)
        self._reports_topic = naming.reports_topic(link)
        self._watch = Watch(cluster)
        self._waiting_runs: deque[_Pending] = deque()
        self.dropped_reports = 0
        """Reports not written because the destination did not keep up, or refused them."""
        self._producer = make_producer(
            properties,
            self._watch,
            client_id="strait-state",
            compression_type="zstd",
            message_max_bytes=RECORD_BYTES,
            max_in_flight=1,
            linger_ms=2,
            message_timeout_ms=_SEND_TIMEOUT_MS,
            queue_buffering_max_kbytes=_QUEUE_KIB,
        )

    def write_report(self, report: Report) -> None:
        """Send a report, or drop and count it where too much waits already."""
        key, value = encode(report)
        if not self._send(_Pending(self._reports_topic, key, value, self._count_if_dropped)):
            self.dropped_reports += 1

    def write_run(self, run: Run, on_ack: OnAck | None = None) -> None:
        """Send a run; ``on_ack`` gets None once every in-sync replica has it, or why it was not written.

        ``on_ack`` is called from `poll` or `flush`, never from here. A run is not dropped for lack of room: it waits.
        """
        key, value = encode(run)
        self._waiting_runs.append(_Pending(self._map_topic, key, value, on_ack))
        self._send_waiting_runs()

    def poll(self) -> None:
        """Call what waits for acknowledgements; call it often."""
        self._producer.poll(0)
        self._send_waiting_runs()

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until all is acknowledged or refused; return whether nothing is left."""
        self._send_waiting_runs()
        left = self._producer.flush(timeout_seconds)
        return left == 0 and not self._waiting_runs

    def _send_waiting_runs(self) -> None:
        while self._waiting_runs and self._send(self._waiting_runs[0]):
            self._waiting_runs.popleft()

    def _send(self, record: _Pending) -> bool:
        try:
            self._producer.produce(
                record.topic, key=record.key, value=record.value, partition=0, on_delivery=partial(self._done, record)
            )
        except BufferError:
            return False
        return True

    def _done(self, record: _Pending, error: KafkaError | None, _: Message) -> None:
        if record.on_ack is not None:
            record.on_ack(None if error is None else self._watch.translate(error, f"writing to {record.topic}"))

    def _count_if_dropped(self, error: StraitError | None) -> None:
        self.dropped_reports += error is not None
