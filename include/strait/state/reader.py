"""Reading the state topics: a consumer without a group that follows them from their beginning."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from strait.config import naming
from strait.config.cluster_identity import expected_id, expecting, require_expected
from strait.errors import ClusterUnavailable, ConfigError, OtherCluster, StateError
from strait.kafka.clients import STATE_ANSWER_MS, Rotation, Watch, ask, make_consumer
from strait.state.group_sync_records import GroupSyncReport
from strait.state.report_changes import REPEAT_SECONDS
from strait.state.schema import Loss, OffsetMapping, Plan, Report
from strait.state.segments import DELETE_RETENTION_MS
from strait.state.view import Kind, Place, StateView

REPORTS_SINCE_SECONDS = REPEAT_SECONDS + 15
"""How far back reports are read at first: a slot reports each of its partitions within `REPEAT_SECONDS`."""

_TOPIC_OF = {
    "plan": naming.plan_topic,
    "map": naming.map_topic,
    "reports": naming.reports_topic,
    "losses": naming.losses_topic,
}
_MOST_PER_POLL = 2000
_AWAY_SECONDS = DELETE_RETENTION_MS / 1000 / 2  # without a look, after which the topics are read from their beginning
_AGAIN_SECONDS = 10.0
_LONG_SECONDS = 3.0  # of reading, after which its progress is logged
_FETCHED_AHEAD_KIB = 8 << 10  # by default 64 MiB, in every slot
_LOGGER = logging.getLogger(__name__)
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
_LOST_PLACE = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001
Answer = TypeVar("Answer")


class StateReader:
    """The state of one link, read from its topics and kept up to date by `poll`.

    Only committed records are seen. A state topic that does not exist yet is an empty one; it is looked for again by
    the next `catch_up`. After `catch_up` nothing is fetched until the next call, so a reader that looks now and then
    costs the brokers nothing in between. Not thread-safe.

    Args:
        some_partitions: of few partitions the runs are looked at, so of others they are not decoded, and one that cannot
            be read is `trouble` when its partition is looked at.
        most_losses: so many of the newest entries of the loss ledger are kept; None: all.
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
    ) -> None:
        self._kinds = tuple(follow)
        self._kind_of: dict[str, Kind] = {_TOPIC_OF[kind](link): kind for kind in self._kinds}
        self._map_topic = naming.map_topic(link)
        self._link = link
        self._some_partitions = some_partitions
        self._most_losses = most_losses
        self._view = StateView(link, most_losses)
        self._seen_at = time.monotonic()
        self._watch = Watch(cluster, self._hear)
        self._next: dict[str, int] = {}  # topic -> first offset not read yet; a topic is here once it was found
        self._start: dict[str, int] = {}  # topic -> where reading begins
        self._lost: dict[str, StateError] = {}  # topics that are not there or lost our place
        self._again_at = 0.0  # when a plan topic that lost our place is read from its beginning
        self._resting = True
        self._properties = properties
        self._rotation = Rotation(properties)
        self._group_id = f"{naming.STATE_PREFIX}{link}.state"  # demanded by librdkafka, used by nobody
        self._consumer = self._make_consumer()

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Group -> its plan in force."""
        return self._view.plans

    @property
    def runs(self) -> Mapping[tuple[str, int], tuple[OffsetMapping, ...]]:
        """(source topic, partition) -> its runs, by sequence_base."""
        return self._view.runs

    @property
    def map_end(self) -> int:
        """The first offset of the map topic that was not read yet."""
        return self._next.get(self._map_topic, 0)

    @property
    def reports(self) -> Mapping[tuple[str, int], tuple[Report, ...]]:
        """(group, slot) -> the newest report of each application that runs this slot, with all its partitions."""
        return self._view.reports

    @property
    def earlier_reports(self) -> Mapping[tuple[str, int], tuple[Report, ...]]:
        """The same as some seconds before, to tell how fast slots copy."""
        return self._view.reports.earlier()

    @property
    def group_sync(self) -> GroupSyncReport | None:
        """How consumer groups stood at the last look at them; None: nothing was reported lately."""
        return self._view.group_sync

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The loss ledger, in the order of its writing: the newest entries, or all of them."""
        return self._view.losses.newest

    @property
    def loss_counts(self) -> Mapping[tuple[str, str], int]:
        """(cause, action) -> how many entries the loss ledger has."""
        return self._view.losses.counts

    @property
    def trouble(self) -> StateError | None:
        """What cannot be read now; the last good values stay in force meanwhile."""
        return next(iter(self._lost.values()), None) or self._view.trouble(*self._kinds)

    def catch_up(self, timeout_seconds: float = 10.0, is_over: Callable[[], bool] | None = None) -> None:
        """Read all that is committed at the time of the call, however long that takes.

        Args:
            timeout_seconds: without an answer or a record, after which it fails.
            is_over: to be asked meanwhile; True ends it early.

        Raises:
            ClusterUnavailable, NotAuthorized: the topics cannot be read.
            OtherCluster: another cluster answers at the address; the next call tries again.
            StateError: a plan or a run cannot be read. Reports are only shown, so one that cannot be read is trouble,
                but no error.
        """
        self._rest()  # else its questions wait behind a fetch that waits for news
        self._require_cluster(timeout_seconds)
        if self._was_away:
            self._begin_again()
        self._find_topics(timeout_seconds)
        ends = {topic: self._end(topic, timeout_seconds) for topic in self._next}
        self._read_to(ends, timeout_seconds, is_over or (lambda: False))
        self._rest()
        if not self._some_partitions:
            self._view.runs.decode_all()
        error = self._view.trouble("plan", "map")
        if error:
            raise error

    def _read_to(self, ends: Mapping[str, int], timeout_seconds: float, is_over: Callable[[], bool]) -> None:
        left = first_left = self._left(ends)
        now = time.monotonic()
        deadline, show_at = now + timeout_seconds, now + _LONG_SECONDS
        while left and not is_over():
            if now > deadline:
                behind = ", ".join(f"{t} at {self._next[t]} of {end}" for t, end in ends.items())
                raise self.trouble or ClusterUnavailable(
                    self._watch.cluster, f"reading state topics: no record in {timeout_seconds:g} s: {behind}"
                )
            self.poll(0.1)
            before, left, now = left, self._left(ends), time.monotonic()
            if left < before:
                deadline = now + timeout_seconds
            if left and now > show_at:
                show_at = now + _LONG_SECONDS
                done = f"{first_left - left:,} of {first_left:,} records"
                _LOGGER.info("link %s: reading its state on cluster %s: %s", self._link, self._watch.cluster, done)

    def _left(self, ends: Mapping[str, int]) -> int:
        return sum(max(0, end - max(self._next[topic], self._start[topic])) for topic, end in ends.items())

    @property
    def _was_away(self) -> bool:
        return time.monotonic() - self._seen_at > _AWAY_SECONDS

    def _begin_again(self) -> None:
        """What was removed since the last look may have left no trace in the topics."""
        self._seen_at = time.monotonic()
        self._view = StateView(self._link, self._most_losses)
        self._next.clear()
        self._start.clear()

    def poll(self, timeout_seconds: float = 0.0) -> bool:
        """Take in what has arrived; return whether anything changed. Blocks only for the first record, if at all, or, in
        a process that was suspended for very long, to `catch_up`."""
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
        """From the topic's beginning: it was created again, and may have a plan that ends whoever follows the last one."""
        self._again_at = time.monotonic() + _AGAIN_SECONDS
        self._next |= {topic: 0 for topic in self._next if self._kind_of[topic] == "plan"}
        self._renew()  # librdkafka would wait for ever for records of the topic's successor

    def close(self) -> None:
        """Leave the cluster. The last state read stays readable."""
        self._consumer.close()

    def __enter__(self) -> "StateReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_consumer(self) -> Consumer:
        return make_consumer(
            self._properties,
            self._watch,
            group_id=self._group_id,
            isolation_level="read_committed",
            enable_partition_eof=True,
            auto_offset_reset="error",  # records vanished under us: that must be seen, not papered over
            topic_metadata_refresh_interval_ms=10_000,  # a deleted topic is noticed by this alone
            socket_timeout_ms=STATE_ANSWER_MS,
            fetch_wait_max_ms=100,  # an empty read tells the end of a topic, so this is what catching up costs
            queued_max_messages_kbytes=_FETCHED_AHEAD_KIB,
            fetch_queue_backoff_ms=10,
        )

    def _renew(self) -> None:
        """Go on where we are with a consumer that has read the rotated certificates or password."""
        try:
            renewed = self._make_consumer()
        except ConfigError:
            return  # some files are new and some are not yet; the next look finds out
        self._rotation.done()
        if not self._resting:
            renewed.assign(self._places())
        self._consumer.close()
        self._consumer = renewed

    def _rest(self) -> None:
        """Fetch nothing until somebody wants to know more. To pause would do that too, but librdkafka takes a second to
        resume."""
        if not self._resting:
            self._resting = True
            self._consumer.incremental_unassign(self._places())

    def _places(self) -> list[TopicPartition]:
        return [TopicPartition(topic, 0, read or self._start[topic]) for topic, read in self._next.items()]

    def _take(self, message: Message) -> bool:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        error = message.error()
        if error is None:
            self._next[topic] = offset + 1
            return self._view.apply(
                self._kind_of[topic], message.key(), message.value(), Place(topic, partition, offset)
            )
        if error.code() == _EOF:
            self._next[topic] = max(self._next[topic], offset)
            return self._lost.pop(topic, None) is not None
        self._watch(error)  # librdkafka tries again by itself; whoever waits too long for it will tell
        return topic in self._lost

    def _hear(self, error: KafkaError) -> None:
        """Find out whether librdkafka's words mean that a followed topic is gone; they begin with its name."""
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
        """That this is the cluster that is meant, or that the plans say they lie on."""
        known = next(filter(None, (plan.destination_cluster for plan in self.plans.values())), "")
        expecting_it = expecting(self._properties, known)
        if not expected_id(expecting_it):
            return
        metadata = self._metadata(self._map_topic, "looking up the cluster's ID", timeout_seconds)
        try:
            require_expected(self._watch.cluster, expecting_it, metadata.cluster_id)
        except OtherCluster:
            self._renew()  # it would stay with that cluster, which answers
            raise

    def _find_topics(self, timeout_seconds: float) -> None:
        for topic, kind in self._kind_of.items():
            if topic not in self._next and self._exists(topic, timeout_seconds):
                self._start[topic] = self._recent(topic, timeout_seconds) if kind == "reports" else OFFSET_BEGINNING
                self._next[topic] = 0

    def _exists(self, topic: str, timeout_seconds: float) -> bool:
        metadata = self._metadata(topic, f"looking for state topic {topic}", timeout_seconds)
        error = metadata.topics[topic].error
        if error is None:
            return True
        if error.code() in _MISSING:
            return False
        raise self._watch.translate(error, f"looking for state topic {topic}")

    def _metadata(self, topic: str, doing: str, timeout_seconds: float) -> Any:
        return self._ask(doing, timeout_seconds, lambda wait: self._consumer.list_topics(topic, timeout=wait))

    def _recent(self, topic: str, timeout_seconds: float) -> int:
        since_ms = int((time.time() - REPORTS_SINCE_SECONDS) * 1000)
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
        return int(watermarks[1])  # reading committed: the last stable offset

    def _ask(self, doing: str, timeout_seconds: float, call: Callable[[float], Answer]) -> Answer:
        def served(wait: float) -> Answer:
            try:
                return call(wait)
            finally:
                self._take_in(0)  # librdkafka tells what is wrong with a connection only to those who poll

        return ask(self._watch, doing, timeout_seconds, served)
