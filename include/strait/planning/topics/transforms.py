"""Topics that are transformed on the way: which can be, and the consequence of a changed transformation. Pure."""

from collections.abc import Iterable

from strait.planning.topics.identity import Change, copied
from strait.planning.topics.lost_mappings import Begun
from strait.planning.topics.pairs import Pair
from strait.reasons import Reason
from strait.state.schema import OffsetMapping, TopicPolicy


def untransformed(pair: Pair, begun: Begun, policy: TopicPolicy) -> Change | None:
    """Return why no partition of the topic is replicated; None if it can be, with the transformation of its policy or
    without one.

    Records that were made in another way may already be in the destination topic. Then nothing is added to it: it would
    hold records of both kinds, such as some whose fields are not masked, and the offset map would not show which source
    records are missing.
    """
    if policy.transform is not None and policy.source_compacted:
        detail = (
            f"topic {pair.source.topic} is compacted on the source; a record that a filter leaves out would leave the former "
            "one of its key in the copy, and a record cannot be verified that compaction has removed"
        )
        return Change(Reason.TRANSFORM_UNSUPPORTED, detail, "source", (0, 0))
    wanted = policy.transform_digest
    for other in sorted(begun.sharing(pair.source.topic, pair.destination.topic)):
        if any(_into(begun.runs[place], pair) for place in begun.places.get(other, ())):
            detail = f"{pair.destination.topic} holds records of {other}, and the rule now sends those of {pair.source.topic} there"
            return Change(Reason.TRANSFORM_CHANGED, detail, "destination", (0, 0))
    segments = [begun.runs[place] for place in begun.places.get(pair.source.topic, ())]
    for past in segments:
        others = [run for run in _into(past, pair) if run.transform != wanted]
        if others:
            end = copied(past)[1]
            detail = f"{pair.destination.topic} holds records {_made(others[-1].transform)}; the rule now makes records {_made(wanted)}"
            if all(_is_first(run) for of_partition in segments for run in of_partition):
                detail = (
                    f"{pair.destination.topic} was begun for records {_made(others[-1].transform)}, and the rule now makes records "
                    f"{_made(wanted)}; the map has no record of it, but an instance with the former rule may still write one. If it "
                    f"is empty, delete it and run `strait resolve LINK {pair.source.topic} --restart`"
                )
            return Change(Reason.TRANSFORM_CHANGED, detail, "destination", (end, end))
    return None


def _is_first(run: OffsetMapping) -> bool:
    """Return whether the segment only defines the start of replication."""
    return not run.sequence_end and not run.gaps


def _into(past: Iterable[OffsetMapping], pair: Pair) -> list[OffsetMapping]:
    ids = pair.destination.topic, pair.destination.topic_id
    return [run for run in past if (run.destination, run.destination_id) == ids]


def _made(digest: str) -> str:
    return f"of transformation {digest}" if digest else "that are not transformed"
