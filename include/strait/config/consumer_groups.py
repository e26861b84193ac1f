"""The block of a link for the consumer groups that are kept ready to continue on the destination."""

from collections.abc import Sequence

from pydantic import Field, model_validator

from strait.config.patterns import FirstMatch
from strait.config.settings import Regex, Settings


class ConsumerGroups(Settings):
    """Consumer groups whose committed offsets are continuously translated and committed on the destination."""

    sync: bool = Field(
        True, description="Commit the translated offsets of the source's consumer groups on the destination."
    )
    include: tuple[Regex, ...] = Field(
        (".*",), description="Regular expressions; each must match the whole name of a consumer group."
    )
    exclude: tuple[Regex, ...] = Field(
        ("console-consumer-.*", "__.*"),
        description="Regular expressions; a consumer group whose whole name matches one is not synchronized.",
    )
    interval_seconds: int = Field(
        3, ge=1, le=3600, description="Interval at which committed offsets are read, in seconds."
    )
    include_moved: bool = Field(
        False,
        description="Also commit for groups that have consumed on the destination and have no members there now; "
        "forward only.",
    )
    mm2_checkpoints: bool = Field(
        False,
        description="Also write MirrorMaker 2's checkpoints and offset syncs on the destination, for clients that "
        "translate offsets with its `RemoteClusterUtils`.",
    )

    @model_validator(mode="after")
    def _checkpoints_come_from_looks(self) -> "ConsumerGroups":
        if self.mm2_checkpoints and not self.sync:
            raise ValueError("`mm2_checkpoints` needs `sync`, which is false")
        return self


class GroupFilter:
    """A selection of consumer groups by name, from a list to include and one to exclude."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        of = "consumer group"
        self._include = FirstMatch("consumer_groups.include.{}", tuple(include), of=of, any_text=True)
        self._exclude = FirstMatch("consumer_groups.exclude.{}", tuple(exclude), of=of, any_text=True)

    def __call__(self, name: str) -> bool:
        """Return whether the consumer group is selected. Raises ConfigError if an expression takes too long."""
        return self._include(name) is not None and self._exclude(name) is None
