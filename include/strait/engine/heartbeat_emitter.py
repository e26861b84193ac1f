"""Writes the link's heartbeats to the source, from the slot that copies them, and reports their state."""

from collections.abc import Callable
from math import isfinite

from confluent_kafka import KafkaError, KafkaException, Producer

from strait.config.app_spec import AppSpec
from strait.engine.partition.partition import Partition
from strait.errors import StraitError
from strait.kafka.clients import Rotation, Watch, make_producer
from strait.state.heartbeats import Heartbeat, beating
from strait.state.schema import HeartbeatReport, Plan, PlannedHeartbeat

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
        self._watch = Watch(spec.source_name)
        self._rotation = Rotation(spec.source)
        self._producer: Producer | None = None
        self._plan: PlannedHeartbeat | None = None
        self._due_at = 0.0
        self._waiting = False
        self._written_at_ms = -1
        self._trouble = ""

    def follow(self, plan: Plan) -> None:
        """Apply the plan's heartbeat settings."""
        self._plan = beating(plan, self._slot)
        if self._plan is None:
            self._producer = None

    def beat(self, now: float, now_ms: int) -> None:
        """Write a heartbeat if it is due; call this often. ``now``: monotonic seconds."""
        if self._producer is not None:
            self._producer.poll(0)
        if self._plan is None or now < self._due_at or self._waiting:
            return
        self._due_at = now + self._plan.interval_seconds
        try:
            self._write(self._plan, now_ms)
        except StraitError as error:  # certificates are being replaced; the next beat tries again
            self._trouble = str(error)

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
        if self._producer is not None:
            self._producer.purge()

    def _write(self, plan: PlannedHeartbeat, now_ms: int) -> None:
        beat = Heartbeat(plan.source, plan.target, now_ms)
        if self._producer is None or self._rotation.due():
            self._producer = self._make_producer()
            self._rotation.done()
        try:
            self._producer.produce(
                plan.topic,
                key=beat.key(),
                value=beat.value(),
                partition=0,
                timestamp=now_ms,
                on_delivery=lambda error, _: self._done(error, now_ms),
            )
        except KafkaException as error:
            raise self._watch.translate(error, f"writing to {plan.topic}") from error
        self._waiting = True

    def _make_producer(self) -> Producer:
        return make_producer(
            self._properties,
            self._watch,
            client_id="strait-heartbeats",
            linger_ms=0,
            message_timeout_ms=_GIVEN_UP_MS,
            request_timeout_ms=_GIVEN_UP_MS,
        )

    def _done(self, error: KafkaError | None, at_ms: int) -> None:
        self._waiting = False
        if error is None:
            self._written_at_ms, self._trouble = at_ms, ""
            self._watch.forget()
        else:
            self._trouble = str(self._watch.translate(error, "writing a heartbeat"))
