"""Reads the source's `strait.producers` on the loop, to the end that it has when asked."""

from collections.abc import Callable
from functools import partial
from typing import Any

from kafka.protocol.metadata import MetadataResponse

from strait.config import naming
from strait.errors import StraitError
from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.cluster_client import METADATA, ClusterClient, metadata_request
from strait.net.event_loop import Loop
from strait.net.offsets import LATEST, Offsets, ask_offsets
from strait.net.reading import read_at
from strait.reasons import Reason
from strait.state.producer_registry import Registrations
from strait.wire import error_codes, fetch
from strait.wire.batch import split_batches
from strait.wire.records import read_records

TOPIC = naming.PRODUCERS_TOPIC
_READ_BYTES = 1 << 20
_DIAL_SECONDS = 5.0  # for a broker that nothing else is asked of
_LOOK_SECONDS = 0.02  # whether it is there

OnFailed = Callable[[Reason, str], None]


class ProducerRegistry:
    """``known``: all that was read so far. Where the topic does not exist it is empty: no link writes into the
    cluster."""

    def __init__(self, loop: Loop, source: ClusterClient) -> None:
        self._loop = loop
        self._source = source
        self.known = Registrations()
        self._leader = -1
        self._position = 0
        self._on_read: Callable[[], None] = lambda: None
        self._on_failed: OnFailed = lambda _reason, _detail: None

    def read_on(self, near: int, *, on_read: Callable[[], None], on_failed: OnFailed) -> None:
        """Read all that is there now. One of the two is called, once, before it may be asked again.

        ``near`` is any broker. Each answer is the broker's of now: nothing that this cluster remembers is relied on,
        since a topic or record that came a moment ago counts.
        """
        self._on_read, self._on_failed = on_read, on_failed
        if self._leader < 0:
            self._over(near, self._ask_leader)
        else:
            self._over(self._leader, self._ask_end)

    def _over(self, node: int, ask: Callable[[Channel], None], patience: float = _DIAL_SECONDS) -> None:
        """Ask over a channel to this broker, once there is one."""
        channel = self._source.quiet_channel(node)
        trouble = self._source.trouble(node)
        if channel is not None:
            ask(channel)
        elif trouble or patience <= 0:
            self._lost(trouble or f"there is no connection to broker {node}")
        else:
            self._loop.call_later(_LOOK_SECONDS, partial(self._over, node, ask, patience - _LOOK_SECONDS))

    def _ask_leader(self, channel: Channel) -> None:
        request = metadata_request(channel.version(*METADATA), [TOPIC])
        channel.ask(request, MetadataResponse, on_reply=self._take_leader, on_lost=self._lost)

    def _take_leader(self, reply: Any) -> None:
        topic = reply.topics[0]
        if topic.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
            self._on_read()
        elif topic.error_code or topic.partitions[0].leader_id < 0:
            self._refused(topic.error_code or topic.partitions[0].error_code, "metadata")
        else:
            self._leader = topic.partitions[0].leader_id
            self._over(self._leader, self._ask_end)

    def _ask_end(self, channel: Channel) -> None:
        """A leader that has just been elected does not answer this before it knows how far the log is safe
        (KIP-207)."""
        ask_offsets(channel, [(TOPIC, 0)], LATEST, on_offsets=self._take_end, on_lost=self._lost)

    def _take_end(self, offsets: Offsets) -> None:
        code, end = next(iter(offsets.values()))
        if code:
            self._refused(code, "its end")
            return
        if end < self._position:  # somebody made the topic anew; ids that were known stay so
            self._position = 0
        self._read_to(end)

    def _read_to(self, end: int) -> None:
        if self._position >= end:
            self._on_read()
        else:
            self._over(self._leader, partial(self._fetch, end))

    def _fetch(self, end: int, channel: Channel) -> None:
        def take(code: int, item: fetch.Fetched | None) -> None:
            if code:
                self._refused(code, f"fetch from {self._position}")
                return
            try:
                self._take_records(item, end)
            except StraitError as error:
                self._fail(Reason.CORRUPT_BATCH, str(error))
            else:
                self._read_to(end)

        read_at(channel, TOPIC, None, 0, self._position, _READ_BYTES, on_read=take, on_lost=self._lost)

    def _take_records(self, item: fetch.Fetched | None, end: int) -> None:
        before = self._position
        for batch in split_batches(item.records) if item else ():
            for record in read_records(batch):
                if record.offset >= self._position:
                    self.known.apply(record.key, record.value, record.offset)
            self._position = batch.next_offset
        if self._position == before:  # compaction has left nothing up to the end
            self._position = end

    def _lost(self, cause: str) -> None:
        self._fail(Reason.SOURCE_UNREACHABLE, cause)

    def _refused(self, code: int, what: str) -> None:
        reason = Reason.SOURCE_DENIED if code == error_codes.TOPIC_AUTHORIZATION_FAILED else Reason.SOURCE_LEADERLESS
        self._fail(reason, f"{what}: {error_policy.name(code)}")

    def _fail(self, reason: Reason, detail: str) -> None:
        self._leader = -1
        self._source.refresh()
        self._on_failed(reason, f"topic {TOPIC}: {detail}")
