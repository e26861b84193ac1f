"""What the records of the state topics look like. JSON with a version field `v`, read strictly.

plan     key {"group"}                                       value Plan     compacted
map      key {"topic", "partition", "sequence_base"}         value Run      compacted
reports  key {"group", "slot", "part"}                       value Report   kept for a day

A destination partition's *sequence* is the number of records that the link has written there. Here it is the full
number; in a batch header it is that number mod 2^31.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Offset = Annotated[int, Field(ge=0)]
Reason = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Record(BaseModel):
    """Base of every state record: frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PlannedTopic(Record):
    """One topic that is copied.

    ``slots[p]`` is the slot that copies partition p, or None where p is not copied now (a Waiting entry says why).
    The ids pin the very topics that were planned: a topic deleted and created again is another topic.
    """

    source: str
    destination: str
    source_id: str
    destination_id: str
    slots: tuple[int | None, ...]


class Waiting(Record):
    """Why partitions of a selected topic are not copied now. ``partitions`` empty means all of them."""

    topic: str
    partitions: tuple[int, ...] = ()
    reason: Reason
    detail: str


class Plan(Record):
    """All that the slots of one task group do. ``version`` grows by one with each publication."""

    v: Literal[1] = 1
    link: str
    group: str
    version: int = Field(ge=1)
    producer_id: int = Field(ge=0, description="The link's one producer id; the same for ever.")
    stopped: bool = Field(False, description="The application ends its epoch and exits with 0.")
    slots: int = Field(ge=1)
    topics: tuple[PlannedTopic, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    published_at_ms: int = Field(ge=0)


class Run(Record):
    """A run of constant difference: from ``sequence_base`` on, record n of the link in this destination partition is
    source offset ``source_base + (n - sequence_base)`` and destination offset ``destination_base + (n - sequence_base)``.

    Written and acknowledged before the first batch that it describes. ``sequence_end`` is a checkpoint: at
    ``checkpoint_at_ms`` at least that many records were known to be written; it only grows.
    """

    v: Literal[1] = 1
    topic: str = Field(description="Source topic.")
    partition: Offset
    destination: str = Field(description="Destination topic.")
    source_id: str
    destination_id: str
    source_base: Offset
    destination_base: Offset
    sequence_base: Offset
    sequence_end: Offset
    checkpoint_at_ms: int = Field(ge=0)


class PartitionReport(Record):
    """What one partition does and why.

    ``position``: next source offset to copy, all before it is acknowledged; -1 before the first recovery.
    ``end``: the source's last stable offset (exclusive) as last seen; -1 before the first fetch.
    ``lag_seconds``: age of the newest copied record where something newer waits, else 0.
    """

    topic: str
    partition: int
    state: Literal["starting", "copying", "caught_up", "waiting"]
    reason: Reason | None = None
    detail: str = ""
    position: int
    end: int
    lag_records: int
    lag_seconds: float
    records: int = Field(description="Copied in this epoch.")
    bytes: int = Field(description="Copied in this epoch, as they are on the wire.")


class Report(Record):
    """One slot, once a second. Large slots split theirs: ``part`` of ``parts``."""

    v: Literal[1] = 1
    link: str
    group: str
    slot: int
    part: int
    parts: int
    application: str = Field(description="Which running copy of the application this is.")
    at_ms: int
    started_at_ms: int
    plan_version: int = Field(description="The plan in force in this slot; 0 before the first.")
    strait_version: str
    host: str
    pid: int
    cpu_seconds: float = Field(description="Of this slot's process since it started.")
    memory_bytes: int = Field(description="Resident, of this slot's process.")
    records_per_second: float
    bytes_per_second: float
    latency_ms_p50: float | None = Field(description="Record timestamp to acknowledgement, last minute; None: no data.")
    latency_ms_p99: float | None
    conflicts: int = Field(description="Batches that another writer of this link had already written, in this epoch.")
    recoveries: int = Field(description="Times a partition's position was looked up on the destination, in this epoch.")
    partitions: tuple[PartitionReport, ...]
