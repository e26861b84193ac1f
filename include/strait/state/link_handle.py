"""A link with its two clusters: the first argument of all code that reads or changes one link."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from strait.config.app_spec import AppSpec
from strait.config.cluster import Cluster
from strait.config.links import Link, LinksFile, load_link
from strait.kafka.admin import Admin
from strait.kafka.connection import silent
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.signing import with_key
from strait.state.view import Kind

Side = Literal["source", "destination"]


@dataclass(frozen=True, slots=True, eq=False)
class LinkHandle:
    """A link's name and its clusters. Opens no connection itself.

    Each object that a method returns is the caller's to close.
    """

    name: str
    source: Cluster
    destination: Cluster

    @classmethod
    def of_application(cls, spec: AppSpec) -> "LinkHandle":
        """Return the link that an application replicates."""
        source, destination = Cluster(spec.source, spec.source_name), Cluster(spec.destination, spec.destination_name)
        return LinkHandle(spec.link, source, destination)

    def admin(self, side: Side, progress: Callable[[str], None] = silent) -> Admin:
        """Connect to a cluster for its administration. Raises ClusterUnavailable, NotAuthorized."""
        return Admin(*(self.source if side == "source" else self.destination), progress)

    def state(self, *follow: Kind, most_losses: int | None = None) -> StateReader:
        """Return a reader of the link's state; without ``follow``, of its plans and its map. See `StateReader`."""
        return StateReader(*self.destination, self.name, follow=follow or ("plan", "map"), most_losses=most_losses)

    def publisher(self) -> ControlPublisher:
        """Return the publisher of the link's plans."""
        return ControlPublisher(*self.destination, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class ConfiguredLink(LinkHandle):
    """A link of a links file, with its settings. ``file`` also has the clusters, and the other links as far as they were
    read."""

    file: LinksFile = field(repr=False)  # its clusters may hold passwords

    @classmethod
    def of(cls, file: LinksFile, name: str) -> Self:
        """Return a link of the file, which must have it."""
        source, destination = (Cluster(file.clusters[end], end) for end in _ends(file.links[name]))
        return cls(name, source, destination, file)

    @classmethod
    def load(cls, path: Path, name: str) -> Self:
        """Read one link and its clusters; see `load_link`. Raises ConfigError."""
        return cls.of(load_link(path, name), name)

    @property
    def settings(self) -> Link:
        """The link's settings in the file."""
        return self.file.links[self.name]

    def other(self, name: str) -> Self:
        """Return another link of the file."""
        return self.of(self.file, name)

    def expecting(self, source_id: str, destination_id: str) -> Self:
        """Return the link with the expected IDs of its clusters, "" for an unknown one; see `Cluster.expecting`."""
        source, destination = self.source.expecting(source_id), self.destination.expecting(destination_id)
        return type(self)(self.name, source, destination, self.file)

    def with_key(self) -> Self:
        """Return the link with a key to sign plans; see `strait.state.signing.with_key`."""
        destination = self.destination._replace(properties=with_key(self.destination.properties))
        return type(self)(self.name, self.source, destination, self.file)


def _ends(link: Link) -> tuple[str, str]:
    return link.source, link.destination
