"""What a ResourceManager says about applications, and what that means. Pure."""

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
    "ACCEPTED": State.SUBMITTED,  # also while a driver that was lost has not been started again
    "RUNNING": State.RUNNING,
}
_TAG_BYTES = 100  # at most, says YARN
_OWN_WORDS = re.compile(r"strait: exit code (?P<code>\d+): (?P<words>[^\n]*)")
_EXIT_CODES = (
    re.compile(r"User application exited with (?:status )?(?P<code>\d+)"),
    re.compile(r"exited with\s+exitCode: (?P<code>\d+)"),
)
_CONTAINER = re.compile(r"^(?P<node>https?://[^/]+)/node/containerlogs/(?P<container>container_\w+)/")


@dataclass(frozen=True, slots=True)
class Seen:
    """One application as the ResourceManager shows it. ``log``: where people find its driver's log."""

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
        """Whether YARN still runs it, or will."""
        return self.state in _LIVING

    @property
    def application(self) -> Application:
        """In the terms of every launcher. It is called running once its driver has registered, some seconds before it
        copies."""
        return Application(self.name, self.id, self._state, self.log, self.submitted_at_ms, self.exit_code)

    @property
    def exit_code(self) -> int | None:
        """None while it lives, and where it was killed."""
        if self.alive or self.state == "KILLED":
            return None
        if self.succeeded:
            return 0
        found = (pattern.search(self.diagnostics) for pattern in (_OWN_WORDS, *_EXIT_CODES))
        return next((int(match["code"]) for match in found if match), None)

    @property
    def last_words(self) -> str:
        """The application's own, else the first line that YARN has about its end."""
        own = _OWN_WORDS.search(self.diagnostics)
        return own["words"] if own else next((line for line in self.diagnostics.splitlines() if line.strip()), "")

    @property
    def _state(self) -> State:
        ended = State.FINISHED if self.state == "FINISHED" and self.succeeded else State.DEAD
        return _LIVING.get(self.state, ended)


def tag_of(tag: str, name: str) -> str:
    """By which the submissions of one application are found. YARN compares tags without regard to case, and a long name is
    cut to its hash: so what is found is compared by its name, too."""
    whole = f"{tag}:{name}"
    return whole if len(whole) <= _TAG_BYTES else f"{tag}:{hashlib.sha256(name.encode()).hexdigest()}"


def last_words(exit_code: int, cause: str) -> str:
    """How an application tells YARN why it ends; read by `Seen.last_words`."""
    return f"strait: exit code {exit_code}: {' '.join(cause.split())}"


def applications(reply: Mapping[str, Any]) -> list[Seen]:
    """Of `/ws/v1/cluster/apps`, the newest first."""
    found = [_seen(one) for one in (reply["apps"] or {}).get("app", ())]
    return sorted(found, key=lambda one: (one.submitted_at_ms, one.id), reverse=True)


def driver_container(reply: Mapping[str, Any]) -> tuple[str, str] | None:
    """Of `/ws/v1/cluster/apps/ID/appattempts`: the address of the last driver's node, and the driver's container."""
    attempts: Iterable[Mapping[str, Any]] = (reply["appAttempts"] or {}).get("appAttempt", ())
    links = [str(one.get("logsLink", "")) for one in sorted(attempts, key=lambda one: int(one["id"]), reverse=True)]
    found = next((match for link in links if (match := _CONTAINER.match(link))), None)
    return (found["node"], found["container"]) if found else None


def log_contents(reply: str) -> str:
    """What a NodeManager says that a container has printed, without its own words around it."""
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
