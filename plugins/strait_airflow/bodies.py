"""Bodies of requests, which are read within a bound before anything else is done with them.

FastAPI reads a whole body before it authenticates the client.
"""

from typing import Any

MOST_BYTES = 1 << 20


class TooLarge(ValueError):
    """The body of a request has more bytes than any request needs."""

    def __init__(self) -> None:
        super().__init__(f"the request has more than {MOST_BYTES} bytes")


class BoundedBodies:
    """ASGI middleware that answers requests with larger bodies with 413, and reads no more of them."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        body = await body_or_refusal(scope, receive, send)
        if body is not None:
            await self._app(scope, again(body, receive), send)


async def body_or_refusal(scope: Any, receive: Any, send: Any) -> bytes | None:
    """Return the whole body of a request; None if it is too large, which was answered with 413."""
    from fastapi.responses import JSONResponse

    try:
        return await _whole_body(receive)
    except TooLarge as error:
        await JSONResponse({"detail": str(error)}, 413)(scope, receive, send)
        return None


async def _whole_body(receive: Any) -> bytes:
    """Return the whole body. Raises TooLarge."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            raise TooLarge
    return bytes(body)


def again(body: bytes, receive: Any) -> Any:
    """Return a function that delivers a body that was read, and then the following messages."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def deliver() -> Any:
        return left.pop() if left else await receive()

    return deliver
