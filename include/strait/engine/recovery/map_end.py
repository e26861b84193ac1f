"""Waits until the link's map is read up to its present end: another writer of the link may have recorded gaps before
the records that were just found."""

from typing import NamedTuple

from strait.engine.partition.partition import Partition
from strait.engine.recovery.known_runs import Map
from strait.engine.recovery.producer_state import Refusal
from strait.engine.recovery.unresolved import Unresolved
from strait.errors import ProtocolError
from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.error_policy import Away
from strait.net.event_loop import Loop
from strait.net.offsets import LATEST, offset_at
from strait.net.tasks import Future, RequestLost, run
from strait.reasons import Reason

MAP_SECONDS = 20.0
"""A reader that has not reached the map's end within this time has lost its place, or cannot reach the map."""


class _Reading(NamedTuple):
    end: int
    deadline: float
    waiting: list[Future[None]]


class MapEnd:
    """All callers that wait at the same moment share one request."""

    def __init__(self, loop: Loop, destination: ClusterClient, known: Map, map_topic: str) -> None:
        self._loop = loop
        self._destination = destination
        self._known = known
        self._topic = map_topic
        self._standing: list[tuple[Partition, Future[None]]] = []  # wait for the end offset to be queried
        self._asking = False
        self._reading: list[_Reading] = []  # wait for the map to be read up to that end

    @property
    def is_awaited(self) -> bool:
        """Whether partitions wait for the map to be read further."""
        return bool(self._reading)

    def reached(self, partition: Partition) -> Future[None]:
        """Return a future that resolves once the map is read up to the end that it has when queried. Raises Unresolved,
        RequestLost."""
        standing: Future[None] = Future(self._loop)
        self._standing.append((partition, standing))
        return standing

    def step(self) -> None:
        """Query the map's end for new callers; resolve callers once the map is read up to it, fail them at the
        deadline."""
        if self._standing and not self._asking:
            self._ask()
        remaining = []
        for reading in self._reading:
            if self._known.map_end >= reading.end:
                for standing in reading.waiting:
                    standing.resolve(None)
            elif self._loop.now > reading.deadline:
                detail = f"offset map {self._topic}: read up to {self._known.map_end} of {reading.end}"
                self._fail(
                    reading.waiting, Unresolved(Reason.DESTINATION_UNREACHABLE, detail, error_policy.SHORTLY_SECONDS)
                )
            else:
                remaining.append(reading)
        self._reading = remaining

    def _ask(self) -> None:
        node = self._destination.leader(self._topic, 0).node
        channel = self._destination.prompt_channel(node) if node >= 0 else None
        if channel is None:
            self._destination.refresh((self._topic,))
            error = self._destination.topic_errors.get(self._topic, 0)
            why = self._destination.why_away(node)
            is_known = node >= 0 or why is not Away.UNREACHABLE
            trouble = (
                error_policy.name(error)
                if error
                else self._destination.trouble(node)
                if is_known
                else "it has no leader"
            )
            for partition, _ in self._standing if trouble else ():
                away = error_policy.away(Reason.DESTINATION_UNREACHABLE, why)
                reason = away if is_known else Reason.DESTINATION_LEADERLESS
                partition.show(reason, f"the link's map, topic {self._topic}: {trouble}")
            return
        asked, self._standing = [standing for _, standing in self._standing], []
        self._asking = True
        run(self._read(channel, asked))

    async def _read(self, channel: Channel, asked: list[Future[None]]) -> None:
        trouble: Exception
        try:
            error, end = await offset_at(self._loop, channel, (self._topic, 0), LATEST)
            if not error and end >= self._known.map_end:
                self._reading.append(_Reading(end, self._loop.now + MAP_SECONDS, asked))
                return
            if error:
                trouble = Unresolved.refused(Refusal(error, f"the end of {self._topic}"))
            else:
                detail = f"offset map {self._topic}: log end offset {end} is below {self._known.map_end}, up to which it was read"
                trouble = Unresolved(Reason.DESTINATION_UNREACHABLE, detail, error_policy.SHORTLY_SECONDS)
        except (RequestLost, ProtocolError) as lost:
            trouble = RequestLost(f"log end offset of {self._topic}: {lost}")
        finally:
            self._asking = False
        self._destination.refresh((self._topic,))
        self._fail(asked, trouble)

    def _fail(self, waiting: list[Future[None]], trouble: Exception) -> None:
        for standing in waiting:
            standing.fail(trouble)
