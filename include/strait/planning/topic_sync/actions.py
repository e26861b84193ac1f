"""Changes to topics and ACLs: each action holds its data and its description. Pure.

The planner creates actions, reviews print and count them, and the executor carries them out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from strait.model import TopicAcl, TopicPartition
from strait.text import plural


class Action(ABC):
    """One change, such as ``grows orders: from 3 to 6 partitions``.

    Attributes:
        past: the verb in the past tense, for a completed action.
    """

    __slots__ = ()
    verb: ClassVar[str]
    past: ClassVar[str]

    @property
    @abstractmethod
    def subject(self) -> str:
        """Name of the topic to change; of an ACL, the name in its resource pattern."""

    @property
    @abstractmethod
    def detail(self) -> str:
        """The change in detail."""

    @property
    def key(self) -> str | TopicAcl:
        """Key of this action in a cluster's response."""
        return self.subject

    @property
    def new_partitions(self) -> list[TopicPartition]:
        """Partitions that the action adds."""
        return []

    @property
    def done_line(self) -> str:
        """Line for operators, once the action is completed."""
        return f"{self.past:<9} {self.subject}: {self.detail}"


@dataclass(frozen=True, slots=True)
class _TopicAction(Action):
    """``source``: the source topic of the destination topic ``topic``."""

    topic: str
    source: str

    @property
    def subject(self) -> str:
        return self.topic


def _listed(configs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in configs)


@dataclass(frozen=True, slots=True)
class CreateTopic(_TopicAction):
    """A topic to create. ``replication_factor`` None: the broker's default. ``left_out``: configurations of the source
    topic that the destination does not accept."""

    verb = "creates"
    past = "created"
    partitions: int
    replication_factor: int | None
    configs: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def detail(self) -> str:
        replicas = "" if self.replication_factor is None else f", replication factor {self.replication_factor}"
        without = f"; not accepted there: {_listed(self.left_out)}" if self.left_out else ""
        return (
            ", ".join(filter(None, [f"{plural(self.partitions, 'partition')}{replicas}", _listed(self.configs)]))
            + without
        )

    @property
    def new_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, number) for number in range(self.partitions)]


@dataclass(frozen=True, slots=True)
class CreateHeartbeats(CreateTopic):
    """The heartbeats topic: the only topic that a link creates on its source."""

    @property
    def detail(self) -> str:
        return "on the source, for heartbeats"


@dataclass(frozen=True, slots=True)
class GrowTopic(_TopicAction):
    """A destination topic that gets more partitions. ``partitions``: the total afterwards."""

    verb = "grows"
    past = "grew"
    partitions_now: int
    partitions: int

    @property
    def detail(self) -> str:
        return f"from {self.partitions_now} to {plural(self.partitions, 'partition')}"

    @property
    def new_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, number) for number in range(self.partitions_now, self.partitions)]


@dataclass(frozen=True, slots=True)
class AlterTopic(_TopicAction):
    """A destination topic whose configurations are altered incrementally; those that are not named stay unchanged.

    Attributes:
        put: name -> value to set.
        reset: names to reset to the destination's default.
        before: name -> value set on the topic before the change, of those that have one.
    """

    verb = "alters"
    past = "altered"
    put: tuple[tuple[str, str], ...]
    reset: tuple[str, ...]
    before: tuple[tuple[str, str], ...]

    @property
    def detail(self) -> str:
        before = dict(self.before)
        put = [f"{name} {before.get(name, 'by default')} -> {value}" for name, value in self.put]
        return ", ".join([*put, *(f"{name} {before[name]} -> by default" for name in self.reset)])


@dataclass(frozen=True, slots=True)
class AllowAcl(Action):
    """An ACL to add on the destination."""

    verb = "allows"
    past = "allowed"
    acl: TopicAcl

    @property
    def subject(self) -> str:
        return self.acl.name

    @property
    def detail(self) -> str:
        return str(self.acl)

    @property
    def key(self) -> TopicAcl:
        return self.acl


@dataclass(frozen=True, slots=True)
class WithdrawAcl(AllowAcl):
    """An ACL to remove from the destination."""

    verb = "withdraws"
    past = "withdrew"


@dataclass(frozen=True, slots=True)
class DeleteTopic(_TopicAction):
    """A destination topic to delete. ``missing_since_ms``: Unix time since which its source topic has been missing."""

    verb = "deletes"
    past = "deleted"
    missing_since_ms: int

    @property
    def detail(self) -> str:
        return f"{self.source} no longer exists on the source"


def allowed(actions: Iterable[Action]) -> tuple[TopicAcl, ...]:
    """Return the ACLs that these actions add."""
    return tuple(item.acl for item in actions if type(item) is AllowAcl)


def withdrawn(actions: Iterable[Action]) -> tuple[TopicAcl, ...]:
    """Return the ACLs that these actions remove."""
    return tuple(item.acl for item in actions if type(item) is WithdrawAcl)


def actions_data(actions: Iterable[Action], acls_denied: str) -> dict[str, Any]:
    """Return all actions by kind, machine-readable. ``acls_denied``: why ACLs cannot be synchronized; "" if they
    can."""
    actions = tuple(actions)

    def of(kind: type[Action], *fields: str) -> list[dict[str, Any]]:
        return [{name: _plain(name, getattr(item, name)) for name in fields} for item in actions if type(item) is kind]

    created = ("topic", "source", "partitions", "replication_factor", "configs")
    return {
        "create": of(CreateTopic, *created),
        "create_heartbeats": next(iter(of(CreateHeartbeats, *created)), None),
        "grow": of(GrowTopic, "topic", "partitions_now", "partitions"),
        "alter": of(AlterTopic, "topic", "put", "reset", "before"),
        "acls": {
            "add": [acl._asdict() for acl in allowed(actions)],
            "remove": [acl._asdict() for acl in withdrawn(actions)],
            "denied": acls_denied,
        },
        "delete": of(DeleteTopic, "topic", "source", "missing_since_ms"),
    }


def _plain(name: str, value: Any) -> Any:
    if name in ("configs", "put", "before"):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
