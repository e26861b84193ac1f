"""Schema of the keys of state records. Pure."""

from typing import Literal

from strait.state.record import Offset, Record


class PlanKey(Record):
    """Key of the plan topic."""

    group: str


class RunKey(Record):
    """Key of the map topic. ``check`` distinguishes segments that start with the same record but differ otherwise: one
    writer may have read further than another, and the segment of neither may replace the other's."""

    topic: str
    partition: Offset
    sequence_base: Offset
    check: int


class ReportKey(Record):
    """Key of the reports topic."""

    group: str
    slot: int
    part: int


class GroupSyncKey(Record):
    """Key of the reports topic, for consumer group reports, which belong to no slot."""

    consumer_groups: str


class LedgerKey(Record):
    """Key of the ledger topic, for a slot's rows; ``ledger``: the task group."""

    ledger: str
    application: str
    slot: int


class LedgerMarkKey(Record):
    """Key of the ledger topic, for the mark of an application's written rows; ``written``: the task group."""

    written: str
    application: str


class SlotPartKey(Record):
    """Key of the reports topic, for records beside a slot's reports. It has the prefix of these."""

    group: str
    slot: int
    part: Literal["changes", "traffic", "failure"]


class HistoryKey(Record):
    """Key of the history topic. ``place``: number of the span, modulo the number of spans kept; ``began``: the sixtieth
    of the span in which the observation starts."""

    group: str
    slot: int
    span: str
    place: int
    began: int


class LossKey(Record):
    """Key of the losses topic: the same loss has the same key if two slots write it."""

    topic: str
    partition: Offset
    side: str
    cause: str
    from_offset: Offset


class LossAcknowledgementKey(Record):
    """Key of the losses topic, for acknowledgements of losses; ``acknowledged``: the topic."""

    acknowledged: str


class FailoverKey(Record):
    """Key of the failovers topic."""

    failover: str


class AuditKey(Record):
    """Key of the audits topic."""

    audit: str


class TopicResultKey(Record):
    """Key of the verified topic; ``verified``: the source topic."""

    verified: str
    kind: str


class ProducerKey(Record):
    """Key of the producers topic."""

    producer_id: Offset


class MovedCopiesKey(Record):
    """Key of the producers topic, for copies that another tool made; ``moved_in``: their topic."""

    moved_in: str
    link: str


StateKey = (
    PlanKey
    | RunKey
    | LedgerKey
    | LedgerMarkKey
    | LossKey
    | LossAcknowledgementKey
    | ProducerKey
    | MovedCopiesKey
    | FailoverKey
    | AuditKey
    | TopicResultKey
)
Key = StateKey | ReportKey | SlotPartKey | HistoryKey | GroupSyncKey
