"""Reading a partition's log batch by batch: which producer wrote each batch, and with which sequence numbers."""

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from kafka.protocol.consumer import ListOffsetsResponse

from strait.config.route_names import place_of
from strait.errors import ClusterUnavailable, CorruptBatch, NotAuthorized
from strait.model import TopicPartition
from strait.net import error_policy, offsets
from strait.net.brokers import Address, Brokers, Leader, leaders, until_answered
from strait.net.handshake import Connection
from strait.wire import error_codes, fetch
from strait.wire.batch import CONTROL, TRANSACTIONAL, Batch, split_batches
from strait.wire.rebatch import without_aborted
from strait.wire.records import read_records

_FETCH = (fetch.API_KEY, 12, 12)
"""Later versions address a topic by its ID; the callers of this module compare IDs themselves."""
_OVERHEAD_BYTES = 64 << 20  # a broker sends the first batch whole, however large
_PATIENCE_SECONDS = 10.0
_THROTTLED_SECONDS = 300.0
"""A quota that other clients share may be used up for longer than one throttle time."""
_ABORT = b"\0\0"
_NOTHING = memoryview(b"")


class LoggedBatch(NamedTuple):
    """Offsets [``base``, ``next``) of a log. ``sequence``: of its first record, as on the wire; -1 without a producer.
    ``control``: it holds no record but a transaction marker of its producer; ``aborts``: the marker is that of an
    abort. ``time_ms``: its newest timestamp, for a marker by the broker's clock."""

    base: int
    next: int
    producer_id: int
    sequence: int
    transactional: bool = False
    control: bool = False
    aborts: bool = False
    time_ms: int = -1


class LogPart(NamedTuple):
    """Batches of the log from an offset on. ``next``: the offset to read next, before the requested one if the log ends
    before it; ``ended``: there is nothing more to read now. ``start``: the first offset that was not deleted."""

    batches: tuple[LoggedBatch, ...]
    next: int
    ended: bool
    start: int


class WholePart(NamedTuple):
    """Like `LogPart`, with complete batches. Markers have 0 records, and so have batches of aborted transactions if
    only committed records were requested."""

    batches: tuple[Batch, ...]
    next: int
    ended: bool
    start: int


class RawPart(NamedTuple):
    """Bytes of the log from the batch that holds an offset on; the last batch may be cut short.

    Attributes:
        aborted: producer ID and first offset of each aborted transaction that they may hold; empty unless only
            committed records were requested.
        start: the first offset that was not deleted.
        readable: the end of the records that may be read: of the committed ones, or of all.
        outside: (next, ended, start), as in `LogPart`, if the log does not hold the offset; else empty.
    """

    records: memoryview
    aborted: Sequence[tuple[int, int]]
    start: int
    readable: int
    outside: tuple[()] | tuple[int, bool, int] = ()


class _Throttled(NamedTuple):
    """A reply without data, because a quota is used up for this long."""

    seconds: float


class PartitionLogs:
    """The partition logs of one cluster. Keeps a connection to each leader that it has queried, until the context
    exits. ``broker``: read the replicas of this broker instead of the leaders (KIP-392)."""

    def __init__(self, properties: Mapping[str, str], cluster: str, broker: Address | None = None) -> None:
        self._brokers = Brokers(properties, cluster)
        self._broker = broker
        self._cluster = cluster
        self._leaders: dict[TopicPartition, Leader] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaders.clear()
        self._brokers.drop()

    def read(self, place: TopicPartition, offset: int, most_bytes: int) -> LogPart:
        """Read from the batch that holds ``offset`` on, or from the first one that was not deleted.

        Raises:
            ClusterUnavailable: the partition's leader does not answer.
            NotAuthorized: this principal may not read the topic.
        """
        raw = self.read_raw(place, offset, most_bytes, committed=False)
        return LogPart((), *raw.outside) if raw.outside else _part(raw, offset)

    def read_whole(self, place: TopicPartition, offset: int, most_bytes: int, *, committed: bool) -> WholePart:
        """Read as `read` does, with complete batches; ``committed``: only up to the last stable offset. Also raises
        CorruptBatch."""
        raw = self.read_raw(place, offset, most_bytes, committed=committed)
        return WholePart((), *raw.outside) if raw.outside else _whole_part(raw, offset)

    def read_raw(self, place: TopicPartition, offset: int, most_bytes: int, *, committed: bool) -> RawPart:
        """Read as `read` does, without looking into the batches. Also raises CorruptBatch if the broker itself finds
        the log damaged there. Waits while a quota of the cluster lets nothing through."""
        place = place_of(place)

        def once() -> RawPart | _Throttled:
            try:
                return self._read(place, offset, most_bytes, committed=committed)
            except ClusterUnavailable:
                self.__exit__(None, None, None)
                raise

        deadline = time.monotonic() + _THROTTLED_SECONDS
        while isinstance(found := until_answered(once, _PATIENCE_SECONDS), _Throttled):
            if time.monotonic() > deadline:
                doing = (
                    f"reading {place} at offset {offset}: a quota has let nothing through for {_THROTTLED_SECONDS:g} s"
                )
                raise ClusterUnavailable(self._cluster, doing, hint="raise the consumer_byte_rate of this principal")
            time.sleep(found.seconds)  # the broker reads nothing from the connection meanwhile
        return found

    def _read(self, place: TopicPartition, offset: int, most_bytes: int, *, committed: bool) -> RawPart | _Throttled:
        connection = self._leader(place)
        position = fetch.FetchPosition(place.partition, -1, offset, most_bytes)
        version = connection.version(*_FETCH)
        isolation = fetch.READ_COMMITTED if committed else fetch.READ_UNCOMMITTED
        body = fetch.encode_request(
            version, [(place.topic, [position])], max_wait_ms=0, min_bytes=0, max_bytes=most_bytes, isolation=isolation
        )
        frame = connection.ask_raw(fetch.API_KEY, version, body, most_bytes + _OVERHEAD_BYTES)
        error, throttle_ms, found = fetch.decode_reply(version, frame)
        if throttle_ms and not error and not found:
            return _Throttled(throttle_ms / 1000)
        doing = f"reading {place} at offset {offset}"
        code = error or (found[0].error if found else error_policy.NOT_ANSWERED)
        if code == error_codes.TOPIC_AUTHORIZATION_FAILED:
            raise NotAuthorized(self._cluster, f"{doing}: {error_policy.name(code)}", hint="grant READ on the topic")
        if code == error_codes.CORRUPT_MESSAGE:
            raise CorruptBatch(f"cluster {self._cluster}: {doing}: {error_policy.name(code)}")
        if code == error_codes.OFFSET_OUT_OF_RANGE:
            start, end = (self._end(connection, place, which) for which in (offsets.EARLIEST, offsets.LATEST))
            return RawPart(_NOTHING, (), start, end, (start, False, start) if offset < start else (end, True, start))
        if code:
            raise ClusterUnavailable(self._cluster, f"{doing}: {error_policy.name(code)}")
        item = found[0]
        readable = item.last_stable_offset if committed else item.high_watermark
        return RawPart(item.records, item.aborted, item.log_start, readable)

    def _end(self, connection: Connection, place: TopicPartition, which: int) -> int:
        request = offsets.offsets_request(
            connection.version(offsets.API_KEY, *offsets.VERSIONS),
            [(place.topic, place.partition)],
            which,
            replica=offsets.CONSUMER if self._broker is None else offsets.ANY_REPLICA,
        )
        told = offsets.offsets_of(connection.ask(request, ListOffsetsResponse))
        code, offset = told.get((place.topic, place.partition), (error_policy.NOT_ANSWERED, -1))
        if code:
            raise ClusterUnavailable(self._cluster, f"looking up where {place} ends: {error_policy.name(code)}")
        return offset

    def _leader(self, place: TopicPartition) -> Connection:
        if self._broker is not None:
            return self._brokers.at(self._broker)
        if place not in self._leaders:
            self._leaders |= leaders(self._brokers.properties, self._cluster, [place.topic])
        leader = self._leaders.get(place)
        if leader is None or leader.address is None:
            raise ClusterUnavailable(self._cluster, f"reading {place}: it has no leader")
        return self._brokers.at(leader.address)


def _part(raw: RawPart, offset: int) -> LogPart:
    batches = []
    following = offset
    for batch in split_batches(raw.records):
        base = batch.base_offset if batch.magic == 2 else following  # an old compressed one has its last offset here
        following = max(following, batch.next_offset)
        control = bool(batch.attributes & CONTROL)
        batches.append(
            LoggedBatch(
                *(base, following, batch.producer_id, batch.base_sequence, bool(batch.attributes & TRANSACTIONAL)),
                *(control, control and any(_is_abort(record.key) for record in read_records(batch))),
                batch.max_timestamp,
            )
        )
    ended = not batches or following >= raw.readable
    if ended:
        following = max(following, raw.readable)
    return LogPart(tuple(batches), following, ended, raw.start)


def _whole_part(raw: RawPart, offset: int) -> WholePart:
    batches = tuple(without_aborted(split_batches(raw.records), raw.aborted))
    following = max([offset, *(batch.next_offset for batch in batches)])
    ended = not batches or following >= raw.readable
    return WholePart(batches, max(following, raw.readable if ended else 0), ended, raw.start)


def _is_abort(key: bytes | None) -> bool:
    """Whether a marker's key is that of an abort: two bytes of version, then two of its type."""
    return key is not None and key[2:4] == _ABORT
