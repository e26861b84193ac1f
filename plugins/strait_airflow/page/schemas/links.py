"""Answers about links, their topics and partitions."""

from typing import Any, Literal

from pydantic import Field

from strait.state.schema import Loss, Pause
from strait_airflow.page.schemas.common import Answer, Badge, CountedBadge, Listed

UNKNOWN = "-1: unknown."


class NeedOfOperator(Answer):
    """An action of an operator that a link needs."""

    kind: str
    subject: str
    text: str
    remedy: str
    topic: str = Field(description='"": it is not one of a topic.')


class GroupsInSync(Answer):
    all: int
    in_sync: int
    late: bool = Field(description="The last report is older than three intervals.")


class Event(Answer):
    at_ms: int
    kind: Literal["plan", "pause", "restart", "loss", "failover"]
    text: str


class Acknowledgement(Answer):
    """An operator has taken note of a loss."""

    by: str
    at_ms: int
    reason: str


class ListedLoss(Loss):
    acknowledged: Acknowledgement | None = Field(description="null: it is new.")


class LinkRow(Answer):
    """A link. Until it has been read, `state` is `looking`, and fields that have a default are absent."""

    link: str
    state: str = Field(
        description="`looking`, `copying`, `waiting`, `paused` (all of it), `stopped`, `no_plan`, or `error`: it could not be read."
    )
    badge: Badge
    needs_person: bool
    age_seconds: float | None = Field(description="Of the figures; null: it was never read.")
    every_seconds: float | None = Field(None, description="Time between two reads.")
    known: bool = Field(False, description="The figures are those of the last successful read. Else they mean nothing.")
    source: str = ""
    destination: str = ""
    pool: str = Field("", description='Pool whose Spark application runs the link; "": it is in none.')
    topics: int = 0
    partitions: int = 0
    caught_up: int = Field(0, description="Partitions that have no lag.")
    copying: int = Field(0, description="Partitions that have one, and are replicated.")
    waiting: dict[str, int] = Field({}, description="Reason code -> number of partitions.")
    healthy: bool = Field(False, description="No partition needs a decision, and every slot reports.")
    lag_records: int | None = Field(None, description="Of partitions whose lag is known; null: of none.")
    lag_known: bool = Field(False, description="The lag of every partition is known.")
    lag_unknown: int = Field(0, description="Number of partitions whose lag is unknown.")
    lag_seconds: float | None = Field(None, description="The maximum; null: unknown.")
    held_back_records: int | None = Field(None, description="By open transactions on the source.")
    records_per_second: float | None = Field(None, description="null: no slot reports.")
    latency_ms_p99: float | None = Field(None, description="From the record's timestamp to the acknowledgement.")
    seconds_to_loss: float | None = Field(
        None, description="Until retention deletes unreplicated records; null: not foreseen."
    )
    decisions: int = Field(0, description="Partitions that wait for an operator's decision.")
    needs: list[NeedOfOperator] = Field([], description="What needs an operator, most urgent first.")
    consumer_groups: GroupsInSync | None = None
    losses: int = Field(0, description="Entries in the loss log.")
    losses_new: int = Field(0, description="The newest entries that are not acknowledged.")
    quarantined: int = Field(0, description="Records in quarantine that are not settled.")
    error: str = Field("", description='Why the link cannot be read now; "": it can.')
    last_event: Event | None = None


class StateCount(Answer):
    word: str
    level: str
    count: int


class LinksSummary(Answer):
    """All links that the user may see."""

    links: int
    looking: int = Field(description="Links that have not been read yet.")
    person: int = Field(description="Links that need an operator.")
    states: list[StateCount]
    lag_seconds: float | None
    behind: int = Field(description="Links that lag.")
    seconds_to_loss: float | None
    losing: int = Field(description="Links that lose records within a day.")
    losses_new: int = Field(description="Losses that are not acknowledged.")


class Links(Listed):
    """Links, those that need an operator first."""

    links: list[LinkRow]
    summary: LinksSummary
    age_seconds: float | None
    every_seconds: float


class MapEdge(Answer):
    """All links from one cluster to another."""

    source: str
    destination: str
    links: int = Field(description="Number of the links.")
    names: list[str] = Field(description="The first of them.")
    badge: Badge = Field(description="The most urgent one.")
    records_per_second: float | None = Field(description="Of the links whose rate is known; null: of none.")
    rate_unknown: int = Field(description="Number of links whose rate is unknown.")
    lag_seconds: float | None = Field(description="The maximum; null: unknown.")
    seconds_to_loss: float | None = Field(description="The minimum; null: not foreseen.")
    pools: list[str]
    pooled: int = Field(description="Number of links that are in a pool.")


class MapPool(Answer):
    name: str
    links: int
    badge: Badge = Field(description="The most urgent one of its links.")


class ClusterMap(Answer):
    """Clusters, connected by the links that the user may see."""

    edges: list[MapEdge]
    pools: list[MapPool]
    unknown: int = Field(description="Number of links whose clusters are not known yet.")


class Slot(Answer):
    group: str = Field(description="Task group.")
    slot: int
    silent: bool
    silence: str = Field(description='Why it does not report, or for how long; "": it reports.')
    starting: bool
    failure: str
    badge: Badge
    age_ms: int | None = Field(description="Of its newest report; null: there is none.")
    application: str
    host: str
    pid: int
    plan_version: int
    strait_version: str
    records_per_second: float
    bytes_per_second: float
    latency_ms_p50: float | None
    latency_ms_p99: float | None
    cpu_seconds: float
    memory_bytes: int
    heartbeat_age_ms: int | None
    heartbeat_latency_ms: float | None
    heartbeat_trouble: str


class PlanBudget(Answer):
    topic_class: str = Field(description='"": all topics.')
    bytes_per_second: int


class PlanFacts(Answer):
    """A current plan."""

    group: str = Field(description="Task group.")
    version: int
    stopped: bool
    published_at_ms: int
    slots: int
    topics: int
    waiting: int
    budgets: list[PlanBudget]
    backfill: str
    consumer_groups: list[str] | None = Field(description="Regular expressions; null: none are synchronized.")
    origins: dict[str, str] = Field(description="`topics` or a cluster -> where it is set, if not in the links file.")
    topics_block: str = Field(description='As JSON; "": that of the links file.')


class Link(LinkRow):
    """A link, and the changes that the user may make by Airflow's own API."""

    slots: list[Slot] = Field([])
    losses_newest: list[ListedLoss] = Field([])
    quarantine: dict[str, int] = Field({}, description="Source topic -> records that are not settled.")
    pauses: list[Pause] = Field([])
    resolvable: list[str] = Field([], description="Reason codes about which an operator decides.")
    plans: list[PlanFacts] = Field([])
    dags: dict[str, str] = Field(description="Change -> the DAG that makes it.")
    variable: str = Field(description="The Variable of the link's topics.")
    may: dict[str, bool] = Field(description="Change -> whether this user may make it. `edit`: of the Variable.")
    own_dags: list[str] = Field(description="The DAGs of this link alone.")


class PartitionRow(Answer):
    """A partition. Offsets are those of the source."""

    topic: str
    partition: int | None = Field(description="null: all of a topic that has no partitions in the plan.")
    destination: str = Field(description="Destination topic.")
    slot: int | None
    state: str = Field(description="`starting`, `copying`, `caught_up` or `waiting`.")
    badge: Badge
    reason: str = Field(description="Reason code; see the reference of reason codes.")
    detail: str
    meaning: str
    remedy: str
    needs_decision: bool
    position: int = Field(description=f"Next offset to replicate. {UNKNOWN}")
    end: int = Field(description=f"End of the records that can be read. {UNKNOWN}")
    lag_records: int = Field(description=UNKNOWN)
    lag_seconds: float = Field(description=UNKNOWN)
    records: int = Field(description="Replicated since the slot started.")
    log_start: int = Field(description=f"First offset that the source still has. {UNKNOWN}")
    written: int = Field(description=f"Records that the link has ever written to this partition. {UNKNOWN}")
    seconds_to_loss: float | None
    seconds_to_catch_up: float | None
    records_per_second: float | None
    high_watermark: int = Field(description=UNKNOWN)
    held_back_records: int = Field(description=UNKNOWN)
    held_back_seconds: float = Field(description=UNKNOWN)
    quarantined: int


class Partitions(Listed):
    of: int = Field(description="Number of all partitions.")
    reasons: list[str] = Field(description="Reason codes that partitions of the link have.")
    rows: list[PartitionRow]


class Partition(PartitionRow):
    group: str = Field(description="Task group.")
    policy: dict[str, Any] | None = Field(description="What is not a default; null: no plan has the partition.")
    losses: list[ListedLoss]
    losses_not_kept: int = Field(description="Entries of the link's loss log that are too old to be shown.")
    pauses: list[Pause]


class TopicRow(Answer):
    """A source topic."""

    topic: str
    partitions: int
    states: list[tuple[str, int]] = Field(description="State and number of partitions in it, the most frequent first.")
    badge: Badge
    badges: list[CountedBadge]
    lag_records: int | None = Field(description="Of partitions whose lag is known; null: of none.")
    lag_seconds: float = Field(description=f"The maximum. {UNKNOWN}")
    lag_unknown: int = Field(description="Number of partitions whose lag is unknown.")
    records_per_second: float | None
    seconds_to_loss: float | None
    reasons: list[str]
    urgency: int = Field(description="0: needs a decision; 1: waits; more: no action is needed.")


class Topics(Listed):
    of: int = Field(description="Number of all topics.")
    rows: list[TopicRow]
