"""A YARN cluster by its REST API: requests go to the active one of several ResourceManagers."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import Any

from strait.errors import LaunchError
from strait.launch.yarn.replies import Seen, applications, driver_container, log_contents, tag_of

_SECONDS = 15.0
_NOT_FOUND = 404


class ResourceManager:
    """See the module. Every method raises LaunchError if no ResourceManager sends a valid response.

    Args:
        addresses: called for the first request; returns the web addresses of the ResourceManagers.
        tag: tag of all applications.
    """

    def __init__(self, addresses: Callable[[], Sequence[str]], tag: str) -> None:
        self._find_addresses = addresses
        self._addresses: list[str] = []
        self._tag = tag

    def of_name(self, name: str) -> list[Seen]:
        """Return the submissions of one application that YARN remembers, newest first."""
        return [one for one in self._tagged(tag_of(self._tag, name)) if one.name == name]

    def all(self) -> list[Seen]:
        """Return every application, newest first."""
        return self._tagged(self._tag)

    def kill(self, one: Seen) -> None:
        """Kill an application immediately. Does nothing if it has ended."""
        user = urllib.parse.quote(one.user)
        path = f"apps/{one.id}/state?user.name={user}"
        try:
            self._ask(f"ending {one.id}", path, {"state": "KILLED"})
        except _Refused as error:
            if error.status != _NOT_FOUND:
                raise

    def log_tail(self, id_: str, kind: str, max_bytes: int) -> str:
        """Return the end of the driver's "stdout" or "stderr"; "" if no node has it (any more)."""
        try:
            driver = driver_container(self._ask(f"looking for the driver of {id_}", f"apps/{id_}/appattempts"))
        except _Refused:
            return ""
        if driver is None:
            return ""
        node, container = driver
        try:
            return log_contents(
                _answer(f"{node}/ws/v1/node/containers/{container}/logs/{kind}?size=-{max_bytes}").decode(
                    "utf-8", errors="replace"
                )
            )
        except (OSError, HTTPException, ValueError):
            return ""

    def _tagged(self, tag: str) -> list[Seen]:
        said = self._ask("looking for applications", f"apps?applicationTags={urllib.parse.quote(tag)}")
        try:
            return applications(said)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LaunchError(
                "YARN: looking for applications: the ResourceManager answers what none answers", hint=_HINT
            ) from error

    def _ask(self, doing: str, path: str, body: Any = None) -> Any:
        address = self._active(doing)
        try:
            return json.loads(_answer(f"{address}/ws/v1/cluster/{path}", body))
        except urllib.error.HTTPError as error:
            raise _Refused(error.code, f"YARN: {doing}: {address}: {_why(error)}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise LaunchError(f"YARN: {doing}: {address}: {_why(error)}", hint=_HINT) from error

    def _active(self, doing: str) -> str:
        """Return the address of the ResourceManager that knows all applications. One that has just started responds
        before it has recovered them, and lists none then: a caller that relied on that would submit them again."""
        if not self._addresses:
            self._addresses = list(self._find_addresses())
        problems = []
        for address in self._addresses:
            try:
                state = str(json.loads(_answer(f"{address}/ws/v1/cluster/info"))["clusterInfo"]["haState"])
            except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
                problems.append(f"{address}: {_why(error)}")
            else:
                if state == "ACTIVE":
                    return address
                problems.append(f"{address}: is {state.lower()}")
        raise LaunchError(f"YARN: {doing}: {'; '.join(problems) or 'yarn-site.xml names no address'}", hint=_HINT)


_HINT = "check that the ResourceManager runs, and `spark.yarn.resource_manager`"


class _Refused(LaunchError):
    """A ResourceManager rejected a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message, hint="check `spark.yarn.user` and the rights on the queue")
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follow no redirects: a change would not be redirected, and only the active ResourceManager is queried."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _answer(url: str, body: Any = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data else {}
    request = urllib.request.Request(url, data, headers, method="PUT" if data else "GET")  # noqa: S310
    with _OPENER.open(request, timeout=_SECONDS) as reply:
        return bytes(reply.read())


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        try:
            said = json.loads(error.read(8192))["RemoteException"]["message"]
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            said = error.reason
        return f"HTTP {error.code}: {' '.join(str(said).split())}"
    if isinstance(error, urllib.error.URLError):
        return str(getattr(error.reason, "strerror", None) or error.reason)
    return str(error) if isinstance(error, OSError) else "answers what no ResourceManager answers"
