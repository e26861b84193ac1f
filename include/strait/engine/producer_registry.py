"""Reads the source's `strait.producers` on the loop, up to the end offset at the time of the call."""

from kafka.protocol.metadata import MetadataResponse

from strait.config import naming
from strait.errors import ProtocolError, StraitError
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.known_topics import METADATA, metadata_request
from strait.net.offsets import LATEST, offset_at
from strait.net.tasks import AnswerError, RequestLost, ask, quiet_channel, read
from strait.reasons import Reason
from strait.state.producer_registry import Registrations
from strait.wire import error_codes, fetch
from strait.wire.batch import split_batches
from strait.wire.records import read_records

TOPIC = naming.PRODUCERS_TOPIC
_READ_BYTES = 1 << 20


class Unread(AnswerError):
    """The topic could not be read to its end."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class ProducerRegistry:
    """The producer IDs registered in the source. ``known``: all read so far. ``missing``: the topic did not exist at
    the last check; if it never did, no link writes to the cluster."""

    def __init__(self, loop: Loop, source: ClusterClient) -> None:
        self._loop = loop
        self._source = source
        self.known = Registrations()
        self.missing = False
        self._leader = -1
        self._position = 0

    async def read_on(self, near: int) -> None:
        """Read all records up to the current end. Raises Unread. One call at a time.

        ``near`` is any broker. Each response is the broker's current one: nothing that this client remembers of the
        cluster is used, since a topic or record that was created a moment ago matters.
        """
        try:
            await self._read_on(near)
        except Unread as error:
            raise self._failed(error.reason, error.detail) from error
        except (RequestLost, ProtocolError) as error:
            raise self._failed(Reason.SOURCE_UNREACHABLE, str(error)) from error

    def _failed(self, reason: Reason, detail: str) -> Unread:
        self._leader = -1
        self._source.refresh()
        return Unread(reason, f"topic {TOPIC}: {detail}")

    async def _read_on(self, near: int) -> None:
        if self._leader < 0:
            self._leader = await self._find_leader(near)
        self.missing = self._leader < 0
        if self.missing:
            self._position = 0
            if self.known.all():  # links are running, and a later one could not be recognized
                raise Unread(Reason.PRODUCERS_UNREADABLE, "does not exist any more")
            return
        # A newly elected leader does not respond before it knows how much of the log is safe (KIP-207).
        code, end = await offset_at(
            self._loop, await quiet_channel(self._loop, self._source, self._leader), (TOPIC, 0), LATEST
        )
        if code:
            raise _refused(code, "its end")
        if end < self._position:  # the topic was recreated; known IDs stay known
            self._position = 0
        while self._position < end:
            await self._read_to(end)

    async def _find_leader(self, near: int) -> int:
        """Return the broker that leads the topic's partition, -1 if the topic does not exist."""
        channel = await quiet_channel(self._loop, self._source, near)
        reply = await ask(self._loop, channel, metadata_request(channel.version(*METADATA), [TOPIC]), MetadataResponse)
        topic = next(iter(reply.topics), None)
        if topic is None or not (topic.error_code or topic.partitions):
            raise RequestLost("the response does not contain the requested partition")
        if topic.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
            return -1
        if topic.error_code or topic.partitions[0].leader_id < 0:
            raise _refused(topic.error_code or topic.partitions[0].error_code, "metadata")
        return int(topic.partitions[0].leader_id)

    async def _read_to(self, end: int) -> None:
        def take(code: int, item: fetch.Fetched | None) -> None:
            if code:
                raise _refused(code, f"fetch from {self._position}")
            try:
                self._take_records(item, end)
            except StraitError as error:
                raise Unread(Reason.CORRUPT_BATCH, str(error)) from error

        channel = await quiet_channel(self._loop, self._source, self._leader)
        await read(self._loop, channel, TOPIC, None, 0, self._position, _READ_BYTES, take)

    def _take_records(self, item: fetch.Fetched | None, end: int) -> None:
        before = self._position
        for batch in split_batches(item.records) if item else ():
            for record in read_records(batch):
                if record.offset >= self._position:
                    self.known.apply(record.key, record.value, record.offset)
            self._position = batch.next_offset
        if self._position == before:  # compaction has removed all records up to the end
            self._position = end


def _refused(code: int, what: str) -> Unread:
    reason = Reason.SOURCE_DENIED if code == error_codes.TOPIC_AUTHORIZATION_FAILED else Reason.SOURCE_LEADERLESS
    return Unread(reason, f"{what}: {error_policy.name(code)}")
