"""The application spec: all settings that a Spark application needs to run one task group of one link, or a pool.

Written as JSON to a file of mode 0600, because the clusters' properties hold secrets; only its path is ever on a
command line. Settings that may change while the application runs are in the plan (strait.state), not here.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from strait import __version__
from strait.config.audit import AuditJob
from strait.config.client_properties import FORMER_STATE_KEY, STATE_KEY
from strait.config.selecting import Selected
from strait.errors import ConfigError


class _Stored(BaseModel):
    """The settings that every application has, and how they are stored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    v: Literal[1] = 1
    strait: str = Field(__version__, description="Version of Strait that wrote this; no other runs it.")
    slots: int = Field(ge=1, description="Number of Spark tasks at submission; a later plan may change it.")
    slot_memory_bytes: int = Field(ge=1)
    checkpoint_dir: str = Field(
        description="Spark's checkpoint directory; disposable, and never shared by two applications."
    )

    def write(self, path: Path) -> None:
        """Write the spec atomically, so that no reader sees a partial file, and readable only by its owner."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(self.model_dump_json(indent=1))
        partial.replace(path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a spec.

        Raises:
            ConfigError: the file cannot be read, is invalid, or was written by another version. The message contains no
                value of the spec.
        """
        return cls.parse(_bytes_of(path), str(path))

    @classmethod
    def parse(cls, text: bytes, where: str) -> Self:
        """Parse a spec as `read` does. ``where`` names the source of the text in errors."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors(include_input=False)
            ]
            if (written_by := _written_by(text)) != __version__:
                problems = [_other_version(written_by)]
            raise ConfigError(f"application spec {where}", problems, hint=_ONE_VERSION) from None

    def require_version(self) -> None:
        """Raise ConfigError if another version of Strait wrote the spec."""
        if self.strait != __version__:
            raise ConfigError(f"application of {self.owner}", [_other_version(self.strait)], hint=_ONE_VERSION)

    @property
    def evaluates(self) -> bool:
        """Whether Spark evaluates expressions on records."""
        return False

    @property
    def gives_way(self) -> bool:
        """Whether the application has a low priority for CPU, since other applications of its hosts are more urgent."""
        return False

    @property
    def owner(self) -> str:
        """The link or the pool that the application belongs to, for messages."""
        raise NotImplementedError

    @property
    def copies_at_once(self) -> bool:
        """Whether the application copies as soon as it has started."""
        raise NotImplementedError

    @property
    def links(self) -> Iterable[str]:
        """The links that it runs."""
        raise NotImplementedError

    @property
    def clusters(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        """Every cluster's name with its librdkafka properties."""
        raise NotImplementedError


class AppSpec(_Stored):
    """The settings of one Spark application. If two specs are equal, no restart is needed."""

    link: str
    group: str
    source_name: str
    source: Mapping[str, str] = Field(description="librdkafka properties of the source cluster.", repr=False)
    destination_name: str
    destination: Mapping[str, str] = Field(description="librdkafka properties of the destination cluster.", repr=False)
    selected: Selected | None = Field(
        None, description="Limits of plans without the link's signature; None: none, in specs that tests write."
    )
    standby: bool = Field(False, description="Copy only while no other application of the task group reports.")
    ledger_seconds: int = Field(ge=1)
    ledger_dir: str = Field(description="Directory of the Parquet replication ledger.")
    audit: AuditJob | None = Field(None, description="Audit to run instead of replication.")
    transforms: bool = Field(False, description="Spark evaluates expressions, so its JVM compiles thoroughly.")

    @property
    def copies_at_once(self) -> bool:
        return not self.standby and self.audit is None

    @property
    def state_keys(self) -> frozenset[str]:
        """The keys, or references to them, whose signatures of plans the application accepts."""
        return frozenset(self.destination[name] for name in (STATE_KEY, FORMER_STATE_KEY) if name in self.destination)

    def without_keys(self) -> "AppSpec":
        """Return the spec without these keys, for comparison: another key alone requires no restart."""
        names = (STATE_KEY, FORMER_STATE_KEY)
        destination = {name: value for name, value in self.destination.items() if name not in names}
        return self.model_copy(update={"destination": destination})

    def is_as(self, other: "AppSpec") -> bool:
        """Return whether a slot that runs in a pool may continue with the other spec: it follows the plan's number of
        slots itself, and its task divides its memory."""
        same = {"slots": 1, "slot_memory_bytes": 1}
        return self.model_copy(update=same) == other.model_copy(update=same)

    @property
    def evaluates(self) -> bool:
        return self.transforms

    @property
    def gives_way(self) -> bool:
        return self.audit is not None

    @property
    def owner(self) -> str:
        return f"link {self.link}"

    @property
    def links(self) -> Iterable[str]:
        return (self.link,)

    @property
    def clusters(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        return ((self.source_name, self.source), (self.destination_name, self.destination))


class Seat(NamedTuple):
    """One slot of one task group of one link, as a pool's tasks host it."""

    link: str
    group: str
    slot: int

    def __str__(self) -> str:
        return f"{self.link}/{self.group}/{self.slot}"


class Placed(BaseModel):
    """The task of a pool that hosts a seat."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    link: str
    group: str
    slot: int = Field(ge=0)
    task: int = Field(ge=0)

    @property
    def seat(self) -> Seat:
        return Seat(self.link, self.group, self.slot)


class PoolSpec(_Stored):
    """The settings of the one Spark application of a pool, with the specs of the task groups that it runs and the
    placement of their slots. ``slots`` is the number of its tasks, and ``slot_memory_bytes`` the memory of each.

    Members and placement may change while it runs: its tasks read the file again when it changes.
    """

    pool: str
    standby: bool = Field(False, description="Run a slot only while no other application reports for it.")
    members: tuple[AppSpec, ...] = ()
    placement: tuple[Placed, ...] = ()
    loads: Mapping[str, float] = Field({}, description="Seat -> bytes per second, as measured last.")

    @property
    def owner(self) -> str:
        return f"pool {self.pool}"

    @property
    def copies_at_once(self) -> bool:
        return not self.standby

    def as_standby(self, checkpoint_dir: str) -> "PoolSpec":
        """Return the spec of the application that takes over from the one with this spec, slot by slot."""
        changed = {"standby": True, "checkpoint_dir": checkpoint_dir}
        members = tuple(member.model_copy(update=changed) for member in self.members)
        return self.model_copy(update=changed | {"members": members})

    @property
    def links(self) -> Iterable[str]:
        return sorted({member.link for member in self.members})

    @property
    def clusters(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        return (cluster for member in self.members for cluster in member.clusters)

    def hosted_by(self, task: int) -> dict[Seat, AppSpec]:
        """Return the seats that a task hosts, each with the spec of its task group."""
        specs = {(member.link, member.group): member for member in self.members}
        return {
            placed.seat: specs[placed.link, placed.group]
            for placed in self.placement
            if placed.task == task and (placed.link, placed.group) in specs
        }


Spec = AppSpec | PoolSpec
"""The settings of either kind of application."""


def read_spec(path: Path) -> Spec:
    """Read the spec of either kind. Raises ConfigError as `AppSpec.read` does."""
    return parse_spec(_bytes_of(path), str(path))


def parse_spec(text: bytes, where: str) -> Spec:
    """Parse the spec of either kind. Raises ConfigError."""
    return (PoolSpec if _Head.of(text).pool else AppSpec).parse(text, where)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"application spec {path}",
            [f"cannot be read: {error.strerror}"],
            hint="the submitting host and every host that runs the application need it under this path, for one user",
        ) from error


_ONE_VERSION = "install one version of Strait on every host, or build its package or image anew; then resubmit"


class _Head(BaseModel):
    """The fields that every version can read, regardless of the others."""

    strait: str = ""
    pool: str = ""

    @classmethod
    def of(cls, text: bytes) -> "_Head":
        """Return the fields; if the text is not a spec of any version, those of this version's."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return cls(strait=__version__)  # the version is not the problem


def _written_by(text: bytes) -> str:
    return _Head.of(text).strait


def _other_version(written_by: str) -> str:
    return f"was submitted by Strait {written_by or 'before 0.1.0'}, but this host has Strait {__version__}"
