"""Read a ResourceManager's replies about applications, and derive their state. Pure."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from strait.launch.base import Application, State

_LIVING = {
    "NEW": State.SUBMITTED,
    "NEW_SAVING": State.SUBMITTED,
    "SUBMITTED": State.SUBMITTED,
    "ACCEPTED": State.SUBMITTED,  # also while a lost driver has not been restarted
    "RUNNING": State.RUNNING,
}
_TAG_BYTES = 100  # YARN's limit
_OWN_WORDS = re.compile(r"strait: exit code (?P<code>\d+): (?P<words>[^\n]*)")
_EXIT_CODES = (
    re.compile(r"User application exited with (?:status )?(?P<code>\d+)"),
    re.compile(r"exited with\s+exitCode: (?P<code>\d+)"),
)
_CONTAINER = re.compile(r"^(?P<node>https?://[^/]+)/node/containerlogs/(?P<container>container_\w+)/")


@dataclass(frozen=True, slots=True)
class Seen:
    """One application as the ResourceManager lists it. ``log``: web address of its driver's log."""

    id: str
    name: str
    user: str
    state: str
    succeeded: bool
    diagnostics: str
    submitted_at_ms: int
    log: str

    @property
    def alive(self) -> bool:
        """Whether YARN runs it, or will."""
        return self.state in _LIVING

    @property
    def application(self) -> Application:
        """The form common to all launchers. Its state is running once its driver has registered, some seconds before it
        copies."""
        return Application(self.name, self.id, self._state, self.log, self.submitted_at_ms, self.exit_code)

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs, and if it was killed."""
        if self.alive or self.state == "KILLED":
            return None
        if self.succeeded:
            return 0
        found = (pattern.search(self.diagnostics) for pattern in (_OWN_WORDS, *_EXIT_CODES))
        return next((int(match["code"]) for match in found if match), None)

    @property
    def last_words(self) -> str:
        """The application's own last message, else the first line of YARN's diagnostics."""
        own = _OWN_WORDS.search(self.diagnostics)
        return own["words"] if own else next((line for line in self.diagnostics.splitlines() if line.strip()), "")

    @property
    def _state(self) -> State:
        ended = State.FINISHED if self.state == "FINISHED" and self.succeeded else State.DEAD
        return _LIVING.get(self.state, ended)


def tag_of(tag: str, name: str) -> str:
    """Return the tag by which the submissions of one application are found. YARN ignores the case of tags, and a long
    name is replaced by its hash, so matches must also be compared by name."""
    whole = f"{tag}:{name}"
    return whole if len(whole) <= _TAG_BYTES else f"{tag}:{hashlib.sha256(name.encode()).hexdigest()}"


def last_words(exit_code: int, cause: str) -> str:
    """Return the message by which an application reports to YARN why it ends; read by `Seen.last_words`."""
    return f"strait: exit code {exit_code}: {' '.join(cause.split())}"


def applications(reply: Mapping[str, Any]) -> list[Seen]:
    """Return the applications in a reply of `/ws/v1/cluster/apps`, newest first."""
    found = [_seen(one) for one in (reply["apps"] or {}).get("app", ())]
    return sorted(found, key=lambda one: (one.submitted_at_ms, one.id), reverse=True)


def driver_container(reply: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the address of the last driver's node, and the driver's container, from a reply of
    `/ws/v1/cluster/apps/ID/appattempts`."""
    attempts: Iterable[Mapping[str, Any]] = (reply["appAttempts"] or {}).get("appAttempt", ())
    links = [str(one.get("logsLink", "")) for one in sorted(attempts, key=lambda one: int(one["id"]), reverse=True)]
    found = next((match for link in links if (match := _CONTAINER.match(link))), None)
    return (found["node"], found["container"]) if found else None


def log_contents(reply: str) -> str:
    """Return a container's output from a NodeManager's reply, without the lines that the NodeManager adds."""
    _, found, rest = reply.partition("LogContents:\n")
    contents, ended, _ = rest.rpartition("\nEnd of LogType:")
    return contents + "\n" if found and ended else ""


def _seen(one: Mapping[str, Any]) -> Seen:
    return Seen(
        id=str(one["id"]),
        name=str(one["name"]),
        user=str(one["user"]),
        state=str(one["state"]),
        succeeded=one["finalStatus"] == "SUCCEEDED",
        diagnostics=str(one.get("diagnostics") or ""),
        submitted_at_ms=int(one["startedTime"]),
        log=str(one.get("amContainerLogs") or one.get("trackingUrl") or ""),
    )
