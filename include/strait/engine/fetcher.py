"""Fetching from one source broker: one long poll at a time, the next one sent before the last one's batches are.

Back-pressure is not to fetch: nothing is asked for unless its reply fits into the slot's memory, and a partition with
enough queued is left out.
"""

import math
import random
from collections.abc import Callable, Mapping

from strait.engine.batch_stamper import BatchStamper
from strait.engine.fetch_set import MAX_WAIT_SECONDS, FetchSet
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.throttle import Throttle
from strait.model import NO_TOPIC_ID
from strait.net import error_policy
from strait.net.buffers import Buffer, BufferPool, Share
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.wire import error_codes, fetch

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
LIVE_BYTES = (1 << 18, 1 << 20)
"""Set aside for each fetcher besides its share, for small replies of partitions that are not behind: they pass beside
any backlog. At least two of the smallest replies, since one may have to be rebuilt."""
QUIET_LINE = 1
"""Of the lines to a broker the one for partitions of which seldom anything comes."""
QUIET_MAX_WAIT_SECONDS = 1.0
_NO_PAUSE_SECONDS = 1e-4
_TROUBLE_SECONDS = 1.0  # between two times that every partition is told why its broker cannot be reached
_SESSION_ERRORS = frozenset(
    {
        error_codes.FETCH_SESSION_ID_NOT_FOUND,
        error_codes.INVALID_FETCH_SESSION_EPOCH,
        error_codes.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)  # the broker has dropped the session; the next request begins another
_OVERHEAD_BYTES = 1 << 14  # of a reply besides its records, so that it fits a buffer of its size


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
        line: int = 0,
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
        self._line = line
        self._far = 1
        self.reply_bytes = REPLY_BYTES[0]
        self._line_bytes_per_second = FIRST_REPLY_BYTES / REPLY_SECONDS
        self._budgets = budgets
        self._stamper = stamper
        self._out_of_range = out_of_range
        self._diverged = diverged
        self._held_back = held_back
        self._share = pool.share()
        self._live_share = pool.share(borrows=False)
        self._set = FetchSet(QUIET_MAX_WAIT_SECONDS if line == QUIET_LINE else MAX_WAIT_SECONDS)
        self._without_id: set[Partition] = set()  # while there is one, all are asked for by their topics' names
        self._waiting = False
        self._pause_until = 0.0
        self._tell_trouble_at = 0.0

    @staticmethod
    def share_of(budget_bytes: int, fetchers: int, far: int = 1) -> int:
        """Size of each one's replies, a power of two: what all of them wait for takes at most half of the budget."""
        smallest, largest = REPLY_BYTES
        share = min(largest * far, max(smallest, budget_bytes // (2 * fetchers)))
        return 1 << (share.bit_length() - 1)

    def fit(self, fetchers: int) -> None:
        """Size the replies by the way to the source and by what the other fetchers need, and guarantee each of them
        half of what it would get if the slot's memory were divided equally. ``fetchers``: how many have partitions, 0
        if this one has none."""
        times = min(FAR_TIMES, 1 + int(self._source.round_trip_seconds / NEAR_SECONDS))
        self._far = 1 << (times - 1).bit_length()
        part = self._pool.budget_bytes // (2 * max(1, fetchers))
        self.reply_bytes = self.share_of(self._pool.budget_bytes, max(1, fetchers), self._far)
        smallest, largest = LIVE_BYTES
        self._share.guaranteed_bytes = part if fetchers and self._line != QUIET_LINE else 0
        self._live_share.guaranteed_bytes = min(part, max(smallest, min(largest, part // 4))) if fetchers else 0

    def add(self, partition: Partition) -> None:
        """From now on the partition is fetched here."""
        if partition.source_id == NO_TOPIC_ID:
            self._without_id.add(partition)
        self._set.add(partition, self._loop.now)

    def remove(self, partition: Partition) -> None:
        """The partition is not fetched here any more, if it was."""
        self._without_id.discard(partition)
        self._set.remove(partition)

    def changed(self) -> list[Partition]:
        """Those of which something has changed since they were last asked for."""
        return self._set.changed()

    def quiet(self, most: int) -> list[Partition]:
        """Some of which nothing has come for a while."""
        return self._set.quiet(self._loop.now, most)

    def is_quiet(self, partition: Partition) -> bool:
        """Whether nothing has come of it for a while."""
        return self._set.is_quiet(partition, self._loop.now)

    @property
    def asks_next(self) -> bool:
        """Its next `ask` takes up what has changed: no question is open, and there is a way to the broker."""
        return (
            not self._waiting
            and self._loop.now >= self._pause_until
            and self._source.channel(self._node, self._line) is not None
        )

    @property
    def used(self) -> bool:
        """It has partitions."""
        return bool(self._set)

    @property
    def held_bytes(self) -> int:
        """Of the slot's memory: who holds the least asks first."""
        return self._share.held_bytes

    def ask(self) -> None:
        """Ask for more if there is anything to ask for, memory for the reply, and no question open."""
        self._share.waits = False
        if self._waiting or not self._set or self._loop.now < self._pause_until:
            return
        channel = self._source.channel(self._node, self._line)
        if channel is None:
            self._unreachable()
            return
        self._set.follow_classes()
        classes = self._set.classes if self._budgets else {}
        waits = {topic_class: self._budgets.wait(topic_class, self._loop.now) for topic_class in classes}
        if waits and all(waits.values()):
            self._pause(min(waits.values()))
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
            self._pause(min(throttled))

    def _update(self) -> None:
        queue_bytes = min(
            QUEUED_BYTES_PER_PARTITION * self._far, self._pool.budget_bytes // (2 * max(1, len(self._set)))
        )
        self._set.update(self._loop.now, queue_bytes)

    def _room(self) -> tuple[Share, int, int]:
        """Where memory for a reply comes from, how large it may be, and how much is set aside, 0 if there is none. Is
        memory short, only what is not behind is asked for, in small replies."""
        if self._line == QUIET_LINE:
            size = max(REPLY_BYTES[0], 1 << ((self._live_share.guaranteed_bytes // 2).bit_length() - 1))
            return self._live_share, size, self._live_share.expect(size)
        size = self.size_of(self._line_bytes_per_second)
        room = 0
        if self._set.wanted or (self._set.tight and self._set.full):
            room = self._share.expect(size)
            if self._set.tight != (not room):
                self._set.tighten(tight=not room)
                self._update()
        if room or not self._set.wanted:
            return self._share, size, room
        return self._live_share, REPLY_BYTES[0], self._live_share.expect(REPLY_BYTES[0])

    def size_of(self, line_bytes_per_second: float) -> int:
        """Size of a reply that such a line delivers in time, a power of two, within what there is memory for."""
        in_time = max(REPLY_BYTES[0], int(line_bytes_per_second * REPLY_SECONDS))
        return min(self.reply_bytes, 1 << (in_time.bit_length() - 1))

    def _partition_bytes(self, topic_class: str, partitions: int, reply_bytes: int) -> int:
        """How much of one partition of a class, which has so many here, may come in one reply."""
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
            if frame.size >= REPLY_BYTES[0] // 2:  # a smaller one tells of the broker's waiting, not of the line
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

    def _take(self, version: int, frame: Buffer) -> None:
        try:
            error, throttle_ms, fetched = fetch.decode_reply(version, frame.view())
            self._pause(throttle_ms / 1000)
            self._set.session.took(fetch.session_id(frame.view()), error)
            if error in _SESSION_ERRORS:
                return
            if error:
                self._source.refresh()
                self._pause_until = max(self._pause_until, self._loop.now + error_policy.SHORTLY_SECONDS[0])
                return
            for item in fetched:
                partition = self._set.answered((item.topic, item.partition), self._loop.now)
                if partition is None:
                    continue  # it is fetched again from where it then is
                if item.error:
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
        tailing = 0 <= cursor.end <= cursor.offset  # it had caught up when this was asked for
        partition.heard(item.last_stable_offset, item.high_watermark, item.log_start)
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
            self._source.refresh((partition.topic,))
        wait = random.uniform(*answer.wait_seconds)  # noqa: S311
        partition.block(
            answer.reason, f"fetch from {partition.cursor.offset}: {error_policy.name(code)}", self._loop.now + wait
        )

    def _pause(self, seconds: float) -> None:
        """Ask for nothing for a while, then at once."""
        if seconds > _NO_PAUSE_SECONDS:  # else it would not end before the next event, whenever that is
            self._pause_until = self._loop.now + seconds
            self._loop.call_later(seconds, self.ask)

    def _answered(self, share: Share, room: int) -> None:
        if self._waiting:  # a reply that cannot be read is told as lost too
            self._waiting = False
            share.expect_no_more(room)

    def _unreachable(self) -> None:
        """Show why nothing comes; the channel is being dialled meanwhile."""
        trouble = self._source.trouble(self._node, self._line)
        if trouble and self._loop.now >= self._tell_trouble_at:
            self._tell_trouble_at = self._loop.now + _TROUBLE_SECONDS
            reason = error_policy.away(Reason.SOURCE_UNREACHABLE, self._source.why_away(self._node, self._line))
            for partition in self._set.partitions():
                if partition.position.phase is Phase.REPLICATING:
                    partition.block(reason, trouble, 0.0)
