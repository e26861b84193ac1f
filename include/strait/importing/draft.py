"""A links file during translation: its settings, the assumptions, and the properties without a counterpart. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from strait.config.links import Link, LinksFile, parse

Path = tuple[str, ...]
PROVIDED = re.compile(r"\$\{[\w.-]+:[^}]*\}")
"""A reference to a value that one of Kafka's configuration providers holds."""


class Weight(StrEnum):
    """How much it matters that a property is not in the links file."""

    FIRST = "first"  # a login, a filter or a name is missing: the link must not run before an operator has added it
    DIFFERS = "differs"  # the link behaves differently
    NEEDLESS = "needless"  # Strait has the effect anyway, or needs none


_BY_WEIGHT = [Weight.NEEDLESS, Weight.DIFFERS, Weight.FIRST]


@dataclass(frozen=True, slots=True)
class Given:
    """A property of the other tool. ``name``: as in the table; ``key``: as in its file."""

    name: str
    key: str
    value: str

    @property
    def is_true(self) -> bool:
        return self.value.strip().lower() == "true"

    @property
    def items(self) -> list[str]:
        """The value as a list, comma-separated."""
        return [item for item in (part.strip() for part in self.value.split(",")) if item]


@dataclass(slots=True)
class Draft:
    """The links file.

    Attributes:
        notes: path in the file -> the assumptions made there.
        left: property of the other tool -> why it is not in the file. Never a value: some are secrets.
        weights: the same properties -> how much that matters.
        secrets_dir: directory from which the file reads secrets.
        connections: (cluster, property of its clients) -> the property as the first flow has it.
    """

    secrets_dir: str
    clusters: dict[str, dict[str, str]] = field(default_factory=dict)
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[Path, list[str]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    weights: dict[str, Weight] = field(default_factory=dict)
    connections: dict[tuple[str, str], Given] = field(default_factory=dict)

    def leave(self, key: str, why: str, weight: Weight = Weight.DIFFERS, *path: str) -> None:
        """Record why a property is not in the file; if that is to be corrected first, also as a comment at a path."""
        before = self.weights.get(key, weight)
        if _BY_WEIGHT.index(weight) >= _BY_WEIGHT.index(before):  # a key can matter more to one flow than to another
            self.left[key] = why
            self.weights[key] = weight
        if weight is Weight.FIRST:
            self.note(f"FIRST: `{key}`: {why}.", *path)

    def of(self, weight: Weight) -> dict[str, str]:
        """Return the properties of this weight, each with the reason."""
        return {key: why for key, why in self.left.items() if self.weights[key] is weight}

    def as_data(self) -> dict[str, Any]:
        """Return the links file, keys in their usual order."""
        order = list(Link.model_fields)
        links = {
            name: dict(sorted(link.items(), key=lambda item: order.index(item[0]))) for name, link in self.links.items()
        }
        return {"clusters": self.clusters, "links": links}

    def checked(self, where: str) -> LinksFile:
        """Return the links file, parsed. Raises ConfigError if too little was known for a valid one."""
        return parse(self.as_data(), where=where)

    def note(self, text: str, *path: str) -> None:
        """Record an assumption at a path, once: a cluster can be the end of several flows."""
        told = self.notes.setdefault(path, [])
        if text not in told:
            told.append(text)

    def secret(self, cluster: str, key: str) -> str:
        """Return a reference to a file for a secret, which must never be in the links file itself."""
        return f"${{directory:{self.secrets_dir}:{cluster}.{key}}}"


@dataclass(slots=True)
class Flow:
    """One link of the draft, and the properties of its clients.

    Attributes:
        clients: (end, property) -> the given property; the end is `source` or `destination`.
        transforms: Kafka Connect's transformations: `transforms`, and the names after `transforms.`.
        names: the properties that determine names of destination topics.
    """

    draft: Draft
    name: str
    source: str
    destination: str
    clients: dict[tuple[str, str], Given] = field(default_factory=dict)
    transforms: dict[str, Given] = field(default_factory=dict)
    names: dict[str, Given] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.draft.links[self.name] = {"source": self.source, "destination": self.destination}

    def put(self, value: Any, *path: str, note: str = "") -> None:
        """Set a value of the link."""
        block = self.draft.links[self.name]
        for part in path[:-1]:
            block = block.setdefault(part, {})
        block[path[-1]] = value
        if note:
            self.note(note, *path)

    def add(self, values: list[str], *path: str) -> None:
        """Append to a list of the link."""
        block: Any = self.draft.links[self.name]
        for part in path:
            block = block.get(part, {})
        self.put([*(block or []), *values], *path)

    def get(self, *path: str) -> Any:
        """Return a value of the link; None if it is not set."""
        block: Any = self.draft.links[self.name]
        for part in path:
            block = block.get(part) if isinstance(block, Mapping) else None
        return block

    def note(self, text: str, *path: str) -> None:
        """Record an assumption about the link."""
        self.draft.note(text, "links", self.name, *path)

    def leave(self, given: Given, why: str, weight: Weight = Weight.DIFFERS, *path: str) -> None:
        """Record why a property is not in the file. ``path``: the affected part of it; default: the link."""
        self.draft.leave(given.key, why, weight, *(path or ("links", self.name)))

    def client(self, end: str, name: str, given: Given) -> None:
        """Store a property of the clients of one end. The first value applies, so callers start with the one that takes
        precedence."""
        before = self.clients.setdefault((end, name), given)
        if before.value != given.value:
            cluster = self.source if end == "source" else self.destination
            self.leave_other(cluster, before, name, given)

    def leave_other(self, cluster: str, before: Given, name: str, given: Given) -> None:
        """Record that a client's property differs from that of another client of the cluster, whose value applies."""
        why = f"differs from `{before.key}`; here all clients of a cluster have the same properties"
        self.leave(given, why, Weight.FIRST if secures(name) else Weight.DIFFERS, "clusters", cluster)


def secures(name: str) -> bool:
    """Return whether a property of a client determines which cluster it connects to, and how."""
    return name in ("bootstrap.servers", "security.protocol") or name.startswith(("sasl.", "ssl."))


def as_name(text: str) -> str:
    """Return a name that is valid in a links file."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", text).lstrip("-_")[:64] or "link"
