"""Detection of another running instance of an application by its reports. Used for standby only, never for safety: two
instances that run at the same time do no harm."""

import logging
import time
from typing import Self

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from strait.config import naming
from strait.config.app_spec import AppSpec
from strait.config.topic_names import STATE_PREFIX
from strait.errors import ConfigError, StraitError
from strait.kafka.clients import STATE_ANSWER_MS, Rotation, Watch, make_consumer
from strait.kafka.translate import unreadable
from strait.state.other_instance import OtherInstance

log = logging.getLogger(__name__)

SILENT_SECONDS = 2.0
"""A slot reports once a second."""
_FETCH_WAIT_MS = 100
_ASK_SECONDS = 1.0
"""A leader answers the requests of a connection in order, so a request waits for the fetch before it, which must end
soon."""
_COMPLAINT_SECONDS = 60.0
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001


class Presence:
    """Follows the other instance's reports from its creation on. Not thread-safe."""

    def __init__(self, spec: AppSpec, other: OtherInstance) -> None:
        self._other = other
        self._place = TopicPartition(naming.reports_topic(spec.link), 0)
        self._next = -1  # offset of the first report not read yet; -1: unknown
        self._spec = spec
        self._watch = Watch(spec.destination_name)
        self._complain_at = 0.0
        self._rotation = Rotation(spec.destination)
        self._consumer = self._make()

    @classmethod
    def of_slot(cls, spec: AppSpec, slot: int, application: str) -> Self:
        """Detect another instance of this slot."""
        return cls(spec, OtherInstance.of_slot(spec.group, slot, application, SILENT_SECONDS, time.monotonic()))

    @classmethod
    def of_group_sync(cls, spec: AppSpec, application: str, silent_seconds: float) -> Self:
        """Detect another instance that synchronizes consumer groups."""
        return cls(spec, OtherInstance.of_group_sync(spec, application, silent_seconds, time.monotonic()))

    def listen(self, timeout_seconds: float = 0.0) -> None:
        """Read the new reports; wait for the first one for ``timeout_seconds`` at most."""
        if self._rotation.due():
            self._renew()
        message = self._consumer.poll(timeout_seconds)
        while message is not None:
            self._take(message)
            message = self._consumer.poll(0)

    def is_gone(self) -> bool:
        """Return whether the other instance has not reported for too long, and the broker confirms that."""
        if self._other.needs_end(time.monotonic()):
            try:
                _, end = self._consumer.get_watermark_offsets(self._place, timeout=_ASK_SECONDS, cached=False)
            except KafkaException as exception:
                self._other.unknown(time.monotonic())
                self._complain(self._watch.translate(exception, f"looking up the end of {self._place.topic}"))
                return False
            self._other.ends_at(int(end))
        return self._other.is_gone(time.monotonic(), self._next)

    def is_back(self) -> bool:
        """Return whether the other instance has reported for 5 s without a pause."""
        return self._other.is_back(time.monotonic())

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make(self) -> Consumer:
        consumer = make_consumer(
            self._spec.destination,
            self._watch,
            group_id=f"{STATE_PREFIX}{self._spec.link}.state",  # required by librdkafka, not used
            auto_offset_reset="latest",
            enable_partition_eof=True,
            socket_timeout_ms=STATE_ANSWER_MS,
            fetch_wait_max_ms=_FETCH_WAIT_MS,
        )
        start = OFFSET_END if self._next < 0 else self._next
        consumer.assign([TopicPartition(self._place.topic, 0, start)])
        return consumer

    def _renew(self) -> None:
        """Continue at the same offset with a consumer that has read the rotated certificates or password."""
        try:
            renewed = self._make()
        except ConfigError:
            return  # some files are not replaced yet; the next check retries
        self._rotation.done()
        self._consumer.close()
        self._consumer = renewed

    def _complain(self, error: StraitError) -> None:
        """Log why the reports or their end are unknown: until they are known, this instance does not take over."""
        now = time.monotonic()
        if now >= self._complain_at:
            self._complain_at = now + _COMPLAINT_SECONDS
            log.warning("standing by: %s", error)

    def _take(self, message: Message) -> None:
        offset, error = message.offset(), message.error()
        if error is not None:
            if error.code() == _EOF and offset is not None:
                self._next = offset
            elif (refused := unreadable(error, self._watch.cluster, self._place.topic)) is not None:
                self._complain(refused)
            return  # any other error librdkafka retries; no report is read meanwhile
        self._next = (offset or 0) + 1
        self._other.hear(message.key(), message.value(), time.monotonic())
