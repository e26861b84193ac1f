"""Schema of the records of the state topics: JSON with a version field `v`, read strictly.

plan     key {"group"}                                       value Plan     compacted
map      key {"topic", "partition", "sequence_base", "check"} value Run      compacted
reports  key {"group", "slot", "part"}                       value Report   retained for a day
         key {"consumer_groups"}                             value GroupSyncReport
ledger   key {"ledger", "application", "slot"}               value LedgerPart, retained for three days
         key {"written", "application"}                      value LedgerMark
failovers key {"failover"}                                   value Failover, retained forever
audits   key {"audit"}                                       value Audit, retained forever
verified key {"verified", "kind"}                            value TopicResult  compacted
losses   key {"topic", "partition", "side", "cause", "from_offset"} value Loss, retained forever
         key {"acknowledged"}                                value LossAcknowledgement

and, shared by all links into a cluster, strait.producers:

         key {"producer_id"}                                 value Registration     compacted

A destination partition's *sequence* is the number of records that the link has written there. Here it is the full
number; in a batch header it is that number mod 2^31.
"""

from collections.abc import Iterable
from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from strait.config.groups import MOST_SLOTS
from strait.config.hours import Hours, Span, Zone
from strait.model import TopicPartition
from strait.state.record import Offset, Reason, Record, Told
from strait.state.transform import TopicTransform


class TopicPolicy(Record):
    """How one topic is copied, and the facts about both topics that the slots need for it."""

    on_loss: Literal["halt", "continue", "restart"] = "halt"
    on_foreign: Literal["halt", "continue", "expect"] = "halt"
    on_refused: Literal["halt", "quarantine"] = "halt"
    compression: Literal["source", "none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "source", description="Of batches that are rebuilt or merged."
    )
    max_message_bytes: int = Field(1 << 20, ge=1, description="The destination topic's `max.message.bytes`.")
    source_compacted: bool = Field(False, description="The source's `cleanup.policy` has `compact` in it.")
    source_append_time: bool = Field(False, description="The source stamps records with its own clock.")
    destination_append_time: bool = Field(False, description="The destination stamps records with its own clock.")
    topic_class: str = Field("", description="Which budget it counts towards, besides the link's.")
    copies: Literal["all", "forward", "skip"] = Field(
        "all", description="Which batches are copied that are copies themselves, written into the source by a link."
    )
    transform: TopicTransform | None = Field(
        None,
        description="Transformation of each record. Written only if there is one: older versions cannot read it.",
        exclude_if=lambda transform: transform is None,
    )
    until: str = Field(
        "",
        description="End of replication, as the rule has it. Written only if there is one: older versions cannot read it.",
        exclude_if=not_,
    )
    ends: tuple[Annotated[int, Field(ge=-1)], ...] = Field(
        (),
        description="By partition, the source offset before which it ends, determined once for this `until`; -1: it has none. "
        " Written only with `until`.",
        exclude_if=not_,
    )

    def end_of(self, partition: int) -> int:
        """Return the source offset before which a partition ends; -1: it has no end."""
        return self.ends[partition] if partition < len(self.ends) else -1

    @property
    def transform_digest(self) -> str:
        """Digest of the transformation of each record; empty: there is none."""
        return "" if self.transform is None else self.transform.digest


class LostRuns(Record):
    """Partitions whose offset segments the map has lost, and the destination topic of these segments."""

    partitions: tuple[Offset, ...]
    destination: str
    destination_id: str


class PlannedTopic(Record):
    """One topic that is copied.

    ``slots[p]`` is the slot that copies partition p, or None: a Waiting entry then has the reason, or another task
    group copies p. The IDs identify the topics that were planned: a recreated topic is another topic.
    """

    source: str
    destination: str
    source_id: str
    destination_id: str
    slots: tuple[int | None, ...]
    policy: TopicPolicy = TopicPolicy()
    unbegun: tuple[Offset, ...] | None = Field(
        None, description="Partitions that have had no first run; None: not known, in plans of older versions."
    )
    added: tuple[Offset, ...] = Field(
        (),
        description="Those of `unbegun` that were added to the topic after the link had begun to copy it: they start at their "
        "first record. Written only if there are any: older versions cannot read it.",
        exclude_if=not_,
    )
    lost: tuple[LostRuns, ...] = Field((), description="Partitions whose runs the map has lost.")


class LeftTopic(Record):
    """A topic that was copied and is not planned now: a permission may be missing, or it is not selected."""

    source: str
    destination: str
    destination_id: str
    partitions: int = Field(ge=0, description="How many it had.")
    unbegun: tuple[Offset, ...] = ()
    added: tuple[Offset, ...] = Field((), description="As in `PlannedTopic`.", exclude_if=not_)
    lost: tuple[LostRuns, ...] = ()


class Waiting(Record):
    """Why partitions of a selected topic are not copied now. ``partitions`` empty means all of them."""

    topic: str
    partitions: tuple[int, ...] = ()
    reason: Reason
    detail: Told
    since_ms: int = Field(0, ge=0, description="When it was first found, of topics that the source does not have.")


class GivenAcl(Record):
    """A topic ACL that the link has added to a cluster's authorizer, in Kafka's terms."""

    name: str
    pattern: Literal["LITERAL", "PREFIXED"]
    principal: str
    host: str
    operation: str
    permission: str


class Budget(Record):
    """Maximum throughput of the link, in bytes per second on the wire, for all slots of all task groups together."""

    topic_class: str = Field("", description="The topics that share it, by their policy's class; empty: all of them.")
    bytes_per_second: int = Field(ge=1)
    slot_shares: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        description="What each slot of this group may use of it, by what it has to copy; those of all groups are 1."
    )


class PlannedBackfill(Record):
    """Limits of the task group that copies history, in addition to its budgets."""

    budget: Budget | None = Field(None, description="Of this task group alone; its shares add up to 1.")
    hours: tuple[Span, ...] = Field((), max_length=24, description="In which its slots fetch; empty: always.")
    timezone: Zone | None = Field(None, description="Of `hours`: an IANA name.")

    @property
    def opening(self) -> Hours | None:
        """Return the hours; None: it always copies."""
        return Hours(self.hours, self.timezone) if self.hours and self.timezone is not None else None

    @property
    def described(self) -> str:
        """Return the limits as text."""
        rate = "" if self.budget is None else f"at most {self.budget.bytes_per_second:,} bytes/s"
        return ", ".join(filter(None, [rate, "" if self.opening is None else f"only {self.opening}"]))

    @property
    def limits(self) -> tuple[int | None, tuple[str, ...], str | None]:
        """Return throughput, hours and time zone."""
        return None if self.budget is None else self.budget.bytes_per_second, self.hours, self.timezone


class Pause(Record):
    """A pause by an operator, until an operator resumes it."""

    topic: str = Field("", description="Source topic; empty: the whole link.")
    partition: Offset | None = Field(None, description="None: all partitions of the topic.")
    by: Told
    at_ms: int = Field(ge=0)
    reason: Told = ""


class Decision(Record):
    """An operator's decision about a topic that was deleted on one side; it replaces the topic's ``on_loss`` once."""

    topic: str = Field(description="Source topic.")
    action: Literal["continue", "restart"]
    source_id: str = Field("", description="Of the topic that was copied; empty: the map does not tell.")
    destination_id: str = Field("", description="Of the topic that it was copied into.")
    by: Told
    at_ms: int = Field(ge=0)
    reason: Told = ""


class TopicBound(Record):
    """The end of a topic, as determined once for an `until`."""

    topic: str = Field(description="Source topic.")
    source_id: str
    until: str = Field(description="As the rule has it.")
    ends: tuple[Annotated[int, Field(ge=-1)], ...] = Field(
        description="By partition: the source offset before which it ends; -1: not known, or none."
    )
    finished: tuple[Offset, ...] = Field((), description="Partitions that are copied up to it.")


class ReplacedPlan(Record):
    """A plan that no control plane with the link's key had published, and that was replaced."""

    version: int = Field(ge=1)
    published_at_ms: int = Field(ge=0, description="As that plan told.")
    at_ms: int = Field(ge=0, description="When it was found.")


class PlannedHeartbeat(Record):
    """The heartbeats that the slot which copies the first partition of the source's heartbeat topic writes to it."""

    topic: str = Field(description="On the source.")
    source: str = Field(description="In the heartbeat's key: the other end of the flow, so the link's destination.")
    target: str = Field(description="In the heartbeat's key: the cluster that it is written on.")
    interval_seconds: int = Field(ge=1)


class PlannedGroupSync(Record):
    """Which consumer groups' offsets the application commits on the destination, and its polling interval."""

    include: tuple[str, ...] = Field(description="Regular expressions for whole names, as in the links file.")
    exclude: tuple[str, ...] = ()
    interval_seconds: int = Field(ge=1)
    include_moved: bool = False
    checkpoints_topic: str = Field("", description="For MirrorMaker 2's checkpoints; empty: none are written.")
    offset_syncs_topic: str = Field("", description="For MirrorMaker 2's offset syncs, likewise.")


class PlannedSettings(Record):
    """The settings that a plan is based on. Two plans with equal digests are based on equal settings."""

    digest: str = Field(description="Of the link's settings but for its topics, which always come from a links file.")
    topics_digest: str = Field(description="Of the `topics` block.")
    origins: dict[str, str] = Field(
        default_factory=dict,
        description="`topics` or a cluster's name -> where it came from, if not from the links file.",
    )
    topics: str = Field("", description="That block as JSON, where it did not come from the links file.")


class Plan(Record):
    """All instructions for the slots of one task group. ``version`` increases by one with each publication."""

    v: Literal[1] = 1
    link: str
    group: str
    version: int = Field(ge=1)
    producer_id: int = Field(ge=0, description="The link's one producer id; the same for ever.")
    stopped: bool = Field(False, description="The application exits with 0.")
    stop: Pause | None = Field(
        None, description="Who stopped the link, when and why. Written only if known: older versions cannot read it."
    )
    slots: int = Field(ge=1, le=MOST_SLOTS)
    topics: tuple[PlannedTopic, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    left: tuple[LeftTopic, ...] = Field((), description="The whole link's: should the map be lost, they are not new.")
    budgets: tuple[Budget, ...] = ()
    backfill: PlannedBackfill | None = Field(
        None,
        description="In the plan of the group that copies history. Written only if there is one: older versions cannot read it.",
    )
    pauses: tuple[Pause, ...] = Field((), description="The whole link's, the same in the plan of every task group.")
    decisions: tuple[Decision, ...] = Field(
        (),
        description="The whole link's that are not over. Written only if there are any: older versions cannot read them.",
    )
    bounds: tuple[TopicBound, ...] = Field(
        (),
        description="Ends of the whole link's topics. Written only if there are any: older versions cannot read them.",
    )
    heartbeat: PlannedHeartbeat | None = None
    consumer_groups: PlannedGroupSync | None = Field(None, description="In the plan of the `default` group alone.")
    settings: PlannedSettings | None = Field(
        None, description="In the plan of the `default` group alone; None also in plans of older versions."
    )
    copied_from: str = Field("", description="Id of the source cluster as it was when the link began.")
    source_cluster: str = Field("", description='Id of the source cluster; no other is copied from. "": unknown.')
    destination_cluster: str = Field("", description="Id of the destination cluster; no other is written to.")
    acls: tuple[GivenAcl, ...] = Field((), description="Rules that the link has given for copies in all its life.")
    replaced: ReplacedPlan | None = Field(
        None,
        description="The last foreign plan of the task group. Written only if there was one: older versions cannot read it.",
    )
    published_at_ms: int = Field(ge=0)
    registered: bool = Field(False, description="The producer id was in strait.producers before this was published.")

    @property
    def transformed(self) -> frozenset[str]:
        """Source topics whose records are transformed."""
        return frozenset(topic.source for topic in self.topics if topic.policy.transform is not None)

    @property
    def transforms(self) -> frozenset[int]:
        """The numbers of their transformations."""
        transforms = ((topic.source, topic.policy.transform) for topic in self.topics)
        return frozenset(transform.number(topic) for topic, transform in transforms if transform is not None)


def newest_of(plans: Iterable[Plan]) -> Plan | None:
    """Return the newest of a link's plans; the others are outdated if a process died between two publications."""
    return max(plans, key=lambda plan: plan.published_at_ms, default=None)


def finished_ends(plans: Iterable[Plan]) -> dict[TopicPartition, int]:
    """Return the partitions that were copied up to their ends, by a link's plans: source partition -> that offset."""
    newest = newest_of(plans)
    bounds = () if newest is None else newest.bounds
    return {TopicPartition(bound.topic, number): bound.ends[number] for bound in bounds for number in bound.finished}


class OffsetMapping(Record):
    """One offset segment of a destination partition.

    From ``sequence_base`` on, record n of the link in this partition is at destination offset
    ``destination_base + (n - sequence_base)`` and at source offset ``source_base + (n - sequence_base)``, plus the
    source offsets without a record that ``gaps`` counts up to it (see strait.state.offset_map).

    Written and acknowledged before the first batch that it describes. ``sequence_end`` is a checkpoint: at
    ``checkpoint_at_ms`` at least that many records were known to be written as this segment describes; it only grows.
    If it is below ``sequence_base``, it confirms no record of this segment yet.
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
    gaps: str = Field("", description="Packed by strait.state.offset_map.")
    sequence_end: Offset
    shared: bool = Field(
        False, description="Others may write there: ``destination_base`` is what follows from the record at the end."
    )
    source_epoch: int = Field(-1, description="Leader epoch at the source of the last confirmed record; -1: not known.")
    after_unknown: bool = Field(
        False,
        description="The map was rebuilt, and the source offsets of the records before ``sequence_base`` are unknown, "
        "down to the ``sequence_end`` of the run before.",
    )
    checkpoint_at_ms: int = Field(ge=0)
    transform: str = Field(
        "",
        description="Digest of the transformation that made these records, empty if none did. Written only if there is one: "
        "older versions cannot read it.",
        pattern=r"^[0-9a-f]*$",
    )


class Registration(Record):
    """A producer ID whose batches in the destination cluster are replicated. This record is acknowledged before the
    first of them is written."""

    v: Literal[1] = 1
    producer_id: Offset
    link: str
    source: str = Field(description="Kafka's id of the cluster that the link copies from.")
    destination: str = Field(description="Kafka's id of the cluster that it writes into, which this topic belongs to.")
    purpose: Literal["link", "repair"] = Field(
        "link", description="repair: what a person writes into copies by a command of the link, as a replay."
    )


class Loss(Record):
    """One entry of the loss log: offsets [``from_offset``, ``to_offset``) of one side, and the action taken."""

    v: Literal[1] = 1
    link: str
    topic: str = Field(description="Source topic.")
    partition: Offset
    side: Literal["source", "destination"] = Field(description="Whose offsets these are.")
    cause: Reason
    from_offset: Offset
    to_offset: Offset
    at_ms: int = Field(ge=0)
    action: Literal["halted", "continued", "restarted"]
    detail: Told


class LossAcknowledgement(Record):
    """An operator has taken note of losses: of the first ``count`` entries of the loss log, or of those of one topic. It
    covers no entry that follows it in the log. Versions without it report it as unreadable."""

    v: Literal[1] = 1
    link: str
    topic: str = Field("", description="Source topic; empty: all of them.")
    count: Offset
    by: Told
    at_ms: int = Field(ge=0)
    reason: Told = ""
