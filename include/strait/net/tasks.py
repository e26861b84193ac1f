"""Coroutines on the engine's loop, for rare code paths that should read from top to bottom.

A coroutine awaits only a `Future`. It is resumed by the loop, never inside the callback that resolved the future, so
its exceptions cannot be mistaken for a malformed reply. The hot paths, fetch and produce, keep plain callbacks.
"""

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from strait.errors import StraitError
from strait.net.buffers import Buffer
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.wire import fetch

T = TypeVar("T")

FIRST_BATCH_BYTES = 1
"""A broker returns the first batch whole, however large."""

_DIAL_SECONDS = 5.0  # for a broker to which no other requests are sent
_LOOK_SECONDS = 0.02  # between checks for the connection


class RequestLost(Exception):
    """No reply came, or none that can be decoded; the text is the cause."""


class AnswerError(Exception):
    """The reply cannot be used: raised by the ``take`` of `read` for the waiting coroutine."""


class Future(Generic[T]):
    """A result that is not available yet. At most one coroutine waits for it; only the first result is kept."""

    __slots__ = ("_error", "_loop", "_value", "_waiting", "done")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._value: T
        self._error: BaseException | None = None
        self._waiting: Callable[[], None] | None = None
        self.done = False

    def resolve(self, value: T) -> None:
        if not self.done:
            self._value = value
            self._finish()

    def fail(self, error: BaseException) -> None:
        if not self.done:
            self._error = error
            self._finish()

    def lost(self, cause: str) -> None:
        """Fail with RequestLost; serves as the ``on_lost`` of a request."""
        self.fail(RequestLost(cause))

    def call_when_done(self, action: Callable[[], None]) -> None:
        self._waiting = action
        if self.done:
            self._loop.call_later(0.0, action)

    def _finish(self) -> None:
        self.done = True
        if self._waiting is not None:
            self._loop.call_later(0.0, self._waiting)

    def __await__(self) -> "Generator[Future[T], None, T]":
        if not self.done:
            yield self
        if self._error is not None:
            raise self._error
        return self._value


def run(coroutine: "Coroutine[Future[Any], None, None]") -> None:
    """Run a coroutine until its end. Its exceptions end the loop's turn, as from any callback."""
    try:
        waits_for = coroutine.send(None)
    except StopIteration:
        return
    waits_for.call_when_done(partial(run, coroutine))


def fork(loop: Loop, coroutine: "Coroutine[Future[Any], None, T]") -> Future[T]:
    """Run a coroutine concurrently with the caller, which awaits its result, RequestLost or AnswerError."""
    result: Future[T] = Future(loop)

    async def work() -> None:
        try:
            result.resolve(await coroutine)
        except (RequestLost, AnswerError) as error:
            result.fail(error)

    run(work())
    return result


def sleep(loop: Loop, seconds: float) -> Future[None]:
    """Return a future that is done after that many seconds."""
    result: Future[None] = Future(loop)
    loop.call_later(seconds, partial(result.resolve, None))
    return result


async def quiet_channel(loop: Loop, client: ClusterClient, node: int) -> Channel:
    """Return a channel to a broker, once there is one, for requests that must not wait for a long poll. Raises
    RequestLost."""
    deadline = loop.now + _DIAL_SECONDS
    while (channel := client.quiet_channel(node)) is None:
        trouble = client.trouble(node)
        if trouble or loop.now > deadline:
            raise RequestLost(trouble or f"no connection to broker {node}")
        await sleep(loop, _LOOK_SECONDS)
    return channel


def ask(loop: Loop, channel: Channel, request: Any, response_class: Any) -> Future[Any]:
    """Send one of kafka-python's requests; the result is its decoded reply. Raises RequestLost when awaited."""
    result: Future[Any] = Future(loop)
    channel.ask(request, response_class, on_reply=result.resolve, on_lost=result.lost)
    return result


def read(
    loop: Loop,
    channel: Channel,
    topic: str,
    topic_id: bytes | None,
    partition: int,
    offset: int,
    most_bytes: int,
    take: Callable[[int, fetch.Fetched | None], T],
) -> Future[T]:
    """Read one partition at ``offset``, including records of open transactions, outside the copied stream.

    Args:
        topic_id: None or all zeros requests the topic by its name, whichever topic has that name now.
        take: makes the result from the error code, 0 for none, and the fetched data, whose records are valid during the
            call. An AnswerError that it raises is raised when the result is awaited, as is RequestLost.
    """
    result: Future[T] = Future(loop)
    version = channel.version(fetch.API_KEY, fetch.VERSIONS if topic_id and any(topic_id) else fetch.BY_NAME)
    key = topic if topic_id is None or version < 13 else topic_id

    def on_reply(frame: Buffer) -> None:
        try:
            error, _, fetched = fetch.decode_reply(version, frame.view())
            item = fetched[0] if fetched else None
            result.resolve(take(error or (item.error if item else 0), item))
        except AnswerError as refused:
            result.fail(refused)
        except StraitError as trouble:
            result.lost(str(trouble))
        finally:
            frame.release()

    position = fetch.FetchPosition(partition, -1, offset, most_bytes)
    body = fetch.encode_request(
        version, [(key, [position])], max_wait_ms=0, max_bytes=most_bytes, isolation=fetch.READ_UNCOMMITTED
    )
    channel.send(fetch.API_KEY, version, [body], on_reply=on_reply, on_lost=result.lost)
    return result
