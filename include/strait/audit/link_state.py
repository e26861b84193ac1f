"""The state of a link that an audit needs: plans, offset map, and the records that explain differences."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter

from strait.audit.plan import LOSSES, QUARANTINE, AuditedPartition, MovedIn, OnRecord
from strait.config import naming
from strait.config.cluster import Cluster
from strait.config.cluster_identity import expecting
from strait.config.route_names import is_meant, topic_of
from strait.config.validation import did_you_mean
from strait.errors import ClusterUnavailable, ConfigError
from strait.kafka.reading import read_topic
from strait.model import TopicPartition
from strait.reasons import Reason
from strait.state.exchanged import exchanged_addresses
from strait.state.moved_copies import clusters_left_out, end_of_copies
from strait.state.planned_pairs import runs_about
from strait.state.producer_registry import Registrations
from strait.state.quarantine_log import Contents, Entry
from strait.state.reader import StateReader
from strait.state.registrations import registrations, require_readable
from strait.state.schema import Loss, OffsetMapping, Plan, PlannedTopic, Registration, Waiting
from strait.state.signing import Proof
from strait.state.translation import Translator

Properties = Mapping[str, str]


@dataclass(frozen=True)
class Ends:
    """Both clusters of an audit: names, properties."""

    source: str
    source_properties: Properties = field(repr=False)
    destination: str
    destination_properties: Properties = field(repr=False)

    def expecting(self, source_id: str, destination_id: str) -> "Ends":
        """Return the ends with the expected IDs of their clusters, "" for an unknown one; see `Cluster.expecting`."""
        here, there = (
            expecting(self.source_properties, source_id),
            expecting(self.destination_properties, destination_id),
        )
        return Ends(self.source, here, self.destination, there)


@dataclass
class LinkState:
    """A link's plans, its offset map and all that explains differences.

    Attributes:
        proofs: task group -> whether its plan is proven to come from a control plane.
        writers, source_writers: on the destination and on the source, the links that write there, and the records that other
            tools had replicated there.
    """

    plans: Mapping[str, Plan]
    proofs: Mapping[str, Proof]
    runs: Mapping[tuple[str, int], Sequence[OffsetMapping]]
    losses: Mapping[TopicPartition, list[Loss]]
    quarantined: Mapping[TopicPartition, list[Entry]]
    writers: Registrations
    source_writers: Registrations


def requested(link: str, plans: Collection[Plan], topics: Collection[str]) -> tuple[list[PlannedTopic], list[Waiting]]:
    """Return the planned topics of a request by name, and the entries of those that are selected and not planned.

    Args:
        topics: those that are requested; empty: all, except those that the source does not have.

    Raises:
        ConfigError: the link has none of a requested name.
    """
    planned = {topic.source: topic for plan in plans for topic in plan.topics}
    waiting = [item for plan in plans for item in plan.waiting if item.topic not in planned]
    names = {*planned, *(item.topic for item in waiting)}
    for name in topics:
        if not any(is_meant(name, topic) for topic in names):
            raise ConfigError(f"link {link}", [f"its plan has no topic {name!r}{did_you_mean(name, names)}"])

    def wanted(topic: str) -> bool:
        return not topics or any(is_meant(name, topic) for name in topics)

    waiting = [item for item in waiting if topics or item.reason != Reason.SOURCE_MISSING]
    return [planned[topic] for topic in sorted(planned) if wanted(topic)], [it for it in waiting if wanted(it.topic)]


def not_replicated(waiting: Iterable[Waiting]) -> list[AuditedPartition]:
    """Return the partitions of topics that are selected and not planned, with the reason. If the plan names none, the first
    one represents all."""
    return [
        AuditedPartition(
            topic=item.topic, partition=number, copy_topic="", problem=f"not replicated: {item.reason}: {item.detail}"
        )
        for item in waiting
        for number in item.partitions or (0,)
    ]


def no_topic(cluster: str, name: str) -> str:
    return f"cluster {cluster} has no topic {name}, or hides it from this principal, which needs DESCRIBE on it"


def no_plan(ends: Ends, link: str) -> ConfigError:
    """Return the error for a link whose destination has no plan of it."""
    source = Cluster(ends.source_properties, ends.source)
    with suppress(ClusterUnavailable):  # an audit by the ledger needs no source
        if error := exchanged_addresses(link, source, Cluster(ends.destination_properties, ends.destination)):
            return error
    return ConfigError(f"link {link}", ["has no plan with topics"], hint=f"run `strait apply {link}`")


def map_of(partition: AuditedPartition, state: LinkState) -> Translator | None:
    """Return the link's map of a partition; None if it has no entries."""
    planned = {topic.source: topic for plan in state.plans.values() for topic in plan.topics}
    if partition.topic not in planned:
        return None
    return _translator(planned[partition.topic], partition.partition, state.runs, partition.end, shared=partition.whole)


def _translator(
    topic: PlannedTopic,
    number: int,
    runs: Mapping[tuple[str, int], Sequence[OffsetMapping]],
    written: int,
    shared: bool,
) -> Translator | None:
    found = runs_about(runs.get((topic.source, number), ()), topic)
    if not found:
        return None
    return Translator(found, written, shared=shared, compacted=topic.policy.source_compacted)


def read_link(ends: Ends, link: str) -> LinkState:
    """Read a link's state. Raises ClusterUnavailable, NotAuthorized, StateError."""
    there = ends.destination_properties, ends.destination
    with StateReader(*there, link, follow=("plan", "map", "losses")) as state:
        state.catch_up()
        plans, proofs, runs = dict(state.plans), dict(state.proofs), dict(state.runs)
        losses: dict[TopicPartition, list[Loss]] = {}
        for loss in state.losses:
            losses.setdefault(TopicPartition(loss.topic, loss.partition), []).append(loss)
    return LinkState(
        plans,
        proofs,
        runs,
        losses,
        _quarantined(*there, link),
        registrations(*there, link),
        registrations(ends.source_properties, ends.source, link),
    )


def require_known_copies(state: LinkState, topics: Iterable[PlannedTopic], source: str) -> None:
    """Raise StateError if it is unknown which records of the topics the link skips as copies: an audit would report the
    records of an unknown link as missing, and a repair would write them."""
    if any(topic.policy.copies != "all" for topic in topics):
        require_readable(state.source_writers, source)


def _quarantined(properties: Properties, cluster: str, link: str) -> dict[TopicPartition, list[Entry]]:
    contents = Contents()
    for message in read_topic(properties, cluster, naming.quarantine_topic(link)):
        contents.apply(message.offset() or 0, message.key(), message.value(), list(message.headers() or ()))
    found: dict[TopicPartition, list[Entry]] = {}
    for entry in contents.entries():
        found.setdefault(TopicPartition(entry.topic, entry.partition), []).append(entry)
    return found


_RECREATED = {Reason.SOURCE_RECREATED, Reason.DESTINATION_RECREATED, Reason.DESTINATION_DELETED}
_TRUNCATED = {Reason.SOURCE_TRUNCATED, Reason.DESTINATION_TRUNCATED}


def on_record(losses: Iterable[Loss], quarantined: Iterable[Entry]) -> list[OnRecord]:
    """Return the entries about records that a partition's logs have now, or that would be there.

    Other records get the offsets of those that a log lost at its end, or of a topic that was recreated; so no entry from
    before is about them.
    """
    entries = [
        (
            loss.at_ms,
            loss.cause,
            OnRecord(side=loss.side, first=loss.from_offset, end=loss.to_offset, cause=LOSSES + loss.cause),
        )
        for loss in losses
        if loss.action != "halted"
    ]
    for entry in quarantined:
        cause = f"{QUARANTINE}{entry.settled or 'unresolved'}"
        one = OnRecord(side="source", first=entry.offset, end=entry.offset + 1, cause=cause)
        entries.append((entry.quarantined_at_ms, Reason.QUARANTINED, one))
    found: list[OnRecord] = []
    for _, cause, one in sorted(entries, key=itemgetter(0)):
        if cause in _RECREATED:
            found = [it for it in found if it.side != one.side]
        elif cause in _TRUNCATED:
            found = [kept for it in found if (kept := _before(it, one)) is not None]
        else:
            found.append(one)
    return found


def _before(one: OnRecord, truncated: OnRecord) -> OnRecord | None:
    """Return an entry without the offsets from a truncated log's end on."""
    if one.side != truncated.side or one.end <= truncated.first:
        return one
    return one.model_copy(update={"end": truncated.first}) if one.first < truncated.first else None


def owner_of(one: Registration, link: str) -> str:
    if one.link == link and one.purpose == "repair":
        return "replay"
    return f"link {one.link}"


def moved_in(
    topic: PlannedTopic, number: int, state: LinkState, runs: Sequence[OffsetMapping], ids: tuple[str, str]
) -> MovedIn | None:
    """Return the ends of the records that another tool had replicated from the source of the link before its start.

    Args:
        runs: the map's entries for the partition.
        ids: Kafka's IDs of source and destination.
    """
    source_id, _ = ids
    first = min(runs, key=attrgetter("sequence_base"))
    known = state.writers.moved_in()
    end = end_of_copies(known, topic.destination, topic.destination_id, number, {source_id})
    return MovedIn(source_end=first.source_base, copy_end=min(end, first.destination_base)) if end else None


def skipped_before(
    topic: PlannedTopic, one: AuditedPartition, state: LinkState, runs: Sequence[OffsetMapping], ids: tuple[str, str]
) -> int:
    """Return how many source offsets before the link's start hold records that another tool had replicated there, from a
    cluster whose records the link does not copy; as `moved_in`."""
    left_out = clusters_left_out(topic.policy.copies, *ids)
    known = state.source_writers.moved_in()
    end = end_of_copies(known, topic_of(topic.source), topic.source_id, one.partition, left_out)
    return max(0, min(end, *(run.source_base for run in runs)) - one.source_start)
