"""Reading one partition at one place, outside the stream of what is copied."""

from collections.abc import Callable

from strait.errors import StraitError
from strait.net.buffers import Buffer
from strait.net.channel import Channel
from strait.wire import fetch

FIRST_BATCH_BYTES = 1
"""A broker returns the first batch whole, however large."""

_BY_NAME = (fetch.VERSIONS[0], 12)


def read_at(
    channel: Channel,
    topic: str,
    topic_id: bytes | None,
    partition: int,
    offset: int,
    most_bytes: int,
    *,
    on_read: Callable[[int, fetch.Fetched | None], None],
    on_lost: Callable[[str], None],
) -> None:
    """Ask for what is at ``offset``, transactions open or not. One of the two is called.

    Args:
        topic_id: None asks for the topic by its name, whichever it is now.
        on_read: gets the error's code or 0, and what came; its records are valid during the call.
        on_lost: gets the cause; also what ``on_read`` raises as StraitError.
    """
    version = channel.version(fetch.API_KEY, _BY_NAME if topic_id is None else fetch.VERSIONS)
    key = topic if topic_id is None or version < 13 else topic_id
    position = fetch.FetchPosition(partition, -1, offset, most_bytes)

    def on_reply(frame: Buffer) -> None:
        try:
            error, _, fetched = fetch.decode_reply(version, frame.view())
            item = fetched[0] if fetched else None
            on_read(error or (item.error if item else 0), item)
        except StraitError as trouble:
            on_lost(str(trouble))
        finally:
            frame.release()

    body = fetch.encode_request(
        version, [(key, [position])], max_wait_ms=0, max_bytes=most_bytes, isolation=fetch.READ_UNCOMMITTED
    )
    channel.send(fetch.API_KEY, version, [body], on_reply=on_reply, on_lost=on_lost)
