"""Reading a partition's log batch by batch: which producer wrote each batch, and with which sequence numbers."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from strait.errors import ClusterUnavailable, NotAuthorized
from strait.model import TopicPartition
from strait.net import error_policy, offsets
from strait.net.bootstrap import Address, any_broker, broker_at, until_answered
from strait.net.cluster_client import METADATA, metadata_request
from strait.net.handshake import Connection
from strait.wire import error_codes, fetch
from strait.wire.batch import CONTROL, TRANSACTIONAL, Batch, split_batches
from strait.wire.rebatch import without_aborted
from strait.wire.records import read_records

_FETCH = (fetch.API_KEY, 12, 12)
"""Later versions address a topic by its ID; the callers of this module compare IDs themselves."""
_OVERHEAD_BYTES = 64 << 20  # a broker sends the first batch whole, however large
_PATIENCE_SECONDS = 10.0
_ABORT = b"\0\0"
Part = TypeVar("Part", "LogPart", "WholePart")


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


class PartitionLogs:
    """The partition logs of one cluster. Keeps a connection to each leader that it has queried, until the context
    exits."""

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._leaders: dict[TopicPartition, Address] = {}
        self._connections: dict[Address, Connection] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaders.clear()
        self._connections.clear()
        self._open.close()

    def read(self, place: TopicPartition, offset: int, most_bytes: int) -> LogPart:
        """Read from the batch that holds ``offset`` on, or from the first one that was not deleted.

        Raises:
            ClusterUnavailable: the partition's leader does not answer.
            NotAuthorized: this principal may not read the topic.
        """

        return self._until_read(place, offset, most_bytes, fetch.READ_UNCOMMITTED, _part, LogPart)

    def read_whole(self, place: TopicPartition, offset: int, most_bytes: int, *, committed: bool) -> WholePart:
        """Read as `read` does, with complete batches; ``committed``: only up to the last stable offset. Also raises
        CorruptBatch."""
        isolation = fetch.READ_COMMITTED if committed else fetch.READ_UNCOMMITTED
        whole = partial(_whole_part, committed=committed)
        return self._until_read(place, offset, most_bytes, isolation, whole, WholePart)

    def _until_read(
        self,
        place: TopicPartition,
        offset: int,
        most_bytes: int,
        isolation: int,
        part: Callable[[Any, int], Part],
        empty: Callable[[tuple[()], int, bool, int], Part],
    ) -> Part:
        def once() -> Part:
            try:
                found = self._read(place, offset, most_bytes, isolation)
            except ClusterUnavailable:
                self.__exit__(None, None, None)
                raise
            return empty((), *found) if isinstance(found, tuple) else part(found, offset)

        return until_answered(once, _PATIENCE_SECONDS)

    def _read(self, place: TopicPartition, offset: int, most_bytes: int, isolation: int) -> Any:
        """Return the leader's answer for the partition; (next, ended, start) if the log does not hold the offset."""
        connection = self._leader(place)
        topic_class = FetchRequest.FetchTopic
        asked = topic_class.FetchPartition(
            partition=place.partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=most_bytes,
        )
        request = FetchRequest(
            version=connection.version(*_FETCH),
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=most_bytes,
            isolation_level=isolation,
            session_id=0,
            session_epoch=-1,
            topics=[topic_class(topic=place.topic, partitions=[asked])],
            forgotten_topics_data=[],
            rack_id="",
        )
        reply: Any = connection.ask(request, FetchResponse, most_bytes + _OVERHEAD_BYTES)
        doing = f"reading {place} at offset {offset}"
        items = [item for topic in reply.responses for item in topic.partitions]
        code = int(reply.error_code or (items[0].error_code if items else error_policy.NOT_ANSWERED))
        if code == error_codes.TOPIC_AUTHORIZATION_FAILED:
            raise NotAuthorized(self._cluster, f"{doing}: {error_policy.name(code)}", hint="grant READ on the topic")
        if code == error_codes.OFFSET_OUT_OF_RANGE:
            start, end = (self._end(connection, place, which) for which in (offsets.EARLIEST, offsets.LATEST))
            return (start, False, start) if offset < start else (end, True, start)
        if code:
            raise ClusterUnavailable(self._cluster, f"{doing}: {error_policy.name(code)}")
        return items[0]

    def _end(self, connection: Connection, place: TopicPartition, which: int) -> int:
        request = offsets.offsets_request(
            connection.version(offsets.API_KEY, *offsets.VERSIONS), [(place.topic, place.partition)], which
        )
        told = offsets.offsets_of(connection.ask(request, ListOffsetsResponse))
        code, offset = told.get((place.topic, place.partition), (error_policy.NOT_ANSWERED, -1))
        if code:
            raise ClusterUnavailable(self._cluster, f"looking up where {place} ends: {error_policy.name(code)}")
        return offset

    def _leader(self, place: TopicPartition) -> Connection:
        if place not in self._leaders:
            self._find_leaders(place)
        address = self._leaders[place]
        if address not in self._connections:
            broker = broker_at(self._properties, self._cluster, address)
            self._connections[address] = self._open.enter_context(broker)
        return self._connections[address]

    def _find_leaders(self, place: TopicPartition) -> None:
        api_key, versions = METADATA
        with any_broker(self._properties, self._cluster) as connection:
            request = metadata_request(connection.version(api_key, *versions), [place.topic])
            reply: Any = connection.ask(request, MetadataResponse)
        addresses = {broker.node_id: (str(broker.host), int(broker.port)) for broker in reply.brokers}
        for topic in reply.topics:
            for item in topic.partitions:
                if item.leader_id in addresses:
                    self._leaders[TopicPartition(topic.name, item.partition_index)] = addresses[item.leader_id]
        if place not in self._leaders:
            raise ClusterUnavailable(self._cluster, f"reading {place}: it has no leader")


def _part(item: Any, offset: int) -> LogPart:
    batches = []
    following = offset
    for batch in split_batches(memoryview(item.records or b"")):
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
    ended = not batches or following >= item.high_watermark
    if ended:
        following = max(following, item.high_watermark)
    return LogPart(tuple(batches), following, ended, item.log_start_offset)


def _whole_part(item: Any, offset: int, *, committed: bool) -> WholePart:
    readable = item.last_stable_offset if committed else item.high_watermark
    aborted = [(one.producer_id, one.first_offset) for one in item.aborted_transactions or ()]
    batches = tuple(without_aborted(split_batches(memoryview(item.records or b"")), aborted))
    following = max([offset, *(batch.next_offset for batch in batches)])
    ended = not batches or following >= readable
    return WholePart(batches, max(following, readable if ended else 0), ended, item.log_start_offset)


def _is_abort(key: bytes | None) -> bool:
    """Whether a marker's key is that of an abort: two bytes of version, then two of its type."""
    return key is not None and key[2:4] == _ABORT
