"""Readiness of a link for a failover, besides the checks of the failover itself. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from strait.config.route_names import topic_of
from strait.model import TopicFacts, TopicPartition
from strait.planning.failover import Check, Verdict
from strait.planning.status.rows import PartitionStatus
from strait.state.failover_records import FailoverStep
from strait.state.verified import Verified
from strait.text import listed, plural, utc

_RETENTION = ("retention.ms", "retention.bytes")


class Sample(NamedTuple):
    """The record that consumers would read next: on the source at a group's committed offset, on the destination at its
    translation. None: there is no record yet."""

    group: str
    place: TopicPartition
    source: object
    destination: object


def topics(left_out: Sequence[PartitionStatus], trouble: str) -> Check:
    """Check that no topic is skipped that the link names or matches."""
    if trouble:
        return Check(Verdict.WARNING, f"topics that are left out are not known: {trouble}")
    if left_out:
        shown = [f"{row.topic} ({row.reason})" for row in left_out]
        return Check(Verdict.WARNING, f"{plural(len(left_out), 'topic is', 'topics are')} left out: {listed(shown)}")
    return Check(Verdict.DONE, "no topic that the link names or matches is left out")


def settings(pairs: Sequence[tuple[TopicFacts, TopicFacts | None]]) -> Check:
    """Check that the destination topics retain as much, as long and as safely as the source topics."""
    found = [f"{source.topic}: {what}" for source, copy in pairs for what in _worse(source, copy)]
    if found:
        return Check(
            Verdict.WARNING,
            f"{plural(len(found), 'setting of destination topics is', 'settings of destination topics are')} weaker: {listed(found)}",
        )
    return Check(
        Verdict.DONE,
        f"{plural(len(pairs), 'destination topic keeps', 'destination topics keep')} as much as their sources",
    )


def shadow(groups: int, wrong: Sequence[str]) -> Check:
    """Check that the destination retains offsets as they were committed, tested with groups of other names."""
    if wrong:
        return Check(
            Verdict.FAILED, f"{plural(len(wrong), 'offset was', 'offsets were')} not kept as committed: {listed(wrong)}"
        )
    return Check(
        Verdict.DONE, f"the offsets of {plural(groups, 'group')} were committed under other names, and read back"
    )


def samples(found: Sequence[Sample], transformed: Collection[str] = ()) -> Check:
    """Check that the next record of each group is the same on both sides. ``transformed``: topics of which none was compared."""
    other = [f"{sample.group} in {sample.place}" for sample in found if sample.source != sample.destination]
    if other:
        return Check(
            Verdict.FAILED, f"{len(other)} of {plural(len(found), 'group')} would read another record: {listed(other)}"
        )
    text = f"the next record is the same on both sides in {plural(len(found), 'partition')}"
    if transformed:
        return Check(
            Verdict.WARNING, f"{text}; not compared, since a rule transforms it: {listed(sorted(transformed))}"
        )
    return Check(Verdict.DONE, text)


def audited(link: str, topics: Collection[str], results: Mapping[str, Verified]) -> Check:
    """Report how many of these source topics are verified by audits, and until when all of those are.

    Args:
        results: source topic -> its verification by audits.
    """
    differ = sorted(name for name in topics if name in results and results[name].differs)
    until = {name: ms for name in topics if name in results and (ms := results[name].until_ms) is not None}
    missing = sorted({*topics} - until.keys() - {*differ})
    text = f"audits have compared all records of {len(until)} of {plural(len(topics), 'topic')}"
    if until:
        text += f", and found no difference, until {utc(min(until.values()))} UTC"
    if missing:
        text += f"; not of {listed(missing)}: strait audit {link} compares them"
    if differ:
        shown = listed([f"{name} {results[name].differences:,}" for name in differ])
        found = f"audits found records of {plural(len(differ), 'topic that differs', 'topics that differ')}: {shown}; strait audit list {link} names the audits"
        text = f"{found}; {text}"
    return Check(Verdict.WARNING if missing or differ else Verdict.DONE, text)


def score(steps: Sequence[FailoverStep]) -> int:
    """Return how many percent of the steps hold; one with a warning counts half."""
    worth: Mapping[str, float] = {Verdict.DONE: 1.0, Verdict.WARNING: 0.5}
    return round(100 * sum(worth.get(step.verdict, 0.0) for step in steps) / len(steps)) if steps else 0


def rpo_records(rows: Sequence[PartitionStatus]) -> int | None:
    """Return how many offsets a failover would lack if the source was lost now; None: unknown of some partition. Of the routes
    of a partition, the one that lacks most counts: a record is on one of them."""
    if any(value < 0 for row in rows for value in (row.lag_records, row.held_back_records)):
        return None
    most: dict[tuple[str, int | None], int] = {}
    for row in rows:
        place = topic_of(row.topic), row.partition
        most[place] = max(most.get(place, 0), row.lag_records + row.held_back_records)
    return sum(most.values())


def rpo_seconds(rows: Sequence[PartitionStatus]) -> float | None:
    """Return the largest age, over all partitions, of the newest record that the destination would have; None: unknown of
    some partition."""
    parts = [value for row in rows for value in (row.lag_seconds, row.held_back_seconds)]
    return None if any(value < 0 for value in parts) else max(parts, default=0.0)


def _worse(source: TopicFacts, copy: TopicFacts | None) -> list[str]:
    if copy is None:
        return ["has no copy"]
    found = []
    if copy.partitions < source.partitions:
        found.append(f"{plural(copy.partitions, 'partition')} instead of {source.partitions}")
    if 0 < copy.replicas < source.replicas:
        found.append(f"{plural(copy.replicas, 'replica')} instead of {source.replicas}")
    if copy.configs.get("cleanup.policy") != source.configs.get("cleanup.policy"):
        found.append(f"cleanup.policy {copy.configs.get('cleanup.policy')}")
    for name in _RETENTION:
        here, there = (_bound(facts.configs.get(name, "-1")) for facts in (source, copy))
        if there < here:
            found.append(f"{name} {copy.configs[name]} instead of {source.configs[name]}")
    return found


def _bound(value: str) -> float:
    return float("inf") if value == "-1" else float(value)
