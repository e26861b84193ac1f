"""The blocks of a link for the configurations and ACLs of its destination topics."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from strait.config.settings import Regex, Settings

EXCLUDED_CONFIGS = (
    r"(follower|leader)\.replication\.throttled\.replicas",
    r"(log\.)?message\.timestamp\.(difference|before|after)\.max\.ms",
    r"message\.timestamp\.type",
    r"min\.insync\.replicas",
    r"unclean\.leader\.election\.enable",
)
"""MirrorMaker 2's list; these are never set from the source. It has the brokers' names of the timestamp bounds; topics
have them without the prefix ``log.``."""

_MOST_REPLICAS = 32767


def _replication_factor(value: object) -> object:
    if value == "source" or (type(value) is int and 1 <= value <= _MOST_REPLICAS):
        return value
    raise ValueError(f"must be a number from 1 to {_MOST_REPLICAS} or 'source', not {value!r}")


_Factor = Annotated[int, Field(ge=1, le=_MOST_REPLICAS)] | Literal["source"]
ReplicationFactor = Annotated[
    _Factor,
    BeforeValidator(_replication_factor, json_schema_input_type=_Factor),
]
"""`source` for that of each source topic, or a number."""

ConfigName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9.]*$")]
Overrides = Mapping[ConfigName, str]

_TIMESTAMP_TYPE = "message.timestamp.type"


class Configs(Settings):
    """Configurations of destination topics."""

    sync: bool = Field(
        False,
        description="Update the configuration of existing destination topics from the source; false: set it at creation only.",
    )
    exclude: tuple[Regex, ...] = Field(
        (),
        description="Regular expressions that match the whole name of a topic configuration; Strait sets neither these nor "
        "those of MirrorMaker 2's default list.",
    )
    defaults_from: Literal["destination", "source"] = Field(
        "destination",
        description="Default for a configuration not set on the source topic: the broker default of this cluster.",
    )
    overrides: Overrides = Field(
        default_factory=dict,
        description="Configuration name -> value, set on destination topics regardless of the source.",
    )

    @model_validator(mode="after")
    def _timestamps_stay(self) -> "Configs":
        check_overrides(self.overrides)
        return self


class Acls(Settings):
    """Which ACLs of destination topics follow from ACLs of their source topics."""

    sync: bool = Field(False, description="Create the ACLs of source topics on their destination topics.")
    remove: bool = Field(False, description="Remove an ACL that the link created when the source no longer has it.")


def check_overrides(overrides: Overrides) -> None:
    """Raise ValueError if records could not be copied with these overrides."""
    if _TIMESTAMP_TYPE in overrides:
        raise ValueError(
            f"overrides.{_TIMESTAMP_TYPE}: not allowed, since destination topics keep the timestamps of the source"
        )
