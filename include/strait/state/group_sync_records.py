"""Schema of consumer group reports in the reports topic; see `strait.state.schema`."""

from typing import Literal

from pydantic import Field

from strait.state.record import Record, Told


class GroupOutOfSync(Record):
    """A consumer group that would not continue exactly at its current position."""

    group: Told
    why: Told


class GroupSyncReport(Record):
    """State of a link's consumer groups on the destination, written after each synchronization cycle."""

    v: Literal[1] = 1
    link: str
    application: Told
    at_ms: int
    seconds: float = Field(description="What the look took, with all that was committed.")
    interval_seconds: int
    groups: int = Field(description="That have offsets in the link's topics.")
    in_sync: int = Field(description="Groups that would continue exactly where they are.")
    offsets: dict[str, int] = Field(description="State -> number of group-partitions in it.")
    committed: int = Field(description="Offsets that this look has committed.")
    rereads: int = Field(description="Offsets that all groups together would read again, where that is known.")
    out_of_sync: tuple[GroupOutOfSync, ...] = Field(
        (), description="The first 20 of the other groups, most urgent first."
    )
    trouble: Told = Field(
        "",
        description="Why it could not look, the figures are then those of the last look; or could not write checkpoints.",
    )
