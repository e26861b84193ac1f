"""Queries the logs of partitions, and whether the broker puts off the requests of other instances.

A broker applies a quota to a user and a client ID, which all instances of a link share, and reads nothing from a
connection whose last response had a throttle time until that time is over (KIP-219). For as long, the requests of
another instance are neither in the log nor lost. A produce request without records shows it: its response has the
throttle time of the quota.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from strait.engine.partition.partition import Ticket
from strait.engine.recovery.contention import Look
from strait.engine.recovery.decision import LogState
from strait.engine.recovery.producer_state import Key, Refusal, ask_log_states
from strait.errors import ProtocolError
from strait.net.buffers import Buffer
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import Future, RequestLost, fork
from strait.wire import produce

_TIMEOUT_MS = 1_000  # nothing is appended


class LogLooks:
    """The queries of logs on the destination's brokers."""

    def __init__(self, loop: Loop, destination: ClusterClient, producer_id: int) -> None:
        self._loop = loop
        self._destination = destination
        self._producer_id = producer_id
        self._put_off_until: dict[int, float] = defaultdict(lambda: float("-inf"))

    async def look(
        self, node: int, channel: Channel, tickets: Sequence[Ticket]
    ) -> tuple[Mapping[Key, LogState | Refusal], Look]:
        """Query partitions that the broker leads. Raises RequestLost, ProtocolError (the broker does not serve a
        request)."""
        asked_at = self._loop.now
        forgettable = any(ticket.partition.position.forgettable for ticket in tickets)
        put_off = fork(self._loop, self._put_off(node)) if forgettable else None
        keys = [(ticket.partition.destination, ticket.partition.number) for ticket in tickets]
        epochs = {key: self._destination.leader(*key).epoch for key in keys}
        states = await ask_log_states(self._loop, channel, self._producer_id, epochs)
        answered_at = self._loop.now
        return states, Look(asked_at, answered_at, await put_off if put_off is not None else float("-inf"))

    async def _put_off(self, node: int) -> float:
        """Return when the broker takes data again, in seconds of the loop's clock; a time that is over if it does now,
        or if that is not known. Before that time it is not queried again: it would not read the request."""
        channel = self._destination.put_off_channel(node)
        if channel is None or self._loop.now < self._put_off_until[node]:
            return self._put_off_until[node]
        throttle_ms: Future[int] = Future(self._loop)

        def take(frame: Buffer) -> None:
            try:
                throttle_ms.resolve(produce.decode_reply(version, frame.view())[0])
            finally:
                frame.release()

        try:
            version = channel.version(produce.API_KEY, produce.VERSIONS)
            body = produce.encode_request({}, _TIMEOUT_MS)
            channel.send(produce.API_KEY, version, body, on_reply=take, on_lost=throttle_ms.lost)
            if seconds := await throttle_ms / 1000:
                self._put_off_until[node] = self._loop.now + seconds
        except (RequestLost, ProtocolError):
            pass  # as without a quota
        return self._put_off_until[node]
