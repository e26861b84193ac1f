"""Queries both clusters for records that destination topics deleted by their own settings."""

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from random import Random

from strait.control.forecast import Clusters
from strait.errors import ClusterUnavailable, LoginRejected, OtherCluster, StraitError
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs
from strait.planning.risks.risks import Risk, kept_less
from strait.planning.topics.kept_less import (
    RECORDED_EVERY_MS,
    Remains,
    Span,
    deleted_there,
    recently_recorded,
    start_to_read,
    to_record,
)
from strait.planning.topics.pairs import Pair
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping, TopicPolicy
from strait.wire.batch import split_batches

_READ_BYTES = 64 << 10
"""Of each compacted partition, from its first offset on: compaction deletes the oldest records first."""
_MOST_READ = 100
"""Partitions that are read at a time. Others follow with later plans."""
_MOST_UNANSWERED = 2
"""Partitions whose leaders do not answer, after which no others are read: each takes 10 s, and the plan waits for it."""
_LOSSES_SECONDS = RECORDED_EVERY_MS / 1000 + 3600.0  # clocks may differ
Beginnings = MutableMapping[tuple[TopicPartition, str], tuple[Span, ...]]
"""Source topic and partition, and ID of the destination topic -> the first batches of the destination's log, as they were
read a short time ago."""


def losses_by_settings(
    clusters: Clusters,
    link: str,
    pairs: Iterable[Pair],
    runs: Mapping[tuple[str, int], Sequence[OffsetMapping]],
    policies: Mapping[str, TopicPolicy],
    now_ms: int,
    beginnings: Beginnings,
) -> tuple[Loss, ...]:
    """Return the entries for the loss log. Queries nothing unless a destination topic keeps less than its source, and
    nothing of partitions that have an entry of the last week.

    Args:
        policies: those of source topics.
        beginnings: those that need not be read again; extended.

    Raises:
        ClusterUnavailable, NotAuthorized: a cluster does not answer.
    """
    less = [(pair, risks) for pair in pairs if (risks := kept_less([pair]))]
    if not less:
        return ()
    places = {TopicPartition(pair.source.topic, n): (pair, risks) for pair, risks in less for n in range(pair.fit)}
    with StateReader(*clusters.destination.at, link, follow=("losses",), losses_seconds=_LOSSES_SECONDS) as log:
        log.catch_up()
        recorded = log.losses
    recent = recently_recorded(recorded, now_ms)
    known = {
        place: held
        for place, (pair, _) in places.items()
        if place not in recent and (held := _current(runs.get(place, ()), pair))
    }
    if not known:
        return ()
    remains = _remains(clusters, {place: places[place] for place in known}, policies)
    compacted = {place for place in remains if any(risk.code == "copy_compacted" for risk in places[place][1])}
    compacted -= {place for place in compacted if remains[place].shared}
    keys = {place: (place, places[place][0].destination.topic_id) for place in sorted(compacted)}
    unread = [place for place, key in keys.items() if key not in beginnings]
    read = _read(clusters, places, known, remains, _some_of(unread, now_ms))
    beginnings.update({keys[place]: spans for place, spans in read.items()})
    for place, key in keys.items():
        remains[place] = replace(remains[place], spans=beginnings.get(key, ()))
    found = {place: gone for place, held in remains.items() if (gone := deleted_there(known[place], held))}
    return to_record(link, found, recorded, now_ms)


def _remains(
    clusters: Clusters,
    places: Mapping[TopicPartition, tuple[Pair, Sequence[Risk]]],
    policies: Mapping[str, TopicPolicy],
) -> dict[TopicPartition, Remains]:
    targets = {place: _target(place, pair) for place, (pair, _) in places.items()}
    first = clusters.source.offsets_each(places, "earliest").results
    there = clusters.destination.offsets_each(targets.values(), "earliest").results
    return {
        place: Remains(
            first[place],
            there[targets[place]],
            "; ".join(risk.detail for risk in risks),
            shared=place.topic not in policies or policies[place.topic].on_foreign != "halt",
        )
        for place, (_, risks) in places.items()
        if place in first and targets[place] in there
    }


def _some_of(unread: Sequence[TopicPartition], now_ms: int) -> Sequence[TopicPartition]:
    """Return the partitions to read now: consecutive ones, so that they have few topics, from any of them on. Each has the
    same chance with every plan, although a control plane that plans once remembers nothing and runs at regular times."""
    if len(unread) <= _MOST_READ:
        return unread
    first = Random(now_ms).randrange(len(unread))  # noqa: S311  only the order of reading depends on it
    return [*unread[first:], *unread[:first]][:_MOST_READ]


def _read(
    clusters: Clusters,
    places: Mapping[TopicPartition, tuple[Pair, Sequence[Risk]]],
    runs: Mapping[TopicPartition, Sequence[OffsetMapping]],
    remains: Mapping[TopicPartition, Remains],
    chosen: Sequence[TopicPartition],
) -> dict[TopicPartition, tuple[Span, ...]]:
    """Return the first batches of destination logs, without those that cannot be read; none after a login is rejected or
    few leaders answer: a plan does not wait for a note in the loss log."""
    found: dict[TopicPartition, tuple[Span, ...]] = {}
    unanswered = 0
    if not chosen:
        return found
    with PartitionLogs(*clusters.destination.at) as logs:
        for place in chosen:
            offset = start_to_read(runs[place], remains[place])
            try:
                raw = logs.read_raw(_target(place, places[place][0]), offset, _READ_BYTES, committed=False)
                batches = list(split_batches(raw.records, checked_to=0))
            except (LoginRejected, OtherCluster):
                return found
            except ClusterUnavailable:
                unanswered += 1
                if unanswered == _MOST_UNANSWERED:
                    return found
                continue
            except StraitError:
                continue
            if all(batch.magic == 2 for batch in batches):
                found[place] = tuple(Span(batch.base_offset, batch.next_offset, batch.records) for batch in batches)
    return found


def _target(place: TopicPartition, pair: Pair) -> TopicPartition:
    return TopicPartition(pair.destination.topic, place.partition)


def _current(runs: Iterable[OffsetMapping], pair: Pair) -> list[OffsetMapping]:
    ids = pair.source.topic_id, pair.destination.topic_id
    return [run for run in runs if (run.source_id, run.destination_id) == ids]
