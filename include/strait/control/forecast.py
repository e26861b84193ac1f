"""The cost and risks of topics whose replication starts: queries both clusters and makes no decision.

Replication needs none of it, so unavailable facts are reported and stop nothing.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeVar

from strait.config.links import Link
from strait.control.bounds import ends_of
from strait.control.other_links import other_links
from strait.control.start_offsets import ranges_of
from strait.errors import ClusterError, ProtocolError
from strait.kafka.admin import Admin
from strait.net.cluster_facts import partition_bytes, quotas
from strait.net.served import End
from strait.net.survey import survey
from strait.planning.assignment.slots import group_of
from strait.planning.plan.draft import Draft
from strait.planning.plan.planner import Proposal
from strait.planning.review.backfill import Backfill, Reports, backfill_of, starts_at
from strait.planning.review.effects import effects, without_approval
from strait.planning.risks.loops import growing_names, loops_of, moved_in
from strait.planning.risks.risks import (
    PRODUCER_EXPIRATION,
    Known,
    Risk,
    forgetful,
    kept_less,
    lacking,
    risks,
    similar_names,
    smaller_messages,
    wider,
)
from strait.planning.risks.sharing import shared
from strait.planning.risks.slot_size import crowded
from strait.planning.risks.state_safety import state_writers
from strait.planning.topic_sync.actions import GrowTopic
from strait.state.producer_registry import Registrations
from strait.state.registrations import registrations
from strait.state.schema import Plan
from strait.text import plural
from strait.waiting import unix_ms

_MOST_LINKS = 100
"""Number of other links whose plans are read: each takes a twentieth of a second or more."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Forecast:
    """The cost and the risks ahead. ``unknown``: why some facts are unavailable."""

    backfill: Backfill = field(default_factory=Backfill)
    risks: tuple[Risk, ...] = ()
    unknown: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield human-readable lines."""
        yield from self.backfill.lines()
        yield from map(str, self.risks)
        for text in self.unknown:
            yield f"not known {text}"

    def as_data(self) -> dict[str, Any]:
        """Return the same, machine-readable."""
        ahead = self.backfill
        return {
            "backfill": {
                "records": ahead.records,
                "bytes": ahead.bytes,
                "seconds": ahead.seconds,
                "topics": [asdict(item) for item in ahead.topics],
            },
            "risks": [risk._asdict() for risk in self.risks],
            "not_known": list(self.unknown),
        }


@dataclass(frozen=True, slots=True)
class Clusters:
    """Both ends of a link."""

    source: Admin
    destination: Admin


def forecast(name: str, link: Link, proposal: Proposal, clusters: Clusters, reports: Callable[[], Reports]) -> Forecast:
    """Forecast the topics whose replication starts, and check the conditions that the link relies on permanently."""
    unknown: list[str] = []
    pairs = proposal.survey.destinations.pairs
    standing = (
        _lacks(clusters)
        + _producer_state(clusters, unknown)
        + crowded(link.groups, _partitions(link, proposal))
        + _writers(name, clusters)
        + kept_less(pairs)
        + smaller_messages(pairs)
        + wider(pairs)
        + growing_names(proposal.survey.selection.names)
    )
    planned = (*effects(link, proposal), *without_approval(link, proposal))
    begin = {subject for verb, subject, _ in planned if verb == "copies"}
    if not begin:
        return Forecast(risks=standing)
    known = _known(clusters, proposal, begin, unknown)
    beginning = [pair for pair in pairs if pair.source.topic in begin]
    growing = {item.topic for item in proposal.actions if isinstance(item, GrowTopic)}
    begins = starts_at(link, proposal)
    sizes = _or_none(lambda: partition_bytes(*clusters.source.at, begins), unknown)
    ranges, unread = ranges_of(clusters.source, begins)
    if unread:
        place, why = min(unread.items())
        unknown.append(f"the backfill of {plural(len(unread), 'partition')}, such as {place}: {why}")
    ends = _or_none(lambda: ends_of(link, proposal.survey.policies, begins, clusters.source, unix_ms()), unknown)
    return Forecast(
        backfill_of(link, begins, ranges, sizes or {}, reports(), unix_ms(), ends or {}),
        standing
        + risks(beginning, growing, sorted(begin), known)
        + similar_names(proposal.survey.selection.names, begin)
        + moved_in(link, proposal.survey.moved_in)
        + _loops(link, proposal, clusters, unknown)
        + _shared(name, proposal, begin, clusters, unknown),
        tuple(unknown),
    )


def _partitions(link: Link, proposal: Proposal) -> Counter[str]:
    """Return the number of partitions that each task group replicates after the proposal is carried out and the topics
    that it creates exist."""
    plans: dict[str, Draft | Plan] = {**proposal.plans, **proposal.drafts}
    found = Counter(
        {group: sum(slot is not None for topic in plan.topics for slot in topic.slots) for group, plan in plans.items()}
    )
    sources = {name: source for source, name in proposal.survey.selection.names.items()}
    for item in proposal.create:
        if item.topic in sources:
            found[group_of(link, sources[item.topic])] += item.partitions
    return found


def _known(clusters: Clusters, proposal: Proposal, begin: Collection[str], unknown: list[str]) -> Known:
    there = {pair.destination.topic for pair in proposal.survey.destinations.pairs if pair.source.topic in begin}
    source, destination = clusters.source, clusters.destination
    on_source = _or_none(lambda: source.rights(begin), unknown)
    on_destination = _or_none(lambda: destination.rights(there), unknown)
    read = _or_none(lambda: quotas(*source.at, "consumer_byte_rate"), unknown)
    written = _or_none(lambda: quotas(*destination.at, "producer_byte_rate"), unknown)
    return Known(on_source or {}, on_destination or {}, read or {}, written or {})


def _writers(link: str, clusters: Clusters) -> tuple[Risk, ...]:
    """Return nothing if the destination has no authorizer or does not list its ACLs: replication need not read them."""
    try:
        return state_writers(link, clusters.destination.acls())
    except ClusterError:
        return ()


def _lacks(clusters: Clusters) -> tuple[Risk, ...]:
    """Return a risk for each request that a cluster does not serve; none for brokers that cannot be queried, since the
    next query reports that."""
    ends: tuple[tuple[End, Admin], ...] = (("source", clusters.source), ("destination", clusters.destination))
    return tuple(
        lacking(end, lack.name, lack.need.cost) for end, admin in ends for lack in survey(*admin.at, end).lacks
    )


def _producer_state(clusters: Clusters, unknown: list[str]) -> tuple[Risk, ...]:
    expirations = _or_none(lambda: clusters.destination.on_brokers(PRODUCER_EXPIRATION), unknown)
    return forgetful(expirations.values()) if expirations else ()


def _loops(link: Link, proposal: Proposal, clusters: Clusters, unknown: list[str]) -> tuple[Risk, ...]:
    into = []
    for end in (clusters.source, clusters.destination):
        known = _or_none(partial(registrations, *end.at), unknown) or Registrations()
        if known.trouble:
            unknown.append(
                f"whether a loop includes a link into {end.cluster} whose registration cannot be read: {known.trouble}"
            )
        into.append(known.all())
    return loops_of(link, proposal.survey.selection.names, clusters.destination.cluster_id, *into)


def _shared(
    name: str, proposal: Proposal, begin: Collection[str], clusters: Clusters, unknown: list[str]
) -> tuple[Risk, ...]:
    found = proposal.survey
    at, source_id = clusters.destination.at, found.clusters[0]
    others = _or_none(lambda: other_links(*at, name, source_id=source_id, most=_MOST_LINKS), unknown)
    if others is None:
        return ()
    unknown += [f"whether {other} writes to the same topics: {why}" for other, why in others.unread.items()]
    return shared(found.selection.names, found.policies, begin, source_id, others)


def _or_none(ask: Callable[[], Answer], unknown: list[str]) -> Answer | None:
    try:
        return ask()
    except (ClusterError, ProtocolError) as error:
        if str(error) not in unknown:
            unknown.append(str(error))
        return None
