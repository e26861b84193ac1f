"""A links file during translation: its settings, the assumptions, and the properties without a counterpart. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strait.config.links import Link, LinksFile, parse

Path = tuple[str, ...]


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
        secrets_dir: directory from which the file reads secrets.
    """

    secrets_dir: str
    clusters: dict[str, dict[str, str]] = field(default_factory=dict)
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[Path, list[str]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

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

    def leave(self, given: Given, why: str) -> None:
        """Record why a property is not in the file."""
        self.draft.left[given.key] = why

    def client(self, end: str, name: str, given: Given) -> None:
        """Store a property of the clients of one end. The first value applies, so callers start with the one that takes
        precedence."""
        before = self.clients.setdefault((end, name), given)
        if before.value != given.value:
            self.leave(given, f"differs from `{before.key}`; here all clients of a cluster have the same properties")


def as_name(text: str) -> str:
    """Return a name that is valid in a links file."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", text).lstrip("-_")[:64] or "link"
