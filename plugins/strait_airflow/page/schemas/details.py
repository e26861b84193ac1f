"""Answers about parts of a link: its applications, quarantine, offset map, history and consumer groups, its topics'
settings, and Airflow's components."""

from typing import Any, Literal

from pydantic import Field

from strait_airflow.page.schemas.common import Answer, Badge, Listed, Looked
from strait_airflow.page.schemas.links import Event


class OffsetSegment(Answer):
    """A stretch of a partition without a change of the distance between its source and destination offsets."""

    generation: int = Field(description="Counts the source topics of this name, from 1: a recreated one is another.")
    source_id: str
    source_base: int = Field(description="Source offset of its first record.")
    destination: str
    destination_base: int = Field(description="Destination offset of its first record.")
    confirmed: int = Field(description="Records of it that are known to be written.")
    shared: bool = Field(description="Other producers may write there.")
    checkpoint_at_ms: int
    after_unknown: bool = Field(description="The source offsets of earlier records are unknown.")


class OffsetSegments(Listed, Looked):
    """Newest first."""

    rows: list[OffsetSegment]


class Submission(Answer):
    """A start of an application."""

    id: str
    state: str
    submitted_at_ms: int
    exit_code: int | None
    cause: str = Field(description='Why it ended; "": it runs, or ended as it should.')
    log: str = Field(description="Where its log is.")


class Application(Answer):
    name: str
    group: str = Field(description='Task group; "": all of the link, in a pool.')
    pool: str
    links: list[str] = Field(description="That share it. Empty for users who may not read logs.")
    standby: bool
    badge: Badge
    not_before_ms: int | None = Field(description="When it is submitted again; null: at once, if it ends.")
    submissions: list[Submission] = Field(description="Newest first.")
    log_lines: list[str] = Field(description="The last lines. Empty for users who may not read logs.")


class Applications(Looked):
    """Applications, as far as the API server's host can see them."""

    logs: bool = Field(description="The user may read logs.")
    applications: list[Application]


class QuarantinedRecord(Answer):
    at: int = Field(description="Its offset in the quarantine topic.")
    topic: str
    partition: int
    offset: int = Field(description="On the source.")
    timestamp_ms: int
    destination: str
    reason: str
    detail: str
    quarantined_at_ms: int
    bytes: int
    settled: Literal["", "replayed", "dropped"]


class QuarantinedRecords(Listed, Looked):
    """Records that are not settled, newest first."""

    rows: list[QuarantinedRecord]


class Readable(Answer):
    """Bytes as text."""

    text: str
    encoding: Literal["utf-8", "hex"]
    size: int = Field(description="Number of all bytes.")
    shown: int = Field(description="Number of bytes that `text` has.")


class QuarantinedContents(QuarantinedRecord):
    key: Readable | None = Field(description="null: it has none.")
    headers: list[tuple[str, Readable | None]]
    value_bytes: int | None
    value: Readable | None = Field(None, description="Absent unless asked for; null: it has none.")


class Sample(Answer):
    """null: unknown."""

    at_ms: int
    records_per_second: float | None
    bytes_per_second: float | None
    lag_records: int | None
    lag_seconds: float | None
    latency_ms_p99: float | None
    latency_ms_p50: float | None


class History(Answer):
    now_ms: int
    events: list[Event] = Field(description="Oldest first, as far as they are still known.")
    looking: bool = Field(description="The past is still being read: ask again.")
    error: str
    samples: list[Sample] = Field(
        description="Oldest first: one per minute for the last hour, one per 10 min for the last day, one per hour before."
    )


class Rates(Answer):
    links: dict[str, list[tuple[int, float | None]]] = Field(
        description="Link -> records per second over the last 6 hours, as [ms since 1970, value or null]."
    )


class GroupSync(Answer):
    """The last report of the application that synchronizes the groups."""

    v: int
    link: str
    application: str
    at_ms: int
    seconds: float
    interval_seconds: int
    groups: int
    in_sync: int
    offsets: dict[str, int] = Field(description="State -> number of offsets.")
    committed: int
    rereads: int
    trouble: str


class GroupSyncState(Answer):
    wanted: bool | None = Field(description="The plan has it; null: unknown.")
    report: GroupSync | None
    age_seconds: float | None = None
    late: bool = False


class Group(Answer):
    """A consumer group with offsets in topics of the link."""

    group: str
    badge: Badge
    type: str
    source_state: str
    destination_state: str
    partitions: int
    rereads: int | None = Field(description="Offsets that it would consume again if it moved now; null: unknown.")
    synced: bool
    synced_at_ms: int | None
    selected: bool
    why: str


class Groups(Listed, Looked):
    """Selected groups come first; of these, the ones that would not continue exactly at their position."""

    at_ms: int | None
    of: int = Field(description="Number of all groups.")
    states: list[str] = Field(description="States that offsets of these groups have.")
    words: dict[str, str] = Field(description="Each of these states -> its word for people.")
    sync: GroupSyncState
    rows: list[Group]


class GroupOffset(Answer):
    topic: str
    partition: int
    offset: int = Field(description="Committed on the source.")
    to_topic: str
    to_offset: int | None = Field(description="Its translation; null: there is none.")
    fit: str = Field(description="How exact the translation is.")
    committed: int | None = Field(description="On the destination.")
    state: str
    badge: Badge
    meaning: str
    rereads: int | None
    detail: str
    overlap: int = Field(description="Consumed records that come after `to_offset`.")


class GroupDetails(Group, Listed, Looked):
    """One group. While `looking`, and if groups cannot be read, all but the common fields are absent."""

    at_ms: int
    rows: list[GroupOffset]


class TopicSettings(Answer):
    """The current `topics` block of a link."""

    topics: dict[str, Any]
    value: str | None = Field(description="The Variable's text; null: there is none, and the links file applies.")
    problem: str = Field(description='Why that text is invalid, so that the links file applies; "": it is not.')


class Checked(Answer):
    problems: list[str] = Field(description="One line each; empty: the block is valid.")


class Effect(Answer):
    sign: str
    verb: str
    subject: str
    detail: str


class Effects(Answer):
    total: int
    shown: list[Effect]


class WaitingTopic(Answer):
    topic: str
    partitions: list[int] = Field(description="Empty: all.")
    reason: str
    detail: str
    since_ms: int
    remedy: str


class WaitingTopics(Answer):
    total: int
    shown: list[WaitingTopic]


class LeftOut(Answer):
    topic: str
    detail: str


class LeftOutTopics(Answer):
    total: int
    shown: list[LeftOut]


class Risk(Answer):
    code: str
    topic: str = Field(description='Source topic; "": all of the link.')
    detail: str


class Risks(Answer):
    total: int
    shown: list[Risk]


class Backfill(Answer):
    """The amount to replicate; null: unknown."""

    records: int | None
    bytes: int | None
    seconds: float | None


class Forecast(Answer):
    backfill: Backfill
    risks: Risks
    not_known: list[str]


class Preview(Answer):
    """The effects of a `topics` block. Each list shows at most 200 items."""

    effects: Effects
    waits: WaitingTopics
    left_out: LeftOutTopics
    needs_approval: bool
    forecast: Forecast


class Component(Answer):
    """A component of Airflow."""

    name: str
    healthy: bool
    age_seconds: float | None = Field(description="Time since its last heartbeat; null: it has none.")
    problem: str


class Components(Answer):
    components: list[Component]
