"""Reads of single records from many partitions, combined into one request per broker: over a long distance, separate
round trips would take most of the time."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from strait.errors import StraitError
from strait.net.buffers import Buffer
from strait.net.channel import Channel
from strait.net.event_loop import Loop
from strait.net.tasks import AnswerError, Future
from strait.pieces import pieces
from strait.wire import fetch
from strait.wire.primitives import Topic

T = TypeVar("T")

TOGETHER = 64
"""Partitions in one request."""
SHARE_BYTES = 64 << 10
"""Bytes that a request may return for each partition."""
_LENGTH_END = 12
"""A batch starts with its base offset and its length, which counts the bytes from here on."""


class NotShown(AnswerError):
    """No complete batch was returned: the first one is larger than a share, or the log ends there. A separate read of
    the partition shows which."""


class _Read(NamedTuple):
    topic: str
    topic_id: bytes
    partition: int
    offset: int
    take: Callable[[int, fetch.Fetched | None], Any]
    result: Future[Any]

    def key(self, version: int) -> tuple[Topic, int]:
        return self.topic if version < 13 else self.topic_id, self.partition


class CombinedReads:
    """Combines the reads of one turn of the loop that go to one broker over one of its channels."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._asked: dict[Channel, list[_Read]] = {}

    def read(
        self,
        channel: Channel,
        topic: str,
        topic_id: bytes,
        number: int,
        offset: int,
        take: Callable[[int, fetch.Fetched | None], T],
    ) -> Future[T]:
        """Read as `strait.net.tasks.read` does; awaiting the result may also raise NotShown."""
        result: Future[T] = Future(self._loop)
        asked = self._asked.setdefault(channel, [])
        asked.append(_Read(topic, topic_id, number, offset, take, result))
        if len(asked) == 1:
            self._loop.call_later(0.0, partial(self._send_all, channel))
        return result

    def _send_all(self, channel: Channel) -> None:
        asked = self._asked.pop(channel)
        while asked:  # a request may name each partition once, and routes of a topic read the same one
            once: dict[tuple[str, int], _Read] = {}
            left = [one for one in asked if once.setdefault((one.topic, one.partition), one) is not one]
            for piece in pieces(list(once.values()), TOGETHER):
                self._send(channel, piece)
            asked = left

    def _send(self, channel: Channel, reads: Sequence[_Read]) -> None:
        by_name = any(not any(one.topic_id) for one in reads)
        version = channel.version(fetch.API_KEY, fetch.BY_NAME if by_name else fetch.VERSIONS)
        positions: dict[Topic, list[fetch.FetchPosition]] = {}
        for one in reads:
            topic, number = one.key(version)
            positions.setdefault(topic, []).append(fetch.FetchPosition(number, -1, one.offset, SHARE_BYTES))
        body = fetch.encode_request(
            version,
            positions.items(),
            max_wait_ms=0,
            max_bytes=SHARE_BYTES * len(reads),
            isolation=fetch.READ_UNCOMMITTED,
        )

        def on_lost(cause: str) -> None:
            for one in reads:
                one.result.lost(cause)

        def on_reply(frame: Buffer) -> None:
            try:
                error, _, fetched = fetch.decode_reply(version, frame.view())
                items = {(item.topic, item.partition): item for item in fetched}
                for one in reads:
                    _take(one, error, items.get(one.key(version)))
            except StraitError as trouble:
                on_lost(str(trouble))
            finally:
                frame.release()

        channel.send(fetch.API_KEY, version, [body], on_reply=on_reply, on_lost=on_lost)


def _take(one: _Read, error: int, item: fetch.Fetched | None) -> None:
    code = error or (item.error if item is not None else 0)
    try:
        if not code and (item is None or not _holds_batch(item.records)):
            raise NotShown
        one.result.resolve(one.take(code, item))
    except AnswerError as refused:
        one.result.fail(refused)


def _holds_batch(records: memoryview) -> bool:
    """Whether the first batch is complete."""
    size = len(records)
    return size >= _LENGTH_END and _LENGTH_END + int.from_bytes(records[8:_LENGTH_END], "big") <= size
