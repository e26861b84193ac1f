"""The blocks of a link that say how its copying is dealt out: task groups, and the lane for what is far behind."""

from pydantic import Field, model_validator

from strait.config.settings import Name, Settings

MOST_SLOTS = 1024
"""Of one task group."""
DEFAULT_GROUP = "default"
"""The task group of every topic that no rule puts elsewhere; each link has it."""


class Group(Settings):
    """One task group: the topics of a link that share one Spark application."""

    slots: int = Field(1, ge=1, le=MOST_SLOTS, description="Long-running Spark tasks; each needs a core.")
    max_slots: int | None = Field(
        None,
        ge=1,
        le=MOST_SLOTS,
        description="Slots are added up to this number while the load asks for it. Default: `slots`.",
    )
    slot_bytes_per_second: int = Field(
        50_000_000, ge=1, description="What one slot is to copy at most; the load over this is the number of slots."
    )

    @property
    def most_slots(self) -> int:
        """As many as there may ever be."""
        return self.slots if self.max_slots is None else self.max_slots

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> "Group":
        if self.most_slots < self.slots:
            raise ValueError(f"max_slots: {self.max_slots} is less than `slots`, {self.slots}")
        return self


class Backfill(Settings):
    """The lane in which history is copied, so that it never delays what is written now."""

    group: Name = Field("backfill", description="The task group that copies what is far behind. `groups` must have it.")
    behind_records: int | None = Field(
        None, ge=1, description="A partition that is so many records behind goes there, as does a new one with as many."
    )
    behind_seconds: int | None = Field(
        None,
        ge=1,
        description="A partition whose newest copied record is so old goes there, as does a new one with any.",
    )

    @model_validator(mode="after")
    def _has_a_threshold(self) -> "Backfill":
        if self.behind_records is None and self.behind_seconds is None:
            raise ValueError("needs `behind_records` or `behind_seconds`, or both")
        return self
