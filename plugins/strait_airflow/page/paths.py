"""Names that contain a slash in the page's paths. Servers decode a path before it is split, so such a name would become
two segments.
"""

from typing import Any
from urllib.parse import unquote

_SLASH = "%2F"


class WholeNames:
    """Middleware that keeps a slash inside a path segment encoded; `decoded` restores the name."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raw = scope.get("raw_path")
        if raw and b"%2f" in raw.lower():
            parts = (unquote(part).replace("/", _SLASH) for part in raw.decode("ascii").split("/"))
            scope = scope | {"path": "/".join(parts)}
        await self._app(scope, receive, send)


def decoded(name: str) -> str:
    """Return the name that a path segment encodes."""
    return name.replace(_SLASH, "/")
