"""A topic with a leader and followers in other racks, and the real fetchers that read it, with a clock of the test's."""

import heapq
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kafka.protocol.consumer import FetchRequest

from strait.engine.fetcher import Fetcher
from strait.engine.leadership import Leadership
from strait.engine.partition.partition import Partition
from strait.engine.read_replicas import ReadReplicas
from strait.engine.throttle import Throttle
from strait.net.buffers import Buffer, BufferPool
from strait.net.error_policy import Away
from strait.net.event_loop import Loop
from strait.net.known_topics import Leader
from strait.wire.fetch import Fetched
from strait.wire.primitives import encode_uvarint
from support.model.partitions import placed

RECORD_BYTES = 100
STEP_SECONDS = 0.05
EXPIRE_SECONDS = 300.0
_NO_LIST = b"\1"


class Clock(Loop):
    """Time passes as the test says."""

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        while self._timers and self._timers[0][0] <= self.now:
            action = heapq.heappop(self._timers)[2].action
            if action is not None:
                action()


class Replica:
    """A broker. ``end``: its last stable offset; ``error``: what it answers to each partition, ``request_error``: to each fetch; ``prefers``: the replica that
    it names, as a leader, to those who tell their rack; ``given``: how many records it has given."""

    def __init__(self, loop: Loop, pool: BufferPool) -> None:
        self.end = 0
        self.log_start = 0
        self.error = 0
        self.request_error = 0
        self.prefers = -1
        self.runs = True
        self.given = 0
        self.requests: list[Any] = []
        self._loop = loop
        self._pool = pool
        self._session: dict[int, Any] = {}
        self._open: list[tuple[Any, Callable[[Buffer], None], Callable[[str], None], float]] = []

    # --- a channel ----------------------------------------------------------------------------------------------------

    def version(self, _: int, versions: tuple[int, int]) -> int:
        return versions[0]

    def send(
        self,
        _: int,
        version: int,
        body: list[bytes],
        on_reply: Callable[[Buffer], None],
        on_lost: Callable[[str], None],
    ) -> None:
        request = FetchRequest.decode(b"".join(body), version=version)
        self.requests.append(request)
        self._open.append((request, on_reply, on_lost, self._loop.now + request.max_wait_ms / 1000))
        if request.session_epoch == 0:
            self._session.clear()
        for topic in request.topics:
            self._session |= {item.partition: item for item in topic.partitions}
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                self._session.pop(number, None)

    def ask(self, request: Any, _: Any, on_reply: Callable[[Any], None], on_lost: Callable[[str], None]) -> None:
        """Only offsets are asked for so."""
        if not self.runs:
            on_lost("it does not run")
            return
        numbers = [item.partition_index for topic in request.topics for item in topic.partitions]
        items = [SimpleNamespace(partition_index=number, error_code=0, offset=self.end) for number in numbers]
        on_reply(SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=items)]))

    # --- what it answers ----------------------------------------------------------------------------------------------

    def serve(self) -> None:
        if not self.runs:
            lost, self._open = self._open, []
            for _, _, on_lost, _ in lost:
                on_lost("it does not run")
        if not self._open:
            return
        request, on_reply, _, until = self._open[0]
        results = [self._result(request, item) for item in self._session.values() if not self.request_error]
        if any(results) or self.request_error or self._loop.now >= until:
            self._open.pop(0)
            named = [result for result in results if result]
            head = struct.pack(">ibihi", 0, 0, 0, self.request_error, 5)
            topics = encode_uvarint(2) + encode_uvarint(2) + b"t" + encode_uvarint(len(named) + 1) if named else b"\1"
            reply = b"".join([head, topics, *named, b"\0\0" if named else b"\0"])
            frame = self._pool.take(len(reply))
            frame.view()[:] = reply
            on_reply(frame)

    def _result(self, request: Any, item: Any) -> bytes:
        """A partition's part of a reply; nothing where there is no news."""
        offset, records, preferred, tags = item.fetch_offset, b"", -1, b"\0"
        if self.prefers >= 0 and request.rack_id:
            preferred = self.prefers
        elif not self.error and offset > self.end:  # it has less than was fetched elsewhere
            tags = b"\1\0" + encode_uvarint(13) + struct.pack(">iq", 0, self.end) + b"\0"
        elif not self.error:
            records = bytes((self.end - offset) * RECORD_BYTES)
            self.given += self.end - offset
            if not records and request.session_epoch:
                return b""  # no news
        ends = struct.pack(">ihqqq", item.partition, self.error, self.end, self.end, self.log_start)
        return b"".join([ends, _NO_LIST, struct.pack(">i", preferred), encode_uvarint(len(records) + 1), records, tags])


class Stamper:
    """Takes what comes as acknowledged."""

    def take(self, partition: Partition, item: Fetched, frame: Buffer, *, tailing: bool) -> bool:
        records = len(item.records) // RECORD_BYTES
        cursor = partition.cursor
        cursor.stamped(records, cursor.offset + records, cursor.offset + records, 0)
        return True


class _Cluster:
    """What the engine knows of the topic's cluster."""

    round_trip_seconds = 0.0

    def __init__(self, topic: "Topic") -> None:
        self._topic = topic
        self.interest: set[str] = set()
        self.leaders: dict[tuple[str, int], Leader] = {}
        self.topic_errors: dict[str, int] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.refreshed = 0

    @property
    def nodes(self) -> tuple[int, ...]:
        return self._topic.known

    def leader(self, *_: object) -> Leader:
        return self._topic.leader

    def channel(self, node: int, *_: int) -> Replica | None:
        return self._topic.replicas[node] if self._topic.replicas[node].runs else None

    quiet_channel = channel

    def trouble(self, node: int, *_: int) -> str:
        return "" if self._topic.replicas[node].runs else "it does not run"

    def why_away(self, *_: int) -> Away:
        return Away.UNREACHABLE

    def refresh(self, *_: object) -> None:
        self.refreshed += 1


class Topic:
    """Of one partition with replicas on brokers 1 (its leader), 2 and 3."""

    def __init__(self, rack: str = "south") -> None:
        loop = self.loop = Clock()
        pool = BufferPool(64 << 20)
        self.replicas = {node: Replica(loop, pool) for node in (1, 2, 3)}
        self.leader = Leader(1, 0)
        self.partition = placed()
        self.out_of_range: list[Partition] = []
        self.diverged: list[int] = []
        self.known = tuple(self.replicas)
        cluster: Any = _Cluster(self)
        self.cluster = cluster
        self.read_replicas = ReadReplicas(loop, cluster, rack, EXPIRE_SECONDS)
        self.leadership = Leadership(
            cluster,
            SimpleNamespace(interest=set(), leaders={}, refresh=lambda *_: None),  # type: ignore[arg-type]
            "map",
            NotImplemented,
            self.read_replicas,
            make_fetcher=lambda node, line: Fetcher(
                loop,
                pool,
                cluster,
                node,
                line,
                budgets=Throttle(),
                replicas=self.read_replicas,
                stamper=Stamper(),  # type: ignore[arg-type]
                out_of_range=self.out_of_range.append,
                diverged=lambda _, end: self.diverged.append(end),
                held_back=lambda _: None,
            ),
            make_sender=lambda *_: NotImplemented,
        )
        self.leadership.follow([self.partition], ())
        self.learn()

    def learn(self) -> None:
        """Metadata of the topic come."""
        self.cluster.on_metadata({"t"})

    def write(self, records: int, *nodes: int) -> None:
        """To the log of these replicas."""
        for node in nodes:
            self.replicas[node].end += records

    def run(self, seconds: float) -> None:
        until = self.loop.now + seconds
        while self.loop.now < until:
            self.loop.pass_time(STEP_SECONDS)
            for replica in self.replicas.values():
                replica.serve()
            self.read_replicas.step()
            self.leadership.fetch()

    def given(self) -> dict[int, int]:
        """How many records each broker has given since the last call."""
        given = {node: replica.given for node, replica in self.replicas.items() if replica.given}
        for replica in self.replicas.values():
            replica.given = 0
        return given
