"""The plan of an audit: its partitions and their ranges. Recorded once, so that an interrupted audit continues with the
same ranges. Pure."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from strait.config.audit import AuditRequest
from strait.reasons import Reason
from strait.state.transform import TopicTransform


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


LOSSES, QUARANTINE = "losses: ", "quarantine: "
"""Prefixes of the causes of entries in the loss log and in the quarantine."""
_LEFT_OUT = {LOSSES + Reason.TAIL_DROPPED, QUARANTINE + "unresolved", QUARANTINE + "dropped"}


class OnRecord(_Model):
    """Offsets [``first``, ``end``) of one side in which differences are explained by ``cause``."""

    side: Literal["source", "destination"]
    first: int
    end: int
    cause: str

    @property
    def left_out(self) -> bool:
        """Whether these source records are missing from the destination on purpose."""
        return self.side == "source" and self.cause in _LEFT_OUT


class MovedIn(_Model):
    """The ends of the records that another tool had replicated before the link started, as source and destination offset."""

    source_end: int
    copy_end: int


class AuditedPartition(_Model):
    """One partition of both sides, as it was when the audit started.

    Attributes:
        first, end: numbers of the records to compare: sequence numbers of a link, or offsets.
        source_start, source_end, copy_start, copy_end: offsets of both logs at the start, without uncommitted ones.
        chunk_records: records that are compared at a time.
        whole: it is compared in one piece, because the position of its records on the destination is not known in advance.
        deleted, unknown: records that are not compared because one side has deleted them, or because the offset map does
            not determine their source offsets.
        tail: offsets of the source after the last record that the destination has.
        problem: why it is not compared; empty: it is.
        moved_in: records that another tool had replicated into the destination; None: there are none on record.
        skipped: source offsets before the link's start, of records that another tool had replicated from the destination.
        on_foreign: the setting that permits other producers on the destination; empty: none does.
        transform: the transformation of its records; None: they are copied as they are. Then all source offsets in
            [``source_from``, ``source_to``) are evaluated; the link has passed those before ``passed``.
        before: source offsets before these: the map does not show whether the link started after them.
    """

    topic: str
    partition: int
    copy_topic: str
    first: int = 0
    end: int = 0
    source_start: int = 0
    source_end: int = 0
    copy_start: int = 0
    copy_end: int = 0
    chunk_records: int = 1
    whole: bool = False
    deleted: int = 0
    unknown: int = 0
    tail: int = 0
    problem: str = ""
    timed: bool = True
    source_compacted: bool = False
    copy_compacted: bool = False
    moved_in: MovedIn | None = None
    skipped: int = 0
    skipped_producers: tuple[int, ...] = ()
    on_record: tuple[OnRecord, ...] = ()
    on_foreign: str = ""
    transform: TopicTransform | None = None
    source_from: int = 0
    source_to: int = 0
    passed: int = 0
    before: int = 0

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


class AuditedTopic(_Model):
    """Topic IDs at the start, in Kafka's text form; "": unknown. ``transform``: digest of the transformation of its records;
    "": none."""

    topic: str
    copy_topic: str
    source_id: str = ""
    copy_id: str = ""
    transform: str = ""


class AuditPlan(_Model):
    """An audit, as recorded at its start."""

    v: Literal[1] = 1
    id: str
    link: str = Field(description='Name of the link; "" for the copies of another tool.')
    request: AuditRequest
    source: str
    destination: str
    source_cluster: str
    destination_cluster: str
    producer_id: int = -1
    owners: dict[str, str] = Field(default_factory=dict, description="Producer ID -> its writer, if on record.")
    topics: tuple[AuditedTopic, ...] = ()
    partitions: tuple[AuditedPartition, ...] = ()
    planned_at_ms: int
