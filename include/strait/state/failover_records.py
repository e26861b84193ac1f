"""Schema of the records of a link's failovers, in a topic that retains them forever."""

from typing import Literal

from pydantic import Field

from strait.config.settings import Regex
from strait.state.record import Offset, Record, Told
from strait.state.schema import GivenAcl


class FailoverStep(Record):
    """The result of one step of a failover. ``waiting``: it was interrupted before it ended."""

    name: str
    verdict: Literal["done", "warning", "waiting", "failed"]
    detail: str
    began_at_ms: int
    seconds: float


class SourceEnd(Record):
    """The end offset of a source partition."""

    topic: str
    partition: Offset
    offset: Offset


class MissingRecords(Record):
    """Source offsets [``from_offset``, ``to_offset``) that are missing on the destination."""

    topic: str
    partition: Offset
    from_offset: Offset
    to_offset: Offset


Continues = Literal["exactly", "in_sync", "further", "elsewhere", "not_moved", "unknown"]


class FailoverTopic(Record):
    """The records of a topic that are missing on the destination."""

    topic: str
    partitions: int
    missing: int = Field(description="Offsets that are known to be missing.")
    seconds: float | None = Field(
        None,
        description="At most so old is the newest record on the destination, where that is longest ago; None: not known.",
    )
    not_copied: Told = Field("", description="Why partitions of it were not being copied; empty: all were.")


class HeldElsewhere(Record):
    """Records of the source that the destination of another link has."""

    link: str
    topic: str
    records: int = Field(ge=0)


class FailoverGroup(Record):
    """The position at which a consumer group continues. ``further``: its former position on the destination.
    ``in_sync``: its last known position on a source that is lost."""

    group: Told
    continues: Continues
    why: Told = Field("", description="Why not exactly where it stopped.")
    rereads: int | None = Field(None, description="Offsets that it consumes again; None: not known.")
    outside: tuple[Told, ...] = Field(
        (), description="Topics that the link does not copy, with offsets that stay there."
    )


class Failover(Record):
    """A failover's progress, written after each step, so that the next process that runs it continues there."""

    v: Literal[1] = 1
    id: str
    link: str
    source: str
    destination: str
    kind: Literal["planned", "unplanned", "rehearsal"]
    outcome: Literal["running", "done", "aborted"] = "running"
    by: Told
    reason: Told = ""
    turn: str = Field(description="Which process runs it; another one that begins takes it over.")
    wave_topics: tuple[Regex, ...] = Field(
        (),
        description="Regular expressions of the source topics that a wave moves. Written only by waves, as all of theirs.",
    )
    wave_groups: tuple[Regex, ...] = Field((), description="Of the consumer groups that it moves; none: all.")
    topics_left: int | None = Field(None, description="Topics that the link still copies after the wave.")
    still_paused: tuple[Told, ...] = Field(
        (),
        description="Topics that earlier waves have moved and left paused. Written only by failovers of the whole link.",
    )
    strait_version: str
    began_at_ms: int = Field(ge=0)
    ended_at_ms: int | None = None
    fence: tuple[GivenAcl, ...] = Field((), description="Rules that keep producers from writing to the source.")
    ends: tuple[SourceEnd, ...] = Field((), description="Of the source, when its producers had stopped.")
    steps: tuple[FailoverStep, ...] = ()
    plans: dict[str, int] = Field({}, description="Task group -> version of the plan that has stopped it.")
    missing: tuple[MissingRecords, ...] = ()
    groups: int | None = Field(None, description="Consumer groups that the link synchronizes; None: not known.")
    groups_exact: int | None = Field(None, description="Those of them that continue exactly where they stopped.")
    group_list: tuple[FailoverGroup, ...] = Field(
        (), description="All of them by name, and those that are not moved. Written only if known, as `topics`."
    )
    topics: tuple[FailoverTopic, ...] = ()
    transformed: tuple[Told, ...] = Field(
        (),
        description="Those of them whose records a rule transforms, so that the destination has others. Written only if there are "
        "any.",
    )
    held_elsewhere: tuple[HeldElsewhere, ...] = Field(
        (), description="Missing records that other clusters have. Written only if there are any."
    )
    rpo_records: int | None = Field(
        None, description="Offsets known to be missing; None: there may be more, in partitions that were not copied."
    )
    rpo_seconds: float | None = Field(
        None,
        description="At most so old is the newest record on the destination, where that is longest ago; None: not known.",
    )
    rto_seconds: float | None = Field(None, description="From the first step to the last.")
    score: int | None = Field(None, description="Of a rehearsal: how many percent of its steps hold.")
