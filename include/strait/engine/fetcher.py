"""Fetches from one source broker, one long poll at a time. The next request is sent before the batches of the last
reply are.

Back-pressure means not fetching: data is requested only if the reply fits into the slot's memory, and a partition with
enough queued is omitted.
"""

import math
import random
from collections.abc import Callable, Mapping

from strait.engine.batch_stamper import BatchStamper
from strait.engine.fetch_set import MAX_WAIT_SECONDS, FetchSet
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.read_replicas import ReadReplicas
from strait.engine.throttle import Throttle
from strait.model import NO_TOPIC_ID
from strait.net import error_policy
from strait.net.buffers import Buffer, BufferPool, Share
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.wire import error_codes, fetch, fetch_session

PARTITION_BYTES = (1 << 20, 4 << 20)
QUEUED_BYTES_PER_PARTITION = 4 << 20
REPLY_BYTES = (1 << 17, 16 << 20)
NEAR_SECONDS = 0.025
"""Up to this value a round trip to the source costs little compared with the time in which a reply is sent on. Over a
longer one, proportionally more is requested at a time, since the next request can only start at the end of the last
reply."""
FAR_TIMES = 8
REPLY_SECONDS = 2.0
"""How long the transfer of a reply may take: all partitions that the broker leads wait for it. Over a slow connection
less is requested at a time."""
FIRST_REPLY_BYTES = 1 << 20  # of a reply before the throughput of the connection is known
LIVE_BYTES = (1 << 18, 1 << 20)
"""Memory reserved for each fetcher in addition to its share, for small replies of partitions that are not lagging: they
bypass any backlog. At least two of the smallest replies, since one may have to be rebuilt."""
QUIET_LINE = 1
"""Number of the connection to a broker that fetches the quiet partitions; with routes, every odd number."""
QUIET_MAX_WAIT_SECONDS = 1.0
_NO_PAUSE_SECONDS = 1e-4
_TROUBLE_SECONDS = 1.0  # between two updates of the reason on all partitions of an unreachable broker
_OVERHEAD_BYTES = 1 << 14  # of a reply besides its records, so that it fits into a buffer of its size


class Fetcher:
    """Fetches partitions from one source broker, their leader or a follower, over one connection.

    Args:
        replicas: chooses which.
        stamper: receives the fetched data.
        out_of_range: called with a partition whose offset the source rejects.
        diverged: called if the source's log, as far as we know it, now ends before the position; with the partition and
            that end offset.
        held_back: called with a partition that has records after an open transaction.
    """

    def __init__(
        self,
        loop: Loop,
        pool: BufferPool,
        source: ClusterClient,
        node: int,
        line: int = 0,
        *,
        budgets: Throttle,
        replicas: ReadReplicas,
        stamper: BatchStamper,
        out_of_range: Callable[[Partition], None],
        diverged: Callable[[Partition, int], None],
        held_back: Callable[[Partition], None],
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._source = source
        self._node = node
        self._line = line
        self._far = 1
        self.reply_bytes = REPLY_BYTES[0]
        self._line_bytes_per_second = FIRST_REPLY_BYTES / REPLY_SECONDS
        self._budgets = budgets
        self._replicas = replicas
        self._stamper = stamper
        self._out_of_range = out_of_range
        self._diverged = diverged
        self._held_back = held_back
        self._share = pool.share()
        self._live_share = pool.share(borrows=False)
        self._is_quiet_line = line % 2 == QUIET_LINE
        max_wait_seconds = QUIET_MAX_WAIT_SECONDS if self._is_quiet_line else MAX_WAIT_SECONDS
        self._set = FetchSet(max_wait_seconds, finds_quiet=not self._is_quiet_line)
        self._without_id: set[Partition] = set()  # if there is one, all are requested by topic name
        self._waiting = False
        self._pause_until = 0.0
        self._budget_pause_until = 0.0
        self._budget_pause_for: object = None
        self._tell_trouble_at = 0.0

    @staticmethod
    def share_of(budget_bytes: int, fetchers: int, far: int = 1) -> int:
        """Return the size of each fetcher's replies in bytes, a power of two. The outstanding replies of all fetchers
        take at most half of the budget."""
        smallest, largest = REPLY_BYTES
        share = min(largest * far, max(smallest, budget_bytes // (2 * fetchers)))
        return 1 << (share.bit_length() - 1)

    def fit(self, fetchers: int) -> None:
        """Set the reply size from the round-trip time to the source and the needs of the other fetchers, and guarantee
        each of them half of its equal share of the slot's memory. ``fetchers``: how many have partitions, 0 if this one
        has none."""
        times = min(FAR_TIMES, 1 + int(self._source.round_trip_seconds / NEAR_SECONDS))
        self._far = 1 << (times - 1).bit_length()
        part = self._pool.budget_bytes // (2 * max(1, fetchers))
        self.reply_bytes = self.share_of(self._pool.budget_bytes, max(1, fetchers), self._far)
        smallest, largest = LIVE_BYTES
        self._share.guaranteed_bytes = part if fetchers and not self._is_quiet_line else 0
        self._live_share.guaranteed_bytes = min(part, max(smallest, min(largest, part // 4))) if fetchers else 0

    def add(self, partition: Partition) -> None:
        """Start fetching the partition here."""
        if partition.source_id == NO_TOPIC_ID:
            self._without_id.add(partition)
        self._set.add(partition, self._loop.now)

    def remove(self, partition: Partition) -> None:
        """Stop fetching the partition here, if it is."""
        self._without_id.discard(partition)
        self._set.remove(partition)

    def changed(self) -> list[Partition]:
        """Return the partitions that have changed since they were last requested."""
        return self._set.changed()

    def quiet(self, most: int) -> list[Partition]:
        """Return quiet partitions, at most ``most``."""
        return self._set.quiet(self._loop.now, most)

    def is_quiet(self, partition: Partition) -> bool:
        """Return whether the partition is caught up and no reply has named it for QUIET_SECONDS."""
        return self._set.is_quiet(partition, self._loop.now)

    @property
    def asks_next(self) -> bool:
        """Whether the next `ask` includes all changes: no request is in flight, it is not paused, and the broker is
        connected."""
        return not self._waiting and not self._is_paused and self._source.channel(self._node, self._line) is not None

    @property
    def used(self) -> bool:
        """Whether it has partitions."""
        return bool(self._set)

    @property
    def held_bytes(self) -> int:
        """Bytes that it holds of its share of the slot's memory; the fetcher that holds the least asks first."""
        return self._share.held_bytes

    def ask(self) -> None:
        """Send a request if a partition can be requested, memory for the reply is available and no request is in
        flight."""
        self._share.waits = False
        if self._waiting or not self._set or self._is_paused:
            return
        if self._budgets.closed(self._loop.now):
            self._pause_for_budgets(self._budgets.wait("", self._loop.now))  # brokers close idle connections
            return
        channel = self._source.channel(self._node, self._line)
        if channel is None:
            self._unreachable()
            return
        self._set.follow_classes()
        classes = self._set.classes if self._budgets else {}
        waits = {topic_class: self._budgets.wait(topic_class, self._loop.now) for topic_class in classes}
        if waits and all(waits.values()):
            self._pause_for_budgets(min(waits.values()))
            return
        self._set.throttle(frozenset(topic_class for topic_class, wait in waits.items() if wait))
        self._set.limit({topic_class: self._budgets.bytes_at_once(topic_class) for topic_class in classes})
        self._update()
        share, size, room = self._room()
        if room and self._set.wanted:
            self._send(channel, waits, share, size, room)
            return
        share.expect_no_more(room)
        throttled = [wait for wait in waits.values() if wait]
        if throttled and not self._set.wanted:
            self._pause_for_budgets(min(throttled))

    def _update(self) -> None:
        queue_bytes = min(
            QUEUED_BYTES_PER_PARTITION * self._far, self._pool.budget_bytes // (2 * max(1, len(self._set)))
        )
        self._set.update(self._loop.now, queue_bytes)

    def _room(self) -> tuple[Share, int, int]:
        """Return the share that provides memory for a reply, how many bytes the reply may have, and how many are
        reserved, 0 if none are available. If memory is short, only partitions that are not lagging are requested, in
        small replies."""
        if self._is_quiet_line:
            return self._small(max(REPLY_BYTES[0], 1 << ((self._live_share.guaranteed_bytes // 2).bit_length() - 1)))
        size = self._share.fitting(self.size_of(self._line_bytes_per_second))
        room = 0
        if self._set.wanted or (self._set.tight and self._set.full):
            room = self._share.expect(size)
            if self._set.tight != (not room):
                self._set.tighten(tight=not room)
                self._update()
        if room or not self._set.wanted:
            return self._share, size, room
        return self._small(REPLY_BYTES[0])

    def _small(self, size: int) -> tuple[Share, int, int]:
        size = self._live_share.fitting(size)
        return self._live_share, size, self._live_share.expect(size)

    def size_of(self, line_bytes_per_second: float) -> int:
        """Return the size in bytes of a reply that such a connection delivers in REPLY_SECONDS: a power of two, at most
        ``reply_bytes``."""
        in_time = max(REPLY_BYTES[0], int(line_bytes_per_second * REPLY_SECONDS))
        return min(self.reply_bytes, 1 << (in_time.bit_length() - 1))

    def _partition_bytes(self, topic_class: str, partitions: int, reply_bytes: int) -> int:
        """Return how many bytes of one partition of a class may come in one reply. ``partitions``: how many of the
        class are fetched here."""
        smallest, largest = PARTITION_BYTES
        most = min(largest * self._far, reply_bytes, max(smallest, reply_bytes // len(self._set)))
        at_once = self._budgets.bytes_at_once(topic_class)
        return most if at_once is None else min(most, max(1, int(at_once / partitions)))

    def _send(self, channel: Channel, waits: Mapping[str, float], share: Share, reply_bytes: int, room: int) -> None:
        version = channel.version(fetch.API_KEY, fetch.BY_NAME if self._without_id else fetch.VERSIONS)
        classes = self._set.classes
        most = {
            topic_class: self._partition_bytes(topic_class, count, reply_bytes)
            for topic_class, count in classes.items()
        }
        request = self._set.next_request(by_id=version >= 13, share_of=most.__getitem__)
        asked_at = self._loop.now

        def take(frame: Buffer) -> None:
            self._answered(share, room)
            share.charge(frame)
            if frame.size >= REPLY_BYTES[0] // 2:  # a smaller reply depends on the broker's wait, not on the connection
                self._line_bytes_per_second = frame.size / max(1e-6, self._loop.now - asked_at)
            self._take(version, frame)

        def lost(_: str) -> None:
            self._answered(share, room)
            self._set.session.lost()
            self._source.refresh()

        body = fetch.encode_request(
            version,
            request.topics,
            max_wait_ms=math.ceil(self._set.max_wait(waits) * 1000),
            max_bytes=max(1, reply_bytes - _OVERHEAD_BYTES),
            session=request.session,
            forgotten=request.forgotten,
            rack=self._replicas.rack(self._node),
        )
        self._waiting = True
        channel.send(fetch.API_KEY, version, [body], on_reply=take, on_lost=lost)

    def _take(self, version: int, frame: Buffer) -> None:
        try:
            error, throttle_ms, fetched = fetch.decode_reply(version, frame.view())
            self._pause(throttle_ms / 1000)
            self._set.session.took(fetch.session_id(frame.view()), error)
            if error in fetch_session.LOST:
                return
            if error:
                self._leave()
                self._source.refresh()
                self._pause_until = max(self._pause_until, self._loop.now + error_policy.SHORTLY_SECONDS[0])
                return
            for item in fetched:
                partition = self._set.answered((item.topic, item.partition), self._loop.now)
                if partition is None:
                    continue  # it is fetched again from its current offset
                if partition.cursor.from_follower and (item.error or item.diverging is not None):
                    self._replicas.refuse(partition)
                elif item.error:
                    self._refused(partition, item.error)
                elif item.diverging is not None:
                    self._diverged(partition, item.diverging[1])
                else:
                    self._pass_on(partition, item, frame)
            self._set.all_answered()
        finally:
            frame.release()

    def _pass_on(self, partition: Partition, item: fetch.Fetched, frame: Buffer) -> None:
        cursor = partition.cursor
        tailing = 0 <= cursor.end <= cursor.offset  # it had caught up when this was requested
        partition.fetched(item.last_stable_offset, item.high_watermark, item.log_start)
        if cursor.held_back:
            self._held_back(partition)
        whole = True
        if item.records:  # a first reply names every partition, most of them without records
            self._budgets.take(partition.policy.topic_class, len(item.records))
            whole = self._stamper.take(partition, item, frame, tailing=tailing)
        if whole and (partition.position.failures == 0 or (partition.caught_up and not partition.queue.in_flight)):
            partition.clear()
        if item.preferred >= 0:
            self._replicas.prefer(partition, item.preferred)

    def _refused(self, partition: Partition, code: int) -> None:
        if code == error_codes.OFFSET_OUT_OF_RANGE:
            self._out_of_range(partition)
            return
        answer = error_policy.answer(error_policy.FETCH, code)
        if answer.refresh:
            self._source.refresh((partition.source_topic,))
        wait = random.uniform(*answer.wait_seconds)  # noqa: S311
        partition.block(
            answer.reason, f"fetch from {partition.cursor.offset}: {error_policy.name(code)}", self._loop.now + wait
        )

    def _pause(self, seconds: float) -> None:
        """Send no request for a while, then send one immediately."""
        if seconds > _NO_PAUSE_SECONDS:  # a shorter pause would not end before the next event, whenever that is
            self._pause_until = self._loop.now + seconds
            self._loop.call_later(seconds, self.ask)

    def _pause_for_budgets(self, seconds: float) -> None:
        """Send no request for a while, unless the budgets or the topic classes change."""
        if seconds > _NO_PAUSE_SECONDS:
            self._budget_pause_until, self._budget_pause_for = self._loop.now + seconds, self._budget_facts
            self._loop.call_later(seconds, self.ask)

    @property
    def _budget_facts(self) -> object:
        return self._budgets.version, self._set.classes.keys()

    @property
    def _is_paused(self) -> bool:
        now = self._loop.now
        return now < self._pause_until or (
            now < self._budget_pause_until and self._budget_pause_for == self._budget_facts
        )

    def _answered(self, share: Share, room: int) -> None:
        if self._waiting:  # a reply that cannot be read is reported as lost too
            self._waiting = False
            share.expect_no_more(room)

    def _unreachable(self) -> None:
        """Show why no data comes; the connection is being established meanwhile."""
        trouble = self._source.trouble(self._node, self._line)
        if trouble and self._loop.now >= self._tell_trouble_at:
            self._tell_trouble_at = self._loop.now + _TROUBLE_SECONDS
            reason = error_policy.away(Reason.SOURCE_UNREACHABLE, self._source.why_away(self._node, self._line))
            self._leave()
            for partition in self._set.partitions():
                if partition.position.phase is Phase.REPLICATING:
                    partition.block(reason, trouble, 0.0)

    def _leave(self) -> None:
        """Fetch partitions of which this broker is only a follower from their leaders."""
        for partition in self._set.partitions():
            if partition.cursor.from_follower:
                self._replicas.refuse(partition)
