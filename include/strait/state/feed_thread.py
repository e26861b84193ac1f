"""The thread of a state feed: it reads the state topics of many links with one consumer, and may block."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from strait.config.cluster_identity import expected_id, require_expected
from strait.errors import StateError, StraitError
from strait.kafka.clients import Rotation, Watch, ask
from strait.kafka.translate import unreadable
from strait.state.consumer import state_consumer
from strait.state.segments import DELETE_RETENTION_MS

PIECES = 4
"""Number of pieces that wait to be delivered, at most."""
_PIECE = 500  # records that are handed over at a time: they take some milliseconds
_WAIT_SECONDS = 0.1
_PAUSE_SECONDS = 1.0  # after an error
_ASK_SECONDS = 5.0
_AGAIN_SECONDS = 10.0  # between two attempts to read a plan topic that was deleted
_AWAY_SECONDS = DELETE_RETENTION_MS / 1000 / 2  # without a turn, after which topics are read from their start
EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
_LOST = {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
}
_LOGGER = logging.getLogger(__name__)


class Begin(NamedTuple):
    """These topics are read from their start from here on."""

    topics: frozenset[str]


Piece = list[Message] | Begin


class Reading:
    """The thread's side of a feed."""

    def __init__(
        self,
        properties: Mapping[str, str],
        cluster: str,
        name: str,
        pieces: "queue.Queue[Piece]",
        wake: Callable[[], None],
    ) -> None:
        self.asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.closed = threading.Event()
        self.trouble: StraitError | None = None
        self.refused: dict[str, StraitError] = {}  # topics that this principal may not read
        self._properties = properties
        self._name = name
        self._pieces = pieces
        self._wake = wake
        self._watch = Watch(cluster, self._hear)
        self._rotation = Rotation(properties)
        self._next: dict[str, int] = {}  # topic -> first offset not read yet
        self._plan_topics: set[str] = set()
        self._lost: set[str] = set()  # topics that were deleted, or no longer have the next offset
        self._again_at = 0.0
        self._seen_at = time.monotonic()
        self._consumer: Consumer | None = None
        self._assigned: set[str] = set()

    def run(self) -> None:
        """Read until the feed is closed. An error is retried: the last valid state stays active meanwhile."""
        while not self.closed.is_set():
            try:
                self._turn()
                self.trouble = None
            except StraitError as error:
                self._failed(error)
            except KafkaException as error:
                self._failed(self._watch.translate(error, "following state topics"))
            except Exception as error:  # a defect; the end of the thread would not be noticed
                _LOGGER.exception("following state topics")
                self._failed(StateError(f"following state topics: {error}"))
        if self._consumer is not None:
            self._consumer.close()

    def follow(self, plan_topic: str, map_topic: str) -> None:
        """Read a link's topics from their start."""
        if not self._assigned.isdisjoint((plan_topic, map_topic)):  # it was followed a moment ago
            self._drop_consumer()
        self._hand_over(Begin(frozenset((plan_topic, map_topic))))
        self._next |= {plan_topic: OFFSET_BEGINNING, map_topic: OFFSET_BEGINNING}
        self._plan_topics.add(plan_topic)

    def forget(self, plan_topic: str, map_topic: str) -> None:
        """Read a link's topics no more."""
        self._plan_topics.discard(plan_topic)
        for topic in (plan_topic, map_topic):
            self._next.pop(topic, None)
            self._lost.discard(topic)
            self.refused.pop(topic, None)

    def begin_again(self, topics: Iterable[str]) -> None:
        """Read plan topics again that were recreated, unless they are not followed any more. librdkafka would wait
        forever for the new one's records, so this takes another consumer."""
        self._again_at = time.monotonic() + _AGAIN_SECONDS
        self._next |= {topic: OFFSET_BEGINNING for topic in topics if topic in self._next}
        self._drop_consumer()

    def begin(self, topics: frozenset[str]) -> None:
        """Read topics from their start, and have their former records forgotten."""
        self._hand_over(Begin(topics))
        self._next |= {topic: OFFSET_BEGINNING for topic in topics if topic in self._next}
        self._drop_consumer()

    def _failed(self, error: StraitError) -> None:
        if str(error) != str(self.trouble):
            _LOGGER.warning("%s", error)
        self.trouble = error
        self._drop_consumer()
        self.closed.wait(_PAUSE_SECONDS)

    def _turn(self) -> None:
        while not self.asked.empty():
            self.asked.get_nowait()()
        now = time.monotonic()
        if now - self._seen_at > _AWAY_SECONDS:  # tombstones may have been removed unread
            self.begin(frozenset(self._next))
        self._seen_at = now
        if now >= self._again_at and (lost := self._lost & self._plan_topics):
            self.begin_again(lost)
        if self._rotation.due():
            self._rotation.done()
            self._drop_consumer()
        self._read(self._ready())

    def _ready(self) -> Consumer:
        """Return the consumer, with every followed topic assigned."""
        if self._consumer is None:
            self._assigned = set()
            self._consumer = state_consumer(self._properties, self._watch, self._name)
        new = self._next.keys() - self._assigned
        if new:
            self._require_cluster(self._consumer, next(iter(new)))
            self._consumer.incremental_assign([TopicPartition(topic, 0, self._next[topic]) for topic in new])
        gone = self._assigned - self._next.keys()
        if gone:
            self._consumer.incremental_unassign([TopicPartition(topic, 0) for topic in gone])
        self._assigned = set(self._next)
        return self._consumer

    def _read(self, consumer: Consumer) -> None:
        first = consumer.poll(_WAIT_SECONDS)
        if first is None:
            return
        piece = [first, *consumer.consume(_PIECE - 1, timeout=0)]
        for message in piece:
            self._note(message)
        self._hand_over(piece)

    def _note(self, message: Message) -> None:
        topic, error = message.topic() or "", message.error()
        if topic not in self._next:
            return
        if error is None or error.code() == EOF:
            self.refused.pop(topic, None)
        if error is None:
            self._next[topic] = (message.offset() or 0) + 1
        elif error.code() == EOF:
            self._next[topic] = max(self._next[topic], message.offset() or 0)
            self._lost.discard(topic)
        else:
            self._watch(error)  # librdkafka retries
            if (refused := unreadable(error, self._watch.cluster, topic)) is not None:
                if topic not in self.refused:
                    _LOGGER.warning("%s", refused)
                self.refused[topic] = refused

    def _hand_over(self, piece: Piece) -> None:
        while not self.closed.is_set():
            try:
                self._pieces.put(piece, timeout=_WAIT_SECONDS)
            except queue.Full:
                continue
            self._wake()
            return

    def _drop_consumer(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _hear(self, error: KafkaError) -> None:
        """Detect whether an error of librdkafka means that a followed topic was deleted; its text contains the name."""
        if error.code() in _LOST:
            text = error.str()
            lost = {topic for topic in self._next if topic in text} - self._lost
            if lost:
                _LOGGER.warning("cluster %s: state topic %s: %s", self._watch.cluster, ", ".join(sorted(lost)), text)
            self._lost |= lost

    def _require_cluster(self, consumer: Consumer, topic: str) -> None:
        """Raise OtherCluster unless this is the expected cluster, if one is set."""

        def listed(wait: float) -> Any:
            try:
                return consumer.list_topics(topic, timeout=wait)
            finally:
                if not self._assigned:  # else the call would take a record
                    consumer.poll(0)  # librdkafka reports connection errors only to callers of poll

        if expected_id(self._properties):
            metadata = ask(self._watch, "looking up the cluster's ID", _ASK_SECONDS, listed)
            require_expected(self._watch.cluster, self._properties, metadata.cluster_id)
