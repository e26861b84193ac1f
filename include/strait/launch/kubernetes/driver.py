"""Read a driver's pod as the API server returns it, and derive the application's state. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strait.launch.base import State
from strait.launch.kubernetes import names
from strait.launch.kubernetes.templates import RUN_VOLUME

START_SECONDS = 900.0
"""Time in which a driver must start, including its wait for a node. After that it is treated as dead, with the reason
of its wait, and is submitted again."""

LOST_SECONDS = 60.0
"""Time that a node may take to remove a pod after its grace period. After that the node is treated as lost: its pod is
shown as running until the pod is removed by force."""

_STATES = {
    "Pending": State.SUBMITTED,
    "Running": State.SUBMITTED,  # RUNNING once it is ready
    "Succeeded": State.FINISHED,
    "Failed": State.DEAD,
}


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver's pod as last seen. ``reason``: why it waits or ended, if Kubernetes reports it; else ""."""

    name: str
    pod: str
    uid: str
    submission: str
    link: str
    group: str
    phase: str
    ready: bool
    remove_by_ms: int | None
    """When its grace period ends, if it is being deleted."""
    created_at_ms: int
    ended_at_ms: int | None
    exit_code: int | None
    reason: str
    container: str
    """Name of Spark's container in the pod; "" if the pod has only one."""

    @property
    def deleting(self) -> bool:
        """Whether it is being deleted."""
        return self.remove_by_ms is not None

    def is_lost(self, now_ms: int) -> bool:
        """Return whether its node has not removed it in time."""
        return self.remove_by_ms is not None and now_ms > self.remove_by_ms + LOST_SECONDS * 1000

    def state(self, now_ms: int) -> State:
        """Return the state of its application. A pod that is being deleted is alive until it has been removed, or its node
        is lost."""
        if self.phase == "Running" and self.exit_code is not None:  # other containers of it still run
            return State.DEAD if self.exit_code else State.FINISHED
        if self.phase in ("Pending", "Running") and self.is_lost(now_ms):
            return State.DEAD
        if self.phase == "Running" and self.ready:
            return State.RUNNING
        if self.phase == "Pending" and now_ms - self.created_at_ms > START_SECONDS * 1000:
            return State.DEAD
        return _STATES.get(self.phase, State.UNKNOWN)


def driver_of(pod: Mapping[str, Any]) -> Driver:
    """Return the driver of a Pod in the form of the API's JSON."""
    metadata, status = pod["metadata"], pod.get("status", {})
    labels = metadata.get("labels", {})
    name = _container_of(pod)
    statuses: Sequence[Mapping[str, Any]] = status.get("containerStatuses") or []
    container: Mapping[str, Any] = next((one for one in statuses if name in ("", one.get("name"))), {})
    ended = container.get("state", {}).get("terminated") or {}
    created_at_ms = _ms(metadata["creationTimestamp"])
    return Driver(
        name=(metadata.get("annotations") or {}).get(names.APPLICATION, metadata["name"]),
        pod=metadata["name"],
        uid=metadata["uid"],
        submission=labels.get(names.SUBMISSION, str(created_at_ms)),
        link=labels.get(names.LINK, ""),
        group=labels.get(names.GROUP, ""),
        phase=status.get("phase", "Pending"),
        ready=bool(container.get("ready")),
        remove_by_ms=_ms(metadata["deletionTimestamp"]) if metadata.get("deletionTimestamp") else None,
        created_at_ms=created_at_ms,
        ended_at_ms=_ms(ended["finishedAt"]) if ended.get("finishedAt") else None,
        exit_code=ended.get("exitCode"),
        reason=_reason(status, container, ended),
        container=name,
    )


def _container_of(pod: Mapping[str, Any]) -> str:
    """Return the name of the container that announces the driver's start. A pod template may add others, whose order
    the kubelet chooses."""
    for container in pod.get("spec", {}).get("containers") or []:
        if any(mount.get("name") == RUN_VOLUME for mount in container.get("volumeMounts") or []):
            return str(container["name"])
    return ""


def _reason(status: Mapping[str, Any], container: Mapping[str, Any], ended: Mapping[str, Any]) -> str:
    """Return the pod's own reason (evicted), that of the container's end if it is more than an exit code, that of its
    wait, or why no node accepts it."""
    unscheduled: Mapping[str, Any] = next(
        (one for one in status.get("conditions") or [] if one["type"] == "PodScheduled" and one["status"] == "False"),
        {},
    )
    waiting = container.get("state", {}).get("waiting") or {}
    told = ended if ended.get("reason") not in (None, "Error", "Completed") else {}
    for source in (status, told, waiting, unscheduled):
        if source.get("reason"):
            return ": ".join(filter(None, (source["reason"], source.get("message"))))
    return ""


def _ms(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000)
