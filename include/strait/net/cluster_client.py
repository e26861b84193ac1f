"""One cluster as the engine sees it: the leader of each partition, and channels to each broker that is needed.

Channels are dialed on demand, and redialed with back-off after a loss. Metadata has a separate channel, so that it
never waits for a long poll.

If brokers end sessions (KIP-368), a channel gets another connection before its session ends instead of
re-authenticating on the current one. Both must wait for the replies to requests in flight. But a new connection is
authenticated meanwhile and off the loop, by the only path that also picks up rotated certificates, whereas a broker
rejects data requests between the steps of a re-authentication.
"""

import random
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kafka.protocol.metadata import MetadataResponse

from strait.errors import OtherCluster, StraitError, UnsupportedRequest
from strait.net import served
from strait.net.addresses import parse_addresses
from strait.net.buffers import BufferPool
from strait.net.channel import ANSWER_SECONDS, MOST_PATIENCE, NO_REPLY, Channel
from strait.net.error_policy import Away
from strait.net.event_loop import Loop
from strait.net.handshake import Connection, dial
from strait.net.known_topics import METADATA, KnownTopics, Leader, metadata_request
from strait.net.metadata_due import MetadataDue
from strait.net.security import Security
from strait.net.traffic import Traffic

METADATA_REFRESH_SECONDS = 60.0
DIAL_BACKOFF_SECONDS = (0.1, 1.0)
ALIVE_SECONDS = ANSWER_SECONDS - 1.0
"""A connection that received bytes within this time is not suspected to be dead when another one is given up."""
SESSION_SHARE = (0.5, 0.7)  # fraction of a session's lifetime after which its channel gets another connection
LEAST_RENEWAL_SECONDS = 0.5  # a token that is not replaced gives shorter and shorter sessions
_ROUND_TRIPS = 5
_QUIET = -1
_PUT_OFF = -2


class Line(NamedTuple):
    """One of the connections to a broker: those numbered from 0 carry data, the quiet one carries requests that must
    not wait for data, and the one put off those after which a quota mutes the connection."""

    node: int
    number: int = 0

    @property
    def patient(self) -> bool:
        """Whether long response times are expected on it."""
        return self.number != _QUIET


_BOOTSTRAP = Line(-1, _QUIET)  # a connection to any broker, for metadata


class ClusterClient:
    """Names, IDs and leaders of the topics in ``interest``. ``on_metadata`` gets the topics that have changed and those
    that were requested by name. ``end``: a broker that lacks a request without which this end of a link cannot be
    copied is not used."""

    def __init__(
        self, loop: Loop, pool: BufferPool, name: str, properties: Mapping[str, str], end: served.End | None = None
    ) -> None:
        self.name = name
        self._topics = KnownTopics()
        self.leaders, self.topic_ids = self._topics.leaders, self._topics.ids
        self.topic_errors, self.partition_counts = self._topics.errors, self._topics.partition_counts
        self.interest: set[str] = set()
        self.cluster_id = ""
        """Kafka's cluster ID; "" before the first metadata."""
        self.round_trip_seconds = 0.0
        """The shortest of the last five round trips of a metadata request: little more than the network's, since load
        does not add to the shortest one."""
        self.on_metadata: Callable[[set[str]], None] = lambda _: None
        self.traffic: dict[str, Traffic] = defaultdict(Traffic)
        """Rack -> bytes exchanged with its brokers, but for metadata; "": brokers that report no rack."""
        self._racks: dict[int, str] = {}
        self._loop = loop
        self._pool = pool
        self._security = Security(name, properties)
        self._bootstrap = parse_addresses(name, properties["bootstrap.servers"])
        self._addresses: dict[int, tuple[str, int]] = {}
        self._channels: dict[Line, Channel] = {}
        self._dialling: set[Line] = set()
        self._failures: dict[Line, int] = {}
        self._silences: dict[Line, int] = {}  # number in a row, without a reply in time between them
        self._troubles: dict[Line, str] = {}
        self._end = end
        self._why_away: dict[Line, Away] = {}  # only of brokers that responded
        self._due = MetadataDue(loop, self.interest, self._ask_metadata)
        self._asked: dict[str, bool] | None = None  # topic of the request in flight -> whether it was named
        self._asked_at = 0.0
        self._round_trips: deque[float] = deque(maxlen=_ROUND_TRIPS)
        self._closed = False

    def channel(self, node: int, number: int = 0) -> Channel | None:
        """Return a channel to a broker. None while there is none: it is then being dialed, and ``trouble`` returns the
        cause.

        A broker serves one request of a connection at a time; requests that need not stay in order may use several
        connections, by ``number``.
        """
        line = Line(node, number)
        channel = self._channels.get(line)
        if channel is None and line not in self._dialling and node in self._addresses:
            self._dial(line, self._addresses[node])
        return channel

    def prompt_channel(self, node: int) -> Channel | None:
        """Return the channel to a broker over which a reply is expected soonest: a broker serves the requests of a
        connection in turn. Channels with an outstanding request that have received nothing for `ALIVE_SECONDS` are
        skipped: they may be dead, and a request sent over them would be lost. None if no channel is left."""
        waits = [
            (channel.behind_seconds if self._was_heard(channel) else ALIVE_SECONDS, -channel.heard_at, channel)
            for line, channel in self._channels.items()
            if line.node == node and line.number != _PUT_OFF and (channel.idle or self._was_heard(channel))
        ]
        if not waits:
            self.channel(node)  # dials if there is none
            return None
        wait, _, channel = min(waits, key=lambda each: each[:2])
        if wait >= ALIVE_SECONDS:
            self.channel(node, _QUIET)  # for the next request
        return channel

    def quiet_channel(self, node: int) -> Channel | None:
        """Return another channel to the same broker, for requests that must not wait for a long poll; while it is being
        dialed, the first one."""
        return self.channel(node, _QUIET) or self.channel(node)

    def put_off_channel(self, node: int) -> Channel | None:
        """Return another channel to the same broker, for requests that count for a quota: nothing else may wait until
        the broker reads from it again. None while it is being dialed."""
        return self.channel(node, _PUT_OFF)

    def trouble(self, node: int, number: int = 0) -> str:
        """Return why there is no channel to a broker, or why the cluster cannot be reached at all; "" if no cause is
        known."""
        lines = (Line(node, number), _BOOTSTRAP)
        first = sorted(lines, key=lambda line: line not in self._why_away)
        return next(filter(None, (self._troubles.get(line) for line in first)), "")

    def why_away(self, node: int, number: int = 0) -> Away:
        """Return the kind of the failure that ``trouble`` describes."""
        lines = (Line(node, number), _BOOTSTRAP)
        return next((self._why_away[line] for line in lines if line in self._why_away), Away.UNREACHABLE)

    @property
    def nodes(self) -> tuple[int, ...]:
        """IDs of the brokers that the cluster lists as alive."""
        return tuple(self._addresses)

    def leader(self, topic: str, partition: int) -> Leader:
        return self.leaders.get((topic, partition), Leader(-1, -1))

    def refresh(self, topics: Iterable[str] | None = None) -> None:
        """Request metadata soon, of all topics in ``interest`` if none are named; many calls result in one request."""
        if self._closed:
            return
        if topics is None:
            self._due.all(len(self.leaders))
        else:
            self._due.topics(topics)

    def look_again(self, topic: str, *, leaderless: bool = False) -> None:
        """Request the metadata of this topic alone, because of an error; each time that nothing has changed, the next
        request is sent later. ``leaderless``: the error is that a partition has no leader."""
        if not self._closed:
            self._due.look_again(topic, leaderless=leaderless)

    def keep_fresh(self) -> None:
        """Request metadata now and every 60 s."""
        self.refresh()
        self._loop.call_later(METADATA_REFRESH_SECONDS, self.keep_fresh)

    def expire(self) -> None:
        """Close channels whose oldest request got no reply in time."""
        for channel in list(self._channels.values()):
            channel.expire()

    def drop_connections(self, cause: str) -> None:
        """Close every channel, with the requests queued on it. Channels are redialed on demand."""
        for channel in list(self._channels.values()):
            channel.close(cause)

    def close(self) -> None:
        self._closed = True
        for channel in list(self._channels.values()):
            channel.close("the slot ends")

    def _ask_metadata(self) -> None:
        if self._asked is not None or self._closed:
            return
        channel = self._channels.get(_BOOTSTRAP)
        if channel is None:
            if _BOOTSTRAP not in self._dialling:
                self._dial(_BOOTSTRAP, random.choice([*self._bootstrap, *self._addresses.values()]))  # noqa: S311
            return
        asked = self._due.take()
        if asked is None:
            return
        self._asked = asked
        request = metadata_request(channel.version(*METADATA), asked)
        self._asked_at = self._loop.now
        channel.ask(request, MetadataResponse, on_reply=self._take_metadata, on_lost=self._metadata_lost)

    def _take_metadata(self, reply: Any) -> None:
        asked, self._asked = self._asked or {}, None
        self._measured(self._loop.now - self._asked_at)
        self.cluster_id = reply.cluster_id or ""
        addresses = {broker.node_id: (broker.host, broker.port) for broker in reply.brokers}
        for node, address in addresses.items():
            if self._addresses.get(node, address) != address:
                for channel in [channel for line, channel in self._channels.items() if line.node == node]:
                    channel.close("the broker has moved to another address")
        self._addresses = addresses
        self._racks = {broker.node_id: broker.rack or "" for broker in reply.brokers}
        changed = {topic.name for topic in reply.topics if self._topics.learn(topic, self._loop.now)}
        for topic in changed:
            self._due.changed(topic)
        self.on_metadata(changed.union(topic for topic, named in asked.items() if named))
        if self._topics.doubted(self._loop.now) and _BOOTSTRAP in self._channels:
            self._channels[_BOOTSTRAP].close("it names earlier leaders than others did")  # another broker is asked
        self._ask_metadata()  # requests the next piece

    def _measured(self, seconds: float) -> None:
        self._round_trips.append(seconds)
        self.round_trip_seconds = min(self._round_trips)

    def _metadata_lost(self, cause: str) -> None:
        if self._asked is not None:
            self._due.put_back(self._asked)
            self._asked = None
        self._troubles[_BOOTSTRAP] = cause
        self.refresh()

    def _dial(self, line: Line, address: tuple[str, int]) -> None:
        self._dialling.add(line)
        failures = self._failures.get(line, 0)
        shortest, longest = DIAL_BACKOFF_SECONDS
        wait = 0.0 if not failures else min(longest, shortest * 2**failures) * random.uniform(0.7, 1.0)  # noqa: S311
        self._loop.call_later(wait, partial(self._start_dialling, line, address))

    def _start_dialling(self, line: Line, address: tuple[str, int]) -> None:
        """Dial on a separate thread, since handshakes block; hand the result to the loop's thread."""

        def work() -> None:
            try:
                connection = self._connect(address)
            except StraitError as error:
                cause, why = str(error), _why(error)
                self._loop.call_from_thread(lambda: self._dial_failed(line, address, cause, why))
            else:
                self._loop.call_from_thread(lambda: self._dialled(line, connection))

        threading.Thread(target=work, name=f"dial-{self.name}-{line.node}", daemon=True).start()

    def _connect(self, address: tuple[str, int]) -> Connection:
        connection = dial(self.name, address, self._security)
        try:
            if self._end is not None:
                connection.require(self._end)
        except UnsupportedRequest:
            connection.close()
            raise
        return connection

    def _renew_in_time(self, line: Line, channel: Channel, connection: Connection) -> None:
        """Dial another connection before the broker ends this one's session."""
        if connection.session_seconds > 0:
            wait = connection.session_seconds * random.uniform(*SESSION_SHARE)  # noqa: S311
            wait = max(LEAST_RENEWAL_SECONDS, wait)
            self._loop.call_later(wait, partial(self._renew, line, channel, connection.address))

    def _renew(self, line: Line, channel: Channel, address: tuple[str, int]) -> None:
        if self._channels.get(line) is channel and line not in self._dialling:
            self._dial(line, self._addresses.get(line.node, address))

    def _dial_failed(self, line: Line, address: tuple[str, int], cause: str, why: Away) -> None:
        self._dialling.discard(line)
        self._why_away.pop(line, None)
        if why is not Away.UNREACHABLE:
            self._why_away[line] = why
        self._failures[line] = min(10, self._failures.get(line, 0) + 1)
        self._troubles[line] = cause
        self.refresh()  # the broker may have been removed, or have moved
        if line in self._channels:  # usable until its session ends: try to renew it until then
            self._renew(line, self._channels[line], address)

    def _dialled(self, line: Line, connection: Connection) -> None:
        self._dialling.discard(line)
        if self._closed:
            connection.close()
            return
        self._failures.pop(line, None)
        self._troubles.pop(line, None)
        self._why_away.pop(line, None)
        channel = self._channels.get(line)
        if channel is not None:
            channel.go_on_with(connection)
        else:
            traffic = None if line == _BOOTSTRAP else self.traffic[self._racks.get(line.node, "")]
            channel = Channel(self._loop, self._pool, connection, partial(self._lost, line), traffic)
            channel.patience = _patience_after(self._silences.get(line, 0))
            self._channels[line] = channel
        self._renew_in_time(line, channel, connection)
        if line == _BOOTSTRAP:
            self._ask_metadata()

    def _lost(self, line: Line, cause: str) -> None:
        lost = self._channels.pop(line)
        if not self._closed:
            self._failures[line] = self._failures.get(line, 0) + 1
            self._troubles[line] = cause
            silences = 0 if lost.answered else self._silences.get(line, 0)
            self._silences[line] = silences + (cause == NO_REPLY)
            self.refresh()
            if cause == NO_REPLY:
                self._suspect()

    def _suspect(self) -> None:
        """Close other connections that are likely dead, after one has stopped responding. Without this, one on which no
        bytes have arrived lately would take as long to detect with its next request; one that waits for a slow reply
        keeps its own timeout. `ALIVE_SECONDS` is below `ANSWER_SECONDS`, since connections that die together received
        their last bytes at different times."""
        for line, channel in list(self._channels.items()):
            if not self._was_heard(channel) and (channel.idle or not line.patient):
                channel.close(f"as silent as another connection to {self.name}")

    def _was_heard(self, channel: Channel) -> bool:
        return channel.heard_at >= self._loop.now - ALIVE_SECONDS


def _why(error: StraitError) -> Away:
    if isinstance(error, OtherCluster):
        return Away.OTHER_CLUSTER
    return Away.UNSUPPORTED if isinstance(error, UnsupportedRequest) else Away.UNREACHABLE


def _patience_after(silences: int) -> float:
    """Return the `patience` of the next connection. The first missing reply most likely means that the connection died;
    further ones may mean a slow broker."""
    return min(MOST_PATIENCE, 2.0 ** max(0, silences - 1))
