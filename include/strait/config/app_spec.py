"""The application spec: all settings that a Spark application needs to run one task group of one link.

Written as JSON to a file of mode 0600, because the clusters' properties hold secrets; only its path is ever on a
command line. Settings that may change while the application runs are in the plan (strait.state), not here.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from strait import __version__
from strait.errors import ConfigError


class AppSpec(BaseModel):
    """The settings of one Spark application. If two specs are equal, no restart is needed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    v: Literal[1] = 1
    strait: str = Field(__version__, description="Version of Strait that wrote this; no other runs it.")
    link: str
    group: str
    source_name: str
    source: Mapping[str, str] = Field(description="librdkafka properties of the source cluster.", repr=False)
    destination_name: str
    destination: Mapping[str, str] = Field(description="librdkafka properties of the destination cluster.", repr=False)
    standby: bool = Field(False, description="Copy only while no other application of the task group reports.")
    slots: int = Field(ge=1, description="Number of slots at submission; a later plan may change it.")
    slot_memory_bytes: int = Field(ge=1)
    ledger_seconds: int = Field(ge=1)
    ledger_dir: str = Field(description="Directory of the Parquet replication ledger.")
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
    def read(cls, path: Path) -> "AppSpec":
        """Read a spec.

        Raises:
            ConfigError: the file cannot be read, is invalid, or was written by another version. The message contains no
                value of the spec.
        """
        try:
            return cls.parse(path.read_bytes(), str(path))
        except OSError as error:
            raise ConfigError(
                f"application spec {path}",
                [f"cannot be read: {error.strerror}"],
                hint="the submitting host and every host that runs the application need it under this path, for one user",
            ) from error

    @classmethod
    def parse(cls, text: bytes, where: str) -> "AppSpec":
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
            raise ConfigError(f"application of link {self.link}", [_other_version(self.strait)], hint=_ONE_VERSION)


_ONE_VERSION = "install one version of Strait on every host, or build its package or image anew; then resubmit"


class _Version(BaseModel):
    """The field that every version can read, regardless of the other fields."""

    strait: str = ""


def _written_by(text: bytes) -> str:
    try:
        return _Version.model_validate_json(text).strait
    except ValidationError:
        return __version__  # not a spec of any version, so the version is not the problem


def _other_version(written_by: str) -> str:
    return f"was submitted by Strait {written_by or 'before 0.1.0'}, but this host has Strait {__version__}"
