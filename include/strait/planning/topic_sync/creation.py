"""Destination topics: those that exist, those to create, and the selected partitions that wait for one. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from strait.config.links import Link
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.topic_sync.actions import CreateTopic
from strait.planning.topic_sync.configs import created_with
from strait.planning.topics.decisions import trace
from strait.planning.topics.identity import Change
from strait.planning.topics.lost_mappings import Begun
from strait.planning.topics.pairs import Pair
from strait.planning.topics.policies import creates
from strait.planning.topics.selection import Selection
from strait.reasons import Reason
from strait.state.schema import Waiting
from strait.text import plural

_NOTHING = Begun({}, {}, frozenset(), {})
_NONE: Mapping[TopicPartition, Change] = {}


@dataclass(frozen=True, slots=True)
class Destinations:
    """The destinations of selected topics. All fields are in order of source names."""

    create: tuple[CreateTopic, ...]
    pairs: tuple[Pair, ...]
    waiting: tuple[Waiting, ...]


def find_destinations(
    link: Link,
    selection: Selection,
    source: ClusterFacts,
    destination: ClusterFacts,
    refused: Mapping[str, str] | None = None,
    begun: Begun = _NOTHING,
    deleted: Mapping[TopicPartition, Change] = _NONE,
) -> Destinations:
    """Pair every selected topic with its destination topic.

    Args:
        ``refused``: destination topics that could not be created or given more partitions -> cause.
        begun: topics and partitions that were replicated before.
        deleted: partitions whose destination topic was deleted. Their topics are not created again, and partitions of
            these topics that were never replicated wait as well.
    """
    refused = refused or {}
    gone = {place.topic: change.detail for place, change in deleted.items()}
    create, pairs = [], []
    waiting = [
        Waiting(topic=t, reason=Reason.SOURCE_MISSING, detail=_missing(t, source, begun)) for t in selection.missing
    ]
    for topic in selection.selected:
        facts = source.topics[topic]
        target = selection.names[topic]
        home = destination.topics.get(target)
        if home is not None:
            pair = Pair(facts, home)
            pairs.append(pair)
            waiting += _unfit(link, pair, source.name, destination.name, refused.get(target))
        elif topic in gone:
            others = [n for n in range(facts.partitions) if TopicPartition(topic, n) not in deleted]
            waiting += _deleted(topic, others, gone[topic])
        elif facts.denied:
            waiting.append(Waiting(topic=topic, reason=Reason.SOURCE_DENIED, detail=facts.denied))
        elif creates(link, topic) and target not in refused:
            configs = created_with(link, facts)
            create.append(CreateTopic(target, topic, facts.partitions, _replicas(link, facts), configs))
        else:
            why = f"creating it: {refused[target]}" if target in refused else "`create_topics` is false"
            waiting.append(
                Waiting(
                    topic=topic,
                    partitions=tuple(range(facts.partitions)),
                    reason=Reason.DESTINATION_MISSING,
                    detail=f"topic {target} does not exist on {destination.name}: {why}",
                )
            )
    return Destinations(tuple(create), tuple(pairs), tuple(sorted(waiting, key=lambda item: item.topic)))


def _unfit(link: Link, pair: Pair, source: str, destination: str, refused: str | None) -> Iterable[Waiting]:
    topic, target = pair.source.topic, pair.destination.topic
    if pair.source.unknown:
        yield Waiting(topic=topic, reason=Reason.SOURCE_DENIED, detail=pair.source.denied)
    elif pair.destination.unknown:
        yield Waiting(topic=topic, reason=Reason.DESTINATION_DENIED, detail=pair.destination.denied)
    elif pair.destination_stamps:
        detail = f"topic {target} on {destination} has message.timestamp.type=LogAppendTime"
        yield Waiting(topic=topic, reason=Reason.DESTINATION_LOG_APPEND_TIME, detail=detail)
    elif pair.fit < pair.source.partitions and (refused is not None or not creates(link, topic)):
        why = "" if refused is None else f": adding them: {refused}"
        yield Waiting(
            topic=topic,
            partitions=tuple(range(pair.fit, pair.source.partitions)),
            reason=Reason.DESTINATION_HAS_FEWER_PARTITIONS,
            detail=f"topic {target} on {destination} has {plural(pair.destination.partitions, 'partition')}, "
            f"on {source} it has {pair.source.partitions}{why}",
        )


def _replicas(link: Link, source: TopicFacts) -> int | None:
    if link.replication_factor == "source":
        return source.replicas or None
    return link.replication_factor


def _missing(topic: str, source: ClusterFacts, begun: Begun) -> str:
    if topic not in begun.topics:
        return f"topic {topic} does not exist on {source.name}, or this principal may not see it"
    copies = sorted({past[-1].destination for place, past in begun.runs.items() if place[0] == topic and past})
    left = f"; they stay in {', '.join(copies)} on the destination" if copies else ""
    return (
        f"{source.name} does not have topic {topic} any more, or hides it from this principal; the link has copied "
        f"{trace(topic, begun)}{left}"
    )


def _deleted(topic: str, partitions: Collection[int], detail: str) -> Iterable[Waiting]:
    if partitions:
        yield Waiting(topic=topic, partitions=tuple(partitions), reason=Reason.DESTINATION_DELETED, detail=detail)
