"""Writes the link's heartbeats to the source, from the slot that copies them, and reports their state."""

from collections.abc import Callable
from math import isfinite

from confluent_kafka import KafkaError, KafkaException

from strait.config.app_spec import AppSpec
from strait.engine.partition.partition import Partition
from strait.errors import StraitError
from strait.kafka.verified import PURGED, VerifiedProducer
from strait.state.heartbeats import Heartbeat, beating
from strait.state.report_records import HeartbeatReport
from strait.state.schema import Plan, PlannedHeartbeat

_GIVEN_UP_MS = 5_000  # a later heartbeat shows nothing that the next one does not


class HeartbeatEmitter:
    """Writes the heartbeats of one slot. Never blocks, and nothing depends on it: a failure is only reported. Not
    thread-safe.

    At most one heartbeat is in flight to the source, so that an unreachable source does not get a burst of old ones
    afterwards.
    """

    def __init__(self, spec: AppSpec, slot: int) -> None:
        self._slot = slot
        self._properties = spec.source
        self._source = spec.source_name
        self._producer: VerifiedProducer | None = None
        self._plan: PlannedHeartbeat | None = None
        self._due_at = 0.0
        self._waiting = False
        self._written_at_ms = -1
        self._trouble = ""

    def follow(self, plan: Plan) -> None:
        """Apply the plan's heartbeat settings."""
        self._plan = beating(plan, self._slot)
        if self._plan is None:
            self._disconnect()

    def beat(self, now: float, now_ms: int) -> None:
        """Write a heartbeat if it is due; call this often. ``now``: monotonic seconds."""
        if self._producer is not None:
            self._producer.poll()
            self._trouble = self._producer.trouble or self._trouble
        if self._plan is None or now < self._due_at or self._waiting:
            return
        try:
            producer = self._producer = self._producer or self._make_producer()
            if producer.is_open:
                self._due_at = now + self._plan.interval_seconds
                self._write(producer, self._plan, now_ms)
        except StraitError as error:  # certificates are being replaced; the next beat tries again
            self._due_at, self._trouble = now + self._plan.interval_seconds, str(error)

    def report(self, copied: Callable[[str, int], Partition | None], now: float, now_ms: int) -> HeartbeatReport | None:
        """Return the state of the heartbeats; None if this slot writes none. ``copied``: returns a partition by topic
        and number.

        The latency of the newest one needs no check of each batch: a partition keeps the timestamp of its last
        acknowledged record, and the time of that acknowledgement.
        """
        plan = self._plan
        if plan is None:
            return None
        arrived_ms, latency_ms = -1, None
        first = copied(plan.topic, 0)
        if first is not None and first.totals.last_timestamp_ms >= 0:
            arrived_ms = first.totals.last_timestamp_ms
            if isfinite(first.queue.last_ack_at):
                latency_ms = max(0.0, round(now_ms - (now - first.queue.last_ack_at) * 1000 - arrived_ms, 3))
        return HeartbeatReport(
            written_at_ms=self._written_at_ms, arrived_ms=arrived_ms, latency_ms=latency_ms, trouble=self._trouble
        )

    def close(self) -> None:
        """Stop writing. A heartbeat in flight is not waited for."""
        self._plan = None
        self._disconnect()

    def _disconnect(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer, self._waiting = None, False

    def _write(self, producer: VerifiedProducer, plan: PlannedHeartbeat, now_ms: int) -> None:
        beat = Heartbeat(plan.source, plan.target, now_ms)
        try:
            producer.produce(
                plan.topic,
                key=beat.key(),
                value=beat.value(),
                partition=0,
                timestamp=now_ms,
                on_delivery=lambda error, _: self._done(producer, error, now_ms),
            )
        except KafkaException as error:
            raise producer.watch.translate(error, f"writing to {plan.topic}") from error
        self._waiting = True

    def _make_producer(self) -> VerifiedProducer:
        settings = {
            "client_id": "strait-heartbeats",
            "linger_ms": 0,
            "message_timeout_ms": _GIVEN_UP_MS,
            "request_timeout_ms": _GIVEN_UP_MS,
        }
        return VerifiedProducer(self._properties, self._source, settings, identified=False)

    def _done(self, producer: VerifiedProducer, error: KafkaError | None, at_ms: int) -> None:
        if producer is not self._producer:
            return  # its records were discarded
        self._waiting = False
        if error is None:
            self._written_at_ms, self._trouble = at_ms, ""
            producer.watch.forget()
        elif error.code() not in PURGED:  # else the next heartbeat is written instead
            self._trouble = str(producer.watch.translate(error, "writing a heartbeat"))
