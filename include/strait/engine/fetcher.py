"""Fetching from one source broker: one long poll at a time, the next one sent before the last one's batches are.

Back-pressure is not to fetch: nothing is asked for unless its reply fits into the slot's memory, and a partition with
enough queued is left out.
"""

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from strait.engine.batch_stamper import BatchStamper
from strait.engine.partition.partition import Partition, Ticket
from strait.engine.partition.position import Phase
from strait.engine.throttle import Throttle
from strait.net import error_policy
from strait.net.buffers import Buffer, BufferPool
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.wire import error_codes, fetch
from strait.wire.fetch_session import FetchSession, Key

MAX_WAIT_SECONDS = 0.5
MAX_WAIT_WITH_A_FULL_ONE_SECONDS = 0.005  # a partition left out for its full queue may have room again in a moment
MAX_WAIT_WITH_A_LOST_ONE_SECONDS = 0.05  # one whose position is being looked up can soon be fetched too
MAX_WAIT_WITH_A_HELD_ONE_SECONDS = 0.01  # so can one whose producers are being judged
PARTITION_BYTES = (1 << 20, 4 << 20)
QUEUED_BYTES_PER_PARTITION = 4 << 20
REPLY_BYTES = (1 << 17, 16 << 20)
NEAR_SECONDS = 0.025
"""A round trip to the source up to here costs little against what a reply takes to send on. Over a longer way as much
more is asked for at once, since the next request can only begin where the last reply ends."""
FAR_TIMES = 8
REPLY_SECONDS = 2.0
"""How long a reply may be on its way: all that is led by the broker waits for it. Over a slow line less is asked for at
once."""
FIRST_REPLY_BYTES = 1 << 20
"""Before anything is known of the line."""
PAUSE_SECONDS_PER_PARTITION = 2e-6
"""Looking through all partitions takes a microsecond or so for each; this bounds what it takes of a core."""
_NO_PAUSE_SECONDS = 1e-4
_SESSION_ERRORS = frozenset(
    {
        error_codes.FETCH_SESSION_ID_NOT_FOUND,
        error_codes.INVALID_FETCH_SESSION_EPOCH,
        error_codes.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)  # the broker has dropped the session; the next request begins another
_OVERHEAD_BYTES = 1 << 14  # of a reply besides its records, so that it fits a buffer of its size

Asked = dict[Key, Ticket]


class Fetcher:
    """``stamper`` gets what comes; ``out_of_range`` partitions to look into; ``diverged`` those whose log
    at the source now ends, as far as we know it, before the position; ``held_back`` those with records behind an open
    transaction."""

    def __init__(
        self,
        loop: Loop,
        pool: BufferPool,
        source: ClusterClient,
        node: int,
        *,
        budgets: Throttle,
        stamper: BatchStamper,
        out_of_range: Callable[[Partition], None],
        diverged: Callable[[Partition, int], None],
        held_back: Callable[[Partition], None],
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._source = source
        self._node = node
        self._far = 1
        self.reply_bytes = REPLY_BYTES[0]
        self._line_bytes_per_second = FIRST_REPLY_BYTES / REPLY_SECONDS
        self._budgets = budgets
        self._stamper = stamper
        self._out_of_range = out_of_range
        self._diverged = diverged
        self._held_back = held_back
        self._partitions: deque[Partition] = deque()
        self._queue_bytes = QUEUED_BYTES_PER_PARTITION
        self._session = FetchSession()
        self._waiting = False
        self._pause_until = 0.0

    @staticmethod
    def share_of(budget_bytes: int, fetchers: int, far: int = 1) -> int:
        """Size of each one's replies, a power of two: what all of them wait for takes at most half of the budget."""
        smallest, largest = REPLY_BYTES
        share = min(largest * far, max(smallest, budget_bytes // (2 * fetchers)))
        return 1 << (share.bit_length() - 1)

    def fit(self, fetchers: int) -> None:
        """Size the replies by the way to the source and by what the other fetchers need."""
        times = min(FAR_TIMES, 1 + int(self._source.round_trip_seconds / NEAR_SECONDS))
        self._far = 1 << (times - 1).bit_length()
        self.reply_bytes = self.share_of(self._pool.budget_bytes, fetchers, self._far)

    def assign(self, partitions: Iterable[Partition]) -> None:
        """From now on these partitions are fetched here."""
        self._partitions = deque(partitions)
        self._queue_bytes = min(
            QUEUED_BYTES_PER_PARTITION * self._far, self._pool.budget_bytes // (2 * max(1, len(self._partitions)))
        )

    def ask(self) -> None:
        """Ask for more if there is anything to ask for, memory for the reply, and no question open."""
        if self._waiting or not self._partitions or self._loop.now < self._pause_until:
            return
        channel = self._source.channel(self._node)
        if channel is None:
            self._unreachable()
            return
        # As they are now: a plan may change them before anything is assigned anew.
        classes = Counter(partition.policy.topic_class for partition in self._partitions)
        waits = {topic_class: self._budgets.wait(topic_class, self._loop.now) for topic_class in classes}
        wanted, max_wait = self._wanted(waits)
        if not wanted and any(waits.values()):
            self._pause(min(filter(None, waits.values())))
        elif wanted and (room := self._pool.expect(size := self.size_of(self._line_bytes_per_second))):
            shares = {topic_class: self._share(topic_class, count, size) for topic_class, count in classes.items()}
            self._send(channel, wanted, shares, math.ceil(max_wait * 1000), size, room)

    def size_of(self, line_bytes_per_second: float) -> int:
        """Size of a reply that such a line delivers in time, a power of two, within what there is memory for."""
        in_time = max(REPLY_BYTES[0], int(line_bytes_per_second * REPLY_SECONDS))
        return min(self.reply_bytes, 1 << (in_time.bit_length() - 1))

    def _wanted(self, waits: Mapping[str, float]) -> tuple[list[Partition], float]:
        """The partitions to ask for, and how many seconds the broker may hold the request while others cannot be asked
        for."""
        now = self._loop.now
        wanted, max_wait = [], MAX_WAIT_SECONDS
        for partition in self._partitions:
            if partition.position.phase is not Phase.REPLICATING:
                if partition.position.retry_at < now + 1.0:
                    max_wait = min(max_wait, MAX_WAIT_WITH_A_LOST_ONE_SECONDS)
            elif partition.cursor.blocked_until > now:
                if partition.cursor.held:
                    max_wait = min(max_wait, MAX_WAIT_WITH_A_HELD_ONE_SECONDS)
            elif partition.queue.bytes >= self._queue_bytes and partition.queue.batches:
                max_wait = min(max_wait, MAX_WAIT_WITH_A_FULL_ONE_SECONDS)
            elif wait := waits.get(partition.policy.topic_class):
                max_wait = min(max_wait, wait)
            else:
                wanted.append(partition)
        self._partitions.rotate(-1)  # a broker fills its reply in the order asked: everybody is first in turn
        return wanted, max_wait

    def _share(self, topic_class: str, partitions: int, reply_bytes: int) -> int:
        """How much of one partition of a class, which has so many here, may come in one reply."""
        smallest, largest = PARTITION_BYTES
        share = min(largest * self._far, reply_bytes, max(smallest, reply_bytes // len(self._partitions)))
        at_once = self._budgets.bytes_at_once(topic_class)
        return share if at_once is None else min(share, max(1, int(at_once / partitions)))

    def _send(
        self,
        channel: Channel,
        wanted: list[Partition],
        shares: Mapping[str, int],
        max_wait_ms: int,
        reply_bytes: int,
        room: int,
    ) -> None:
        version = channel.version(fetch.API_KEY, fetch.VERSIONS)
        by_id = version >= 13
        asked: Asked = {}
        positions: dict[Key, fetch.FetchPosition] = {}
        waited_for = False
        for partition in wanted:
            cursor = partition.cursor
            key = partition.source_id if by_id else partition.topic, partition.number
            positions[key] = fetch.FetchPosition(
                partition.number,
                cursor.leader_epoch,
                cursor.offset,
                shares[partition.policy.topic_class],
                cursor.last_epoch,
            )
            asked[key] = partition.ticket()
            if partition.awaits_word and self._session.knows(key):
                waited_for = True
        if waited_for:
            self._session.lost()  # a reply to a new one names every partition
        asked_at = self._loop.now
        request = self._session.next_request(positions)

        def take(frame: Buffer) -> None:
            self._answered(room)
            if frame.size >= REPLY_BYTES[0] // 2:  # a smaller one tells of the broker's waiting, not of the line
                self._line_bytes_per_second = frame.size / max(1e-6, self._loop.now - asked_at)
            self._take(version, asked, frame)

        def lost(_: str) -> None:
            self._answered(room)
            self._session.lost()
            self._source.refresh()

        body = fetch.encode_request(
            version,
            request.topics,
            max_wait_ms=max_wait_ms,
            max_bytes=reply_bytes - _OVERHEAD_BYTES,
            session=request.session,
            forgotten=request.forgotten,
        )
        self._waiting = True
        channel.send(
            fetch.API_KEY,
            version,
            [body],
            on_reply=take,
            on_lost=lost,
        )

    def _take(self, version: int, asked: Asked, frame: Buffer) -> None:
        try:
            error, throttle_ms, fetched = fetch.decode_reply(version, frame.view())
            self._pause(max(throttle_ms / 1000, PAUSE_SECONDS_PER_PARTITION * len(asked)))
            self._session.took(fetch.session_id(frame.view()), error)
            if error in _SESSION_ERRORS:
                return
            if error:
                self._source.refresh()
                self._pause_until = max(self._pause_until, self._loop.now + error_policy.SHORTLY_SECONDS[0])
                return
            for item in fetched:
                ticket = asked.get((item.topic, item.partition))
                if ticket is None or not ticket.is_current:
                    continue  # it is fetched again from where it then is
                partition = ticket.partition
                if item.error:
                    self._refused(partition, item.error)
                elif item.diverging is not None:
                    self._diverged(partition, item.diverging[1])
                else:
                    self._pass_on(partition, item, frame)
        finally:
            frame.release()

    def _pass_on(self, partition: Partition, item: fetch.Fetched, frame: Buffer) -> None:
        cursor = partition.cursor
        tailing = 0 <= cursor.end <= cursor.offset  # it had caught up when this was asked for
        cursor.heard(item.last_stable_offset, item.high_watermark, item.log_start)
        if item.high_watermark > item.last_stable_offset:
            self._held_back(partition)
        whole = True
        if item.records:  # a first reply names every partition, most of them for nothing
            self._budgets.take(partition.policy.topic_class, len(item.records))
            whole = self._stamper.take(partition, item, frame, tailing=tailing)
        if whole and (partition.position.failures == 0 or (partition.caught_up and not partition.queue.in_flight)):
            partition.clear()

    def _refused(self, partition: Partition, code: int) -> None:
        if code == error_codes.OFFSET_OUT_OF_RANGE:
            self._out_of_range(partition)
            return
        answer = error_policy.answer(error_policy.FETCH, code)
        if answer.refresh:
            self._source.refresh()
        wait = random.uniform(*answer.wait_seconds)  # noqa: S311
        partition.block(
            answer.reason, f"fetch from {partition.cursor.offset}: {error_policy.name(code)}", self._loop.now + wait
        )

    def _pause(self, seconds: float) -> None:
        """Ask for nothing for a while, then at once."""
        if seconds > _NO_PAUSE_SECONDS:  # else it would not end before the next event, whenever that is
            self._pause_until = self._loop.now + seconds
            self._loop.call_later(seconds, self.ask)

    def _answered(self, room: int) -> None:
        if self._waiting:  # a reply that cannot be read is told as lost too
            self._waiting = False
            self._pool.expect_no_more(room)

    def _unreachable(self) -> None:
        """Show why nothing comes; the channel is being dialled meanwhile."""
        trouble = self._source.trouble(self._node)
        if trouble:
            for partition in self._partitions:
                if partition.position.phase is Phase.REPLICATING:
                    partition.block(Reason.SOURCE_UNREACHABLE, trouble, 0.0)
