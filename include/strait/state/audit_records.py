"""Schema of the records of a link's audits: each audit, in a topic that retains them forever; and the newest results of
each topic, in a compacted one."""

from typing import Literal

from pydantic import Field

from strait.state.record import Record, Told

AuditVerdict = Literal["equal", "explained", "incomplete", "different"]
ResultKind = Literal["conclusive", "partial", "ledger"]
"""conclusive: all records were compared, or some differ. partial: nothing differs, but not everything was compared. ledger:
all records of the destination are as the replication ledger has them.
"""


class TopicResult(Record):
    """The result of an audit for one topic. A topic has the newest result of each kind."""

    v: Literal[1] = 1
    topic: str
    source_id: str = Field(description="ID of the topic that was compared; empty if the brokers have no topic IDs.")
    destination_id: str = Field(description="As above, of the destination topic.")
    kind: ResultKind
    audit: str = Field(description="ID of the audit.")
    verdict: AuditVerdict
    partitions: int = Field(ge=0)
    records: int = Field(ge=0, description="Of the source, compared.")
    differences: int = Field(ge=0, description="That nothing on record explains.")
    verified_until_ms: int | None = Field(
        None,
        description="All older records were compared, and none differs: the start of the audit or, if records were not replicated "
        "yet, the timestamp of the newest compared one; None: not all were compared, or some differ.",
    )
    verified_to: tuple[int, ...] = Field(
        (), description="Of each partition the number of records of the link that were compared, if all were."
    )
    ended_at_ms: int = Field(ge=0)


class Audit(Record):
    """The result of one audit. The certificate, whose hash is here, is in the audit's directory."""

    v: Literal[1] = 1
    id: str
    link: str
    verdict: AuditVerdict
    sha256: str
    relation: str
    strong: bool
    sample: float
    records: int = Field(ge=0)
    bytes: int = Field(ge=0, description="Of both logs.")
    topics: int = Field(ge=0, description="That were compared.")
    planned_at_ms: int = Field(ge=0)
    ended_at_ms: int = Field(ge=0)
    strait_version: Told
