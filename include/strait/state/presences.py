"""Detection of other running instances of many slots on one cluster, by the reports of their links: `presence` for the
standby of a pool, with one consumer for all of its links.

Everything that may block is on a separate thread. Its answers are the last known ones and may be slightly old:
safety does not depend on them.
"""

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from strait.config import naming
from strait.config.app_spec import Seat
from strait.config.topic_names import STATE_PREFIX
from strait.errors import StateError, StraitError
from strait.kafka.admin import Admin
from strait.kafka.clients import STATE_ANSWER_MS, Rotation, Watch, make_consumer
from strait.kafka.translate import unreadable
from strait.model import TopicPartition
from strait.state.other_instance import OtherInstance
from strait.state.presence import SILENT_SECONDS

log = logging.getLogger(__name__)

_WAIT_SECONDS = 0.1
_AT_ONCE = 1000
_AFTER_TROUBLE_SECONDS = 1.0
_COMPLAINT_SECONDS = 60.0
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001


class OtherSlot:
    """Another instance of one slot, as `Presences` knows it now."""

    def __init__(self, topic: str, instance: OtherInstance, forget: Callable[["OtherSlot"], None]) -> None:
        self.topic = topic
        self.instance = instance
        self.is_gone = False
        self.is_back = False
        self._forget = forget

    def close(self) -> None:
        """Stop following it."""
        self._forget(self)


class Presences:
    """Follows the other instances of slots until it is closed.

    Args:
        properties: of the destination cluster.
        name: of the pool.
        application: this instance.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str, name: str, application: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._name = name
        self._application = application
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._slots: dict[str, list[OtherSlot]] = defaultdict(list)  # by the topic of their reports
        self._next: dict[str, int] = {}  # topic -> first offset not read yet; OFFSET_END: its end
        self._watch = Watch(cluster)
        self._rotation = Rotation(properties)
        self._consumer: Consumer | None = None
        self._assigned: set[str] = set()
        self._complain_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"presence-{cluster}", daemon=True)
        self._thread.start()

    def of_slot(self, seat: Seat) -> OtherSlot:
        """Follow another instance of a slot, from now on."""
        instance = OtherInstance.of_slot(seat.group, seat.slot, self._application, SILENT_SECONDS, time.monotonic())
        found = OtherSlot(
            naming.reports_topic(seat.link), instance, lambda one: self._asked.put(lambda: self._drop(one))
        )
        self._asked.put(lambda: self._add(found))
        return found

    def close(self) -> None:
        """Stop. Does not wait for the thread, which may be waiting for a cluster that does not respond."""
        self._closed.set()

    def _add(self, slot: OtherSlot) -> None:
        self._slots[slot.topic].append(slot)
        if slot.topic not in self._next:
            self._next[slot.topic] = OFFSET_END
            if slot.topic in self._assigned:  # it was followed a moment ago, and its end is not reported again
                self._drop_consumer()

    def _drop(self, slot: OtherSlot) -> None:
        self._slots[slot.topic].remove(slot)
        if not self._slots[slot.topic]:
            del self._slots[slot.topic], self._next[slot.topic]

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._turn()
            except (KafkaException, StraitError) as error:
                self._failed(error)
            except Exception as error:  # a defect; the end of the thread would not be noticed
                log.exception("standing by")
                self._failed(StateError(f"standing by: {error}"))
        self._drop_consumer()

    def _turn(self) -> None:
        while not self._asked.empty():
            self._asked.get_nowait()()
        if self._rotation.due():
            self._rotation.done()
            self._drop_consumer()
        if not self._next:
            self._closed.wait(_WAIT_SECONDS)
            return
        consumer = self._ready()
        first = consumer.poll(_WAIT_SECONDS)
        if first is not None:
            now = time.monotonic()
            for message in (first, *consumer.consume(_AT_ONCE - 1, timeout=0)):
                self._take(message, now)
        self._judge()

    def _ready(self) -> Consumer:
        """Return the consumer, with every followed topic assigned."""
        if self._consumer is None:
            self._assigned = set()
            self._consumer = make_consumer(
                self._properties,
                self._watch,
                group_id=f"{STATE_PREFIX}{self._name}.state",  # required by librdkafka, not used
                auto_offset_reset="latest",
                enable_partition_eof=True,
                socket_timeout_ms=STATE_ANSWER_MS,
                fetch_wait_max_ms=round(_WAIT_SECONDS * 1000),
            )
        if new := self._next.keys() - self._assigned:
            self._consumer.incremental_assign([Place(topic, 0, self._next[topic]) for topic in new])
        if gone := self._assigned - self._next.keys():
            self._consumer.incremental_unassign([Place(topic, 0) for topic in gone])
        self._assigned = set(self._next)
        return self._consumer

    def _take(self, message: Message, now: float) -> None:
        topic, offset, error = message.topic() or "", message.offset() or 0, message.error()
        if topic not in self._next:
            return
        if error is not None:
            if error.code() == _EOF:
                self._next[topic] = offset
            elif (refused := unreadable(error, self._cluster, topic)) is not None:
                self._complain(refused)
            return  # any other error librdkafka retries; no report is read meanwhile
        self._next[topic] = offset + 1
        for slot in self._slots[topic]:
            slot.instance.hear(message.key(), message.value(), now)

    def _judge(self) -> None:
        """Renew the answers. The ends of all topics with a slot that has just become silent are asked for together."""
        now = time.monotonic()
        asking = [slot for slots in self._slots.values() for slot in slots if slot.instance.needs_end(now)]
        if asking:
            self._ask_for_ends(asking)
        now = time.monotonic()
        for topic, slots in self._slots.items():
            for slot in slots:
                slot.is_gone = slot.instance.is_gone(now, self._next[topic])
                slot.is_back = slot.instance.is_back(now)

    def _ask_for_ends(self, asking: list[OtherSlot]) -> None:
        places = {TopicPartition(slot.topic, 0) for slot in asking}
        found = Admin(self._properties, self._cluster).offsets_each(sorted(places), "end")
        for error in list(found.failures.values())[:1]:
            self._complain(error)
        for slot in asking:
            end = found.results.get(TopicPartition(slot.topic, 0))
            if end is None:
                slot.instance.unknown(time.monotonic())
            else:
                slot.instance.ends_at(end)

    def _failed(self, error: KafkaException | StraitError) -> None:
        """Reset the detection: a missing response does not mean that another instance has stopped."""
        now = time.monotonic()
        for slot in (slot for slots in self._slots.values() for slot in slots):
            slot.instance.unknown(now)
            slot.is_gone = False
        told = self._watch.translate(error, "following reports") if isinstance(error, KafkaException) else error
        self._complain(told)
        self._drop_consumer()
        self._closed.wait(_AFTER_TROUBLE_SECONDS)

    def _complain(self, error: StraitError) -> None:
        """Log why the reports or their end are unknown: until they are known, this instance does not take over."""
        now = time.monotonic()
        if now >= self._complain_at:
            self._complain_at = now + _COMPLAINT_SECONDS
            log.warning("standing by: %s", error)

    def _drop_consumer(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()
