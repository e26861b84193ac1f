"""Queries both clusters for records that destination topics deleted by their own settings."""

from collections.abc import Iterable, Mapping, Sequence

from strait.control.forecast import Clusters
from strait.model import TopicPartition
from strait.planning.risks.risks import kept_less
from strait.planning.topics.kept_less import Remains, deleted_there, to_record
from strait.planning.topics.pairs import Pair
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping


def losses_by_settings(
    clusters: Clusters,
    link: str,
    pairs: Iterable[Pair],
    runs: Mapping[tuple[str, int], Sequence[OffsetMapping]],
    now_ms: int,
) -> tuple[Loss, ...]:
    """Return the entries for the loss log. Queries nothing unless a destination topic keeps less than its source, and
    reads the loss log only if such a topic has deleted records.

    Raises:
        ClusterUnavailable, NotAuthorized: a cluster does not answer.
    """
    source, destination = clusters.source, clusters.destination
    less = [(pair, risks) for pair in pairs if (risks := kept_less([pair]))]
    if not less:
        return ()
    places = {
        TopicPartition(pair.source.topic, number): (
            pair,
            TopicPartition(pair.destination.topic, number),
            "; ".join(risk.detail for risk in risks),
        )
        for pair, risks in less
        for number in range(pair.fit)
    }
    first = source.offsets_each(places, "earliest").results
    there = destination.offsets_each((target for _, target, _ in places.values()), "earliest").results
    found = {
        place: Remains(first[place], there[target], settings)
        for place, (_, target, settings) in places.items()
        if place in first and target in there
    }
    current: dict[tuple[str, int], list[OffsetMapping]] = {
        place: _current(runs.get(place, ()), places[place][0]) for place in found
    }
    vanished = any(deleted_there(current[place], remains) for place, remains in found.items())
    if not vanished:
        return ()
    with StateReader(*destination.at, link, follow=("losses",)) as log:
        log.catch_up()
        return to_record(link, found, current, log.losses, now_ms)


def _current(runs: Iterable[OffsetMapping], pair: Pair) -> list[OffsetMapping]:
    ids = pair.source.topic_id, pair.destination.topic_id
    return [run for run in runs if (run.source_id, run.destination_id) == ids]
