"""Reader of the state topics: a consumer without a group that follows them from their start."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from strait.config import naming
from strait.config.cluster_identity import expected_id, expecting, require_expected
from strait.errors import ClusterUnavailable, ConfigError, NotAuthorized, OtherCluster, StateError, StraitError
from strait.kafka.clients import Rotation, Watch, ask
from strait.kafka.translate import unreadable
from strait.state.consumer import state_consumer
from strait.state.report_changes import REPEAT_SECONDS
from strait.state.segments import DELETE_RETENTION_MS
from strait.state.signing import Keys
from strait.state.view import Kind, Place, ReadState, StateView
from strait.text import plural

REPORTS_SINCE_SECONDS = REPEAT_SECONDS + 15
"""Age of the oldest reports that are read at first: a slot reports each of its partitions within `REPEAT_SECONDS`."""

_TOPIC_OF = {
    "plan": naming.plan_topic,
    "map": naming.map_topic,
    "reports": naming.reports_topic,
    "losses": naming.losses_topic,
}
_MOST_PER_POLL = 2000
_AWAY_SECONDS = DELETE_RETENTION_MS / 1000 / 2  # without a poll, after which the topics are read from their start
_AGAIN_SECONDS = 10.0
_LONG_SECONDS = 3.0  # of reading, after which its progress is logged
_LOGGER = logging.getLogger(__name__)
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
_LOST_PLACE = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001
Answer = TypeVar("Answer")


class StateReader(ReadState):
    """The state of one link, read from its topics and kept up to date by `poll`.

    Only committed records are read. A state topic that does not exist yet is treated as empty; the next `catch_up`
    checks for it again. After `catch_up` nothing is fetched until the next call, so a reader that polls rarely costs
    the brokers nothing in between. Not thread-safe.

    Args:
        some_partitions: the caller needs the offset segments of few partitions only. Those of others are not decoded,
            and one that cannot be read appears in `trouble` when its partition is requested.
        most_losses: number of newest loss log entries that are kept; None: all.
        losses_seconds: losses that were written this long ago or earlier are not read; None: all are.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        cluster: str,
        link: str,
        *,
        follow: Sequence[Kind] = ("plan", "map"),
        some_partitions: bool = False,
        most_losses: int | None = None,
        losses_seconds: float | None = None,
    ) -> None:
        self._seconds_read = {"reports": REPORTS_SINCE_SECONDS, "losses": losses_seconds}
        self._kinds = tuple(follow)
        self._kind_of: dict[str, Kind] = {_TOPIC_OF[kind](link): kind for kind in self._kinds}
        self._map_topic = naming.map_topic(link)
        self._link = link
        self._some_partitions = some_partitions
        self._most_losses = most_losses
        self._view = StateView(link, most_losses, Keys.of(cluster, properties))
        self._seen_at = time.monotonic()
        self._watch = Watch(cluster, self._hear)
        self._next: dict[str, int] = {}  # topic -> first offset not read yet; only topics that exist
        self._start: dict[str, int] = {}  # topic -> first offset to read
        self._lost: dict[str, StateError] = {}  # topics that were deleted, or no longer have the next offset
        self._refused: dict[str, NotAuthorized] = {}  # topics that this principal may not read
        self._again_at = 0.0  # time at which such a plan topic is read from its start
        self._resting = True
        self._properties = properties
        self._rotation = Rotation(properties)
        self._consumer = self._make_consumer()

    @property
    def view(self) -> StateView:
        return self._view

    @property
    def map_end(self) -> int:
        """First offset of the map topic that was not read yet."""
        return self._next.get(self._map_topic, 0)

    @property
    def trouble(self) -> StraitError | None:
        """The error for a record or topic that cannot be read now; the last valid values stay active meanwhile."""
        return next(iter([*self._refused.values(), *self._lost.values()]), None) or self._view.trouble(*self._kinds)

    def catch_up(self, timeout_seconds: float = 10.0, is_over: Callable[[], bool] | None = None) -> None:
        """Read all records that are committed at the time of the call, however long that takes.

        Args:
            timeout_seconds: time without a response or a record after which it fails.
            is_over: called meanwhile; if it returns True, reading stops early.

        Raises:
            ClusterUnavailable, NotAuthorized: the topics cannot be read.
            OtherCluster: the address belongs to another cluster; the next call retries.
            StateError: a plan or an offset segment cannot be read. Reports are only displayed, so an unreadable one is
                in `trouble`, but raises no error.
        """
        self._rest()  # else its requests wait for a fetch that waits for new records
        self._require_cluster(timeout_seconds)
        if self._was_away:
            self._begin_again()
        ends = self._ends(timeout_seconds)
        if shorter := [topic for topic, end in ends.items() if end < self._next[topic]]:
            _LOGGER.warning("cluster %s: %s ends before what was read: read again", self._watch.cluster, shorter[0])
            self._begin_again()
            self._renew()  # librdkafka would wait forever for records of a recreated topic
            ends = self._ends(timeout_seconds)
        self._read_to(ends, timeout_seconds, is_over or (lambda: False))
        self._rest()
        if not self._some_partitions:
            self._view.runs.decode_all()
        error = self._view.trouble("plan", "map")
        if error:
            raise error

    def _ends(self, timeout_seconds: float) -> dict[str, int]:
        """Return the ends of the topics that exist. They never decrease, also not during a leader election (KIP-207), unless
        a topic was recreated or has lost records."""
        self._find_topics(timeout_seconds)
        return {topic: self._end(topic, timeout_seconds) for topic in self._next}

    def _read_to(self, ends: Mapping[str, int], timeout_seconds: float, is_over: Callable[[], bool]) -> None:
        self._refused.clear()
        left = first_left = self._left(ends)
        now = time.monotonic()
        deadline, show_at = now + timeout_seconds, now + _LONG_SECONDS
        while left and not is_over():
            if now > deadline:
                raise self.trouble or self._too_late(ends, timeout_seconds)
            self.poll(0.1)
            if self._refused:  # a missing permission does not pass, so waiting would only hide it
                raise next(iter(self._refused.values()))
            before, left, now = left, self._left(ends), time.monotonic()
            if left < before:
                deadline = now + timeout_seconds
            if left and now > show_at:
                show_at = now + _LONG_SECONDS
                done = f"{first_left - left:,} of {plural(first_left, 'record')}"
                _LOGGER.info("link %s: reading its state on cluster %s: %s", self._link, self._watch.cluster, done)

    def _too_late(self, ends: Mapping[str, int], seconds: float) -> ClusterUnavailable:
        behind = ", ".join(f"{t} at {self._next[t]} of {end}" for t, end in ends.items())
        return ClusterUnavailable(self._watch.cluster, f"reading state topics: no record in {seconds:g} s: {behind}")

    def _left(self, ends: Mapping[str, int]) -> int:
        return sum(max(0, end - max(self._next[topic], self._start[topic])) for topic, end in ends.items())

    @property
    def _was_away(self) -> bool:
        return time.monotonic() - self._seen_at > _AWAY_SECONDS

    def _begin_again(self) -> None:
        """Start from scratch: the records that were read may not be in the topics any more, without a tombstone there."""
        self._seen_at = time.monotonic()
        self._view = StateView(self._link, self._most_losses, self._view.keys)
        self._next.clear()
        self._start.clear()

    def poll(self, timeout_seconds: float = 0.0) -> bool:
        """Process the records that have arrived; return whether anything changed.

        Blocks only for the first record, ``timeout_seconds`` at most, or, if the last call was more than 30 min ago, to
        `catch_up`.
        """
        if self._was_away:
            self.catch_up()
            return True
        if self._resting:
            self._resting = False
            self._consumer.incremental_assign(self._places())
        return self._take_in(timeout_seconds)

    def _take_in(self, timeout_seconds: float) -> bool:
        if self._rotation.due():
            self._renew()
        self._seen_at = time.monotonic()
        if self._lost and not self._resting and self._seen_at >= self._again_at:
            self.read_plans_again()
        first = self._consumer.poll(timeout_seconds)
        if first is None:
            return False
        changed = self._take(first)
        for message in self._consumer.consume(_MOST_PER_POLL, timeout=0):
            changed |= self._take(message)
        return changed

    def read_plans_again(self) -> None:
        """Read the plan topic from its start: it was recreated, and may have a plan that stops this application."""
        self._again_at = time.monotonic() + _AGAIN_SECONDS
        self._next |= {topic: 0 for topic in self._next if self._kind_of[topic] == "plan"}
        self._renew()  # librdkafka would wait forever for records of the recreated topic

    def close(self) -> None:
        """Close the consumer. The last state read stays available."""
        self._consumer.close()

    def __enter__(self) -> "StateReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_consumer(self) -> Consumer:
        return state_consumer(self._properties, self._watch, self._link)

    def _renew(self) -> None:
        """Continue at the same offsets with a consumer that has read the rotated certificates or password."""
        try:
            renewed = self._make_consumer()
            self._view.keys = Keys.of(self._watch.cluster, self._properties)
        except ConfigError:
            return  # some files are not replaced yet; the next check retries
        self._rotation.done()
        if not self._resting:
            renewed.assign(self._places())
        self._consumer.close()
        self._consumer = renewed

    def _rest(self) -> None:
        """Stop fetching until the next call. Pausing would have this effect too, but librdkafka takes 1 s to resume."""
        if not self._resting:
            self._resting = True
            self._consumer.incremental_unassign(self._places())

    def _places(self) -> list[TopicPartition]:
        return [TopicPartition(topic, 0, read or self._start[topic]) for topic, read in self._next.items()]

    def _take(self, message: Message) -> bool:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        error = message.error()
        if error is None or error.code() == _EOF:
            self._refused.pop(topic, None)
        if error is None:
            self._next[topic] = offset + 1
            kind, place = self._kind_of[topic], Place(topic, partition, offset)
            return self._view.apply(kind, message.key(), message.value(), place, message.headers() or ())
        if error.code() == _EOF:
            self._next[topic] = max(self._next[topic], offset)
            return self._lost.pop(topic, None) is not None
        if refused := unreadable(error, self._watch.cluster, topic):
            self._refused[topic] = refused
        self._watch(error)  # librdkafka retries; a caller that waits too long fails with it
        return topic in self._lost

    def _hear(self, error: KafkaError) -> None:
        """Detect whether an error of librdkafka means that a followed topic was deleted; its text contains the name."""
        if error.code() != _LOST_PLACE and error.code() not in _MISSING:
            return
        text = error.str()
        for topic in self._next:
            if topic in text:
                self._lost[topic] = StateError(
                    f"cluster {self._watch.cluster}: following state topic {topic}: deleted or cut off: {text}",
                    hint="the last good state stays active; restore the topic, then restart the application",
                )

    def _require_cluster(self, timeout_seconds: float) -> None:
        """Raise OtherCluster unless this is the expected cluster or, if none is set, the one in the plans."""
        known = next(filter(None, (plan.destination_cluster for plan in self.plans.values())), "")
        expecting_it = expecting(self._properties, known)
        if not expected_id(expecting_it):
            return
        metadata = self._metadata(self._map_topic, "looking up the cluster's ID", timeout_seconds)
        try:
            require_expected(self._watch.cluster, expecting_it, metadata.cluster_id)
        except OtherCluster:
            self._renew()  # the consumer would stay connected to that cluster, which responds
            raise

    def _find_topics(self, timeout_seconds: float) -> None:
        for topic, kind in self._kind_of.items():
            if topic not in self._next and self._exists(topic, timeout_seconds):
                seconds = self._seconds_read.get(kind)
                self._start[topic] = (
                    OFFSET_BEGINNING if seconds is None else self._recent(topic, seconds, timeout_seconds)
                )
                self._next[topic] = 0

    def _exists(self, topic: str, timeout_seconds: float) -> bool:
        metadata = self._metadata(topic, f"looking for state topic {topic}", timeout_seconds)
        error = metadata.topics[topic].error
        if error is None:
            return True
        if error.code() in _MISSING:
            return False
        doing = "looking for state topic"
        raise unreadable(error, self._watch.cluster, topic, doing) or self._watch.translate(error, f"{doing} {topic}")

    def _metadata(self, topic: str, doing: str, timeout_seconds: float) -> Any:
        return self._ask(doing, timeout_seconds, lambda wait: self._consumer.list_topics(topic, timeout=wait))

    def _recent(self, topic: str, seconds: float, timeout_seconds: float) -> int:
        since_ms = int((time.time() - seconds) * 1000)
        found: Any = self._ask(
            f"looking up recent records of {topic}",
            timeout_seconds,
            lambda wait: self._consumer.offsets_for_times([TopicPartition(topic, 0, since_ms)], timeout=wait),
        )
        return int(found[0].offset) if found[0].offset >= 0 else self._end(topic, timeout_seconds)

    def _end(self, topic: str, timeout_seconds: float) -> int:
        watermarks: Any = self._ask(
            f"looking up the end of {topic}",
            timeout_seconds,
            lambda wait: self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=wait, cached=False),
        )
        return int(watermarks[1])  # with read_committed: the last stable offset

    def _ask(self, doing: str, timeout_seconds: float, call: Callable[[float], Answer]) -> Answer:
        def served(wait: float) -> Answer:
            try:
                return call(wait)
            finally:
                self._take_in(0)  # librdkafka reports connection errors only to callers of poll

        return ask(self._watch, doing, timeout_seconds, served)
