"""Hearing whether another copy of an application is at work, by what it reports. Used to stand by, never to be safe: two
that work side by side do no harm."""

import logging
import time
from typing import Self

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from strait.config import naming
from strait.config.app_spec import AppSpec
from strait.errors import ConfigError
from strait.kafka.clients import STATE_ANSWER_MS, Rotation, Watch, make_consumer
from strait.state.codec import GroupSyncKey, ReportKey, encode_key

log = logging.getLogger(__name__)

SILENT_SECONDS = 2.0
"""A slot reports once a second."""
_BACK_SECONDS = 5.0
"""So long another copy must have reported again before one that took over leaves the work to it."""
_FETCH_WAIT_MS = 100
_ASK_SECONDS = 1.0
"""The leader answers one request of a connection after the other, so a question waits for the fetch before it: that must
end soon."""
_COMPLAINT_SECONDS = 60.0
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001


class Presence:
    """Listens from its making on. Not thread-safe.

    Args:
        key: how the keys of the reports begin that are listened to.
        silent_seconds: after which the other copy counts as gone.
    """

    def __init__(self, spec: AppSpec, application: str, key: bytes, silent_seconds: float) -> None:
        self._key = key
        self._own = f'"application":"{application}"'.encode()
        self._silent_seconds = silent_seconds
        self._place = TopicPartition(naming.reports_topic(spec.link), 0)
        self._next = -1  # the first report not read yet; -1: not known
        self._end = -1  # of the log, as asked for since the other copy is silent; -1: not asked for
        self._silent_since = time.monotonic()  # unless it was heard since
        self._heard_at = self._began_at = float("-inf")  # of the other copy; and since when without a pause
        self._spec = spec
        self._watch = Watch(spec.destination_name)
        self._complain_at = 0.0
        self._rotation = Rotation(spec.destination)
        self._consumer = self._make()

    @classmethod
    def of_slot(cls, spec: AppSpec, slot: int, application: str) -> Self:
        """Of another copy of this slot."""
        key = encode_key(ReportKey(group=spec.group, slot=slot, part=0))
        return cls(spec, application, key.removesuffix(b"0}"), SILENT_SECONDS)

    @classmethod
    def of_group_sync(cls, spec: AppSpec, application: str, silent_seconds: float) -> Self:
        """Of another copy that keeps consumer groups in sync."""
        return cls(spec, application, encode_key(GroupSyncKey(consumer_groups=spec.link)), silent_seconds)

    def listen(self, timeout_seconds: float = 0.0) -> None:
        """Take in what was reported; wait for it, but not for long."""
        if self._rotation.due():
            self._renew()
        message = self._consumer.poll(timeout_seconds)
        while message is not None:
            self._take(message)
            message = self._consumer.poll(0)

    def is_gone(self) -> bool:
        """Nothing was reported for too long, and the broker says so itself: one that does not answer has no reports of
        anybody. What it tells is the log's end, and all before that must have been read; others may go on reporting."""
        if time.monotonic() - max(self._heard_at, self._silent_since) < self._silent_seconds:
            self._end = -1
            return False
        if self._end < 0:
            try:
                _, end = self._consumer.get_watermark_offsets(self._place, timeout=_ASK_SECONDS, cached=False)
            except KafkaException as exception:
                self._silent_since = time.monotonic()
                self._complain(exception)
                return False
            self._end = int(end)
        return 0 <= self._end <= self._next

    def is_back(self) -> bool:
        """It has reported for a while."""
        now = time.monotonic()
        return now - self._heard_at < self._silent_seconds and now - self._began_at >= _BACK_SECONDS

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
            group_id=f"{naming.STATE_PREFIX}{self._spec.link}.state",  # demanded by librdkafka, used by nobody
            auto_offset_reset="latest",
            enable_partition_eof=True,
            socket_timeout_ms=STATE_ANSWER_MS,
            fetch_wait_max_ms=_FETCH_WAIT_MS,
        )
        start = OFFSET_END if self._next < 0 else self._next
        consumer.assign([TopicPartition(self._place.topic, 0, start)])
        return consumer

    def _renew(self) -> None:
        """Go on where we are with a consumer that has read the rotated certificates or password."""
        try:
            renewed = self._make()
        except ConfigError:
            return  # some files are new and some are not yet; the next look finds out
        self._rotation.done()
        self._consumer.close()
        self._consumer = renewed

    def _complain(self, exception: KafkaException) -> None:
        """In the log: as long as the end of the reports is not told, nobody is taken over from."""
        now = time.monotonic()
        if now >= self._complain_at:
            self._complain_at = now + _COMPLAINT_SECONDS
            log.warning(
                "standing by: %s", self._watch.translate(exception, f"looking up the end of {self._place.topic}")
            )

    def _take(self, message: Message) -> None:
        offset, error = message.offset(), message.error()
        if error is not None:
            if error.code() == _EOF and offset is not None:
                self._next = offset
            return  # of any other librdkafka tries again by itself, and nothing is heard meanwhile
        self._next = (offset or 0) + 1
        if not (message.key() or b"").startswith(self._key) or self._own in (message.value() or b""):
            return
        now = time.monotonic()
        if now - self._heard_at > self._silent_seconds:
            self._began_at = now
        self._heard_at = now
