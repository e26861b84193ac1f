"""Names with a slash in the page's paths. Servers decode a path before it is cut into its parts, so that such a name would
be two of them.
"""

from typing import Any
from urllib.parse import unquote

_SLASH = "%2F"


class WholeNames:
    """Middleware: a slash inside a part of a path stays encoded; `decoded` gives the name back."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raw = scope.get("raw_path")
        if raw and b"%2f" in raw.lower():
            parts = (unquote(part).replace("/", _SLASH) for part in raw.decode("ascii").split("/"))
            scope = scope | {"path": "/".join(parts)}
        await self._app(scope, receive, send)


def decoded(name: str) -> str:
    """The name that a part of a path stands for."""
    return name.replace(_SLASH, "/")
