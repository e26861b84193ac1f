"""The blocks of a link for the distribution of its partitions: task groups, and the backfill of large lags."""

from pydantic import Field, model_validator

from strait.config.settings import Name, Settings

MOST_SLOTS = 1024
"""Maximum number of slots of one task group."""
DEFAULT_GROUP = "default"
"""The task group of every topic that no rule assigns to another; each link has it."""


class Group(Settings):
    """One task group: the topics of a link that share one Spark application."""

    slots: int = Field(
        1, ge=1, le=MOST_SLOTS, description="Number of slots (long-running Spark tasks); each needs one core."
    )
    max_slots: int | None = Field(
        None,
        ge=1,
        le=MOST_SLOTS,
        description="Maximum number of slots; slots are added and removed with the load. Default: `slots`.",
    )
    slot_bytes_per_second: int = Field(
        50_000_000,
        ge=1,
        description="Target throughput per slot. The number of slots is the load divided by this value, from `slots` to `max_slots`.",
    )

    rack: str | None = Field(
        None,
        max_length=255,
        description="Rack of the slots. Source topics are fetched from a replica in this rack if the brokers choose one "
        '(`replica.selector.class`), else from leaders; `""`: from leaders only. Default: `client.rack` of the cluster, else '
        "the environment variable `STRAIT_RACK` of the slot's host.",
    )
    standby: bool = Field(
        False,
        description="Run a second application of the task group, which takes over within seconds if the first one stops "
        "reporting. It needs as many cores and as much memory.",
    )

    @property
    def most_slots(self) -> int:
        """Return the maximum number of slots of the task group."""
        return self.slots if self.max_slots is None else self.max_slots

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> "Group":
        if self.most_slots < self.slots:
            raise ValueError(f"max_slots: {self.max_slots} is less than `slots`, {self.slots}")
        return self


class Backfill(Settings):
    """A task group that copies history, so that history never delays newly written records."""

    group: Name = Field(
        "backfill", description="Task group that copies partitions with a large lag; must be listed in `groups`."
    )
    behind_records: int | None = Field(
        None,
        ge=1,
        description="Lag in records from which a partition moves to the backfill task group. Also applies to the backlog of a new partition.",
    )
    behind_seconds: int | None = Field(
        None,
        ge=1,
        description="Lag in seconds (age of the last copied record) from which a partition moves to the backfill task group; a new partition with any backlog moves as well.",
    )

    @model_validator(mode="after")
    def _has_a_threshold(self) -> "Backfill":
        if self.behind_records is None and self.behind_seconds is None:
            raise ValueError("set `behind_records`, `behind_seconds` or both")
        return self
