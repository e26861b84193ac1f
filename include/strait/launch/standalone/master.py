"""A Spark Standalone master: its REST server, which starts and kills drivers, and its web page, which lists them."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from strait.config.links import Spark
from strait.errors import LaunchError

_SECONDS = 15.0
_TITLE = re.compile(r"<title>\s*(?:Error )?(?P<text>[^<]+?)\s*</title>")
_LOG_HEADER = re.compile(r"\A==== Bytes \d+-\d+ of \d+ of [^\n]*====\n")
_NO_LOG = "Error getting logs"


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver as the master lists it. ``page``: its worker's web address; "" while it has no worker."""

    id: str
    state: str
    page: str
    active: bool

    @property
    def replaced(self) -> bool:
        """Whether it was lost with its worker, and the cluster starts another under another id. It keeps this state
        forever."""
        return self.state == "RELAUNCHING"


@dataclass(frozen=True, slots=True)
class Seen:
    """A master's view of its cluster at one moment. ``applications``: the names of the running ones."""

    drivers: Sequence[Driver]
    applications: frozenset[str]
    cores: int


class Master:
    """See the module. Of several masters the leader is queried.

    `look`, `create` and `kill` raise LaunchError if no master sends a valid response.
    """

    def __init__(self, spark: Spark) -> None:
        self.url = spark.master
        hosts = [host.rpartition(":")[0] for host in spark.master.removeprefix("spark://").split(",")]
        own = spark.standalone
        self._rest = [own.rest_url.rstrip("/")] if own.rest_url else [f"http://{host}:6066" for host in hosts]
        self._pages = [own.web_url.rstrip("/")] if own.web_url else [f"http://{host}:8080" for host in hosts]
        self._token_file = None if own.token_file is None else Path(own.token_file)

    @property
    def page(self) -> str:
        """The master's web address for users."""
        return self._pages[0]

    def look(self) -> Seen:
        """Return every driver that it knows: the live ones, and the last of those that ended since it started."""
        problems = []
        for address in self._pages:
            try:
                said = json.loads(_answer(urllib.request.Request(f"{address}/json/")))  # noqa: S310
                if said["status"] == "ALIVE":
                    return _seen(said)
                problems.append(f"{address} is {said['status'].lower()}")
            except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
                problems.append(f"{address}: {_why(error)}")
        raise LaunchError(
            f"Spark master {self.url}: looking for drivers: {'; '.join(problems)}",
            hint="check that the master runs and `spark.standalone.web_url`",
        )

    def create(self, request: Mapping[str, Any]) -> str:
        """Start a driver. Return its id."""
        return str(self._ask("submitting", "create", request)["submissionId"])

    def kill(self, driver: str) -> None:
        """Kill a driver immediately. Does nothing if it no longer exists."""
        try:
            self._ask("ending a driver", f"kill/{driver}", {})
        except _Refused:
            return  # it no longer exists; callers check that themselves

    def log(
        self, page: str, driver: str, kind: str, *, first: int | None = None, last: int | None = None
    ) -> str | None:
        """Return the first or the last bytes of a driver's "stdout" or "stderr"; None if its worker does not
        respond."""
        window = f"offset=0&byteLength={first}" if first is not None else f"byteLength={last}"
        try:
            said = _answer(urllib.request.Request(f"{page}/log/?driverId={driver}&logType={kind}&{window}"))  # noqa: S310
        except (OSError, HTTPException, ValueError):
            return None
        text = _LOG_HEADER.sub("", said.decode("utf-8", errors="replace"))
        return "" if text.startswith(_NO_LOG) else text

    def _ask(self, doing: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        problems, refused = [], False
        for address in self._rest:
            try:
                request = urllib.request.Request(  # noqa: S310
                    f"{address}/v1/submissions/{path}",
                    json.dumps(body).encode(),
                    {"Content-Type": "application/json;charset=UTF-8"} | self._authorization(),
                )
                said = json.loads(_answer(request))
                if said.get("success"):
                    return dict(said)
                refused = True
                problems.append(f"{address}: {' '.join(str(said.get('message')).split())}")
            except (OSError, HTTPException, ValueError, AttributeError) as error:
                problems.append(f"{address}: {_why(error)}")
        raise (_Refused if refused else LaunchError)(
            f"Spark master {self.url}: {doing}: {'; '.join(problems)}",
            hint="check that its REST server is on (`spark.master.rest.enabled`), and `rest_url` and `token_file` in "
            "`spark.standalone`",
        )

    def _authorization(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        return {"Authorization": f"Bearer {self._token_file.read_text(encoding='ascii').strip()}"}


class _Refused(LaunchError):
    """The master rejected a request."""


def _seen(said: Mapping[str, Any]) -> Seen:
    workers = {worker["id"]: worker for worker in said["workers"]}
    return Seen(
        drivers=tuple(_drivers(said, workers)),
        applications=frozenset(application["name"] for application in said["activeapps"]),
        cores=sum(int(worker["cores"]) for worker in workers.values() if worker["state"] == "ALIVE"),
    )


def _drivers(said: Mapping[str, Any], workers: Mapping[str, Any]) -> Iterator[Driver]:
    for key, active in (("activedrivers", True), ("completeddrivers", False)):
        for one in said[key]:
            page = workers.get(one["worker"], {}).get("webuiaddress", "")
            yield Driver(one["id"], one["state"], page, active)


def _answer(request: urllib.request.Request) -> bytes:
    with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310  only http and https, by the settings
        return bytes(reply.read())


def _why(error: Exception) -> str:
    """Describe the error in a few words: the body of an HTTP error is usually an HTML page."""
    if isinstance(error, urllib.error.HTTPError):
        body = error.read(4096).decode("utf-8", errors="replace")
        title = _TITLE.search(body)
        return f"refused: {title['text'] if title else f'HTTP {error.code} {error.reason}'}"
    if isinstance(error, urllib.error.URLError):
        return str(getattr(error.reason, "strerror", None) or error.reason)
    if isinstance(error, OSError):
        return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    return "answers what no Spark master answers"
