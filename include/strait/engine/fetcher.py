"""Fetching from one source broker: one long poll at a time, the next one sent before the last one's batches are.

Back-pressure is not to fetch: nothing is asked for unless its reply fits into the slot's memory, and a partition with
enough queued is left out.
"""

import random
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from uuid import UUID

from strait.engine import codes
from strait.engine.buffers import Buffer, BufferPool
from strait.engine.channel import Channel
from strait.engine.cluster import Cluster
from strait.engine.loop import Loop
from strait.engine.partition import OutBatch, Partition, Phase
from strait.errors import CorruptBatch
from strait.offset_map import wire_sequence
from strait.reasons import Reason
from strait.wire import batch as batches
from strait.wire import fetch

MAX_WAIT_MS = 500
MAX_WAIT_WITH_A_FULL_ONE_MS = 5  # a partition left out for its full queue may have room again in a moment
MAX_WAIT_WITH_A_LOST_ONE_MS = 50  # one whose position is being looked up can soon be fetched too
PARTITION_BYTES = (1 << 20, 4 << 20)
QUEUED_BYTES_PER_PARTITION = 4 << 20
REPLY_BYTES = (1 << 17, 16 << 20)
_OVERHEAD_BYTES = 1 << 14  # of a reply besides its records, so that it fits a buffer of its size
_TIMEOUT_SECONDS = 30.0

Asked = dict[tuple[str | UUID, int], tuple[Partition, int]]


class Fetcher:
    """``emit`` gets each batch that may pass, restamped and in order; ``out_of_range`` partitions to look into."""

    def __init__(
        self,
        loop: Loop,
        pool: BufferPool,
        source: Cluster,
        node: int,
        *,
        producer_id: int,
        emit: Callable[[OutBatch], None],
        out_of_range: Callable[[Partition], None],
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._source = source
        self._node = node
        self._producer_id = producer_id
        self.reply_bytes = REPLY_BYTES[0]
        self._emit = emit
        self._out_of_range = out_of_range
        self._partitions: deque[Partition] = deque()
        self._waiting = False
        self._pause_until = 0.0

    @staticmethod
    def share_of(budget_bytes: int, fetchers: int) -> int:
        """Size of each one's replies, a power of two: what all of them wait for takes at most half of the budget."""
        smallest, largest = REPLY_BYTES
        share = min(largest, max(smallest, budget_bytes // (2 * fetchers)))
        return 1 << (share.bit_length() - 1)

    def assign(self, partitions: Iterable[Partition]) -> None:
        """From now on these partitions are fetched here."""
        self._partitions = deque(partitions)

    def ask(self) -> None:
        """Ask for more if there is anything to ask for, memory for the reply, and no question open."""
        if self._waiting or not self._partitions or self._loop.now < self._pause_until:
            return
        channel = self._source.channel(self._node)
        if channel is None:
            self._unreachable()
            return
        wanted, max_wait_ms = self._wanted()
        if wanted and self._pool.expect(self.reply_bytes):
            self._send(channel, wanted, max_wait_ms, self.reply_bytes)

    def _wanted(self) -> tuple[list[Partition], int]:
        """The partitions to ask for, and how long the broker may hold the request while others cannot be asked for."""
        now = self._loop.now
        wanted, max_wait_ms = [], MAX_WAIT_MS
        for partition in self._partitions:
            if partition.phase is not Phase.RUNNING:
                if partition.retry_at < now + 1.0:
                    max_wait_ms = min(max_wait_ms, MAX_WAIT_WITH_A_LOST_ONE_MS)
            elif partition.blocked_until > now:
                continue
            elif partition.queued_bytes >= QUEUED_BYTES_PER_PARTITION:
                max_wait_ms = MAX_WAIT_WITH_A_FULL_ONE_MS
            else:
                wanted.append(partition)
        self._partitions.rotate(-1)  # a broker fills its reply in the order asked: everybody is first in turn
        return wanted, max_wait_ms

    def _send(self, channel: Channel, wanted: list[Partition], max_wait_ms: int, reply_bytes: int) -> None:
        version = channel.version(fetch.API_KEY, fetch.VERSIONS)
        by_id = version >= 13
        smallest, largest = PARTITION_BYTES
        share = min(largest, reply_bytes, max(smallest, reply_bytes // len(wanted)))
        asked: Asked = {}
        topics: dict[str | UUID, list[fetch.FetchPosition]] = {}
        for partition in wanted:
            key = partition.source_id if by_id else partition.topic
            epoch = self._source.leader(partition.topic, partition.number).epoch
            position = fetch.FetchPosition(partition.number, epoch, partition.position, share)
            topics.setdefault(key, []).append(position)
            asked[key, partition.number] = (partition, partition.generation)

        def take(frame: Buffer) -> None:
            self._answered(reply_bytes)
            self._take(version, asked, frame)

        def lost(_: str) -> None:
            self._answered(reply_bytes)
            self._source.refresh()

        body = fetch.encode_request(
            version, topics.items(), max_wait_ms=max_wait_ms, max_bytes=reply_bytes - _OVERHEAD_BYTES
        )
        self._waiting = True
        channel.send(
            fetch.API_KEY,
            version,
            [body],
            on_reply=take,
            on_lost=lost,
            timeout_seconds=_TIMEOUT_SECONDS,
        )

    def _take(self, version: int, asked: Asked, frame: Buffer) -> None:
        try:
            error, throttle_ms, fetched = fetch.decode_reply(version, frame.view())
            self._pause_until = self._loop.now + throttle_ms / 1000
            if error:
                self._source.refresh()
                self._pause_until = max(self._pause_until, self._loop.now + codes.SHORTLY_SECONDS[0])
                return
            for item in fetched:
                partition, generation = asked.get((item.topic, item.partition), (None, 0))
                if partition is None or partition.generation != generation or partition.retired:
                    continue  # doubted or given away meanwhile: it is fetched anew from where it then stands
                if item.error:
                    self._refused(partition, item.error)
                else:
                    self._pass_on(partition, item, frame)
        finally:
            frame.release()

    def _pass_on(self, partition: Partition, item: fetch.Fetched, frame: Buffer) -> None:
        tailing = 0 <= partition.end <= partition.position  # it had caught up when this was asked for
        partition.end = item.last_stable_offset
        partition.blocked_until = 0.0
        try:
            for batch in batches.split_batches(item.records):
                if batch.magic == 2 and batch.next_offset <= partition.position:
                    continue  # a broker returns whole batches, also the part before the position
                why = batches.refusal(batch, partition.position)
                if why is not None:
                    self._block(partition, *why)
                    return
                self._restamp(partition, batch, frame, tailing)
        except CorruptBatch as error:
            self._block(partition, Reason.CORRUPT_BATCH, str(error))
            return
        if partition.failures == 0 or (partition.caught_up and not partition.in_flight):
            partition.clear()

    def _restamp(self, partition: Partition, batch: batches.Batch, frame: Buffer, tailing: bool) -> None:
        batches.restamp(batch, self._producer_id, wire_sequence(partition.sequence))
        frame.hold()
        out = OutBatch(
            partition,
            partition.generation,
            batch.view,
            frame,
            partition.sequence,
            batch.records,
            batch.crc,
            batch.max_timestamp,
            tailing,
        )
        partition.position = batch.next_offset
        partition.sequence += batch.records
        self._emit(out)

    def _refused(self, partition: Partition, code: int) -> None:
        if code == 1:
            self._out_of_range(partition)
            return
        answer = codes.answer(codes.FETCH, code, Reason.SOURCE_LEADERLESS)
        if answer.refresh:
            self._source.refresh()
        wait = random.uniform(*answer.wait_seconds)  # noqa: S311
        partition.block(answer.reason, f"fetch from {partition.position}: {codes.name(code)}", self._loop.now + wait)

    def _block(self, partition: Partition, reason: Reason, detail: str) -> None:
        wait = random.uniform(*codes.wait_for(reason))  # noqa: S311
        partition.block(reason, detail, self._loop.now + wait)

    def _answered(self, reply_bytes: int) -> None:
        if self._waiting:  # a reply that cannot be read is told as lost too
            self._waiting = False
            self._pool.expect_no_more(reply_bytes)

    def _unreachable(self) -> None:
        """Show why nothing comes; the channel is being dialled meanwhile."""
        trouble = self._source.trouble(self._node)
        if trouble:
            for partition in self._partitions:
                if partition.phase is Phase.RUNNING:
                    partition.block(Reason.SOURCE_UNREACHABLE, trouble, 0.0)


def chain_digest(digest: int, crc: int) -> int:
    """The digest of a row of batches grows by one batch's CRC-32C; order matters."""
    return zlib.crc32(crc.to_bytes(4, "big"), digest)
