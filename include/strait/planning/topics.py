"""What the destination needs so that every selected partition has a home, and what has to wait for one. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strait import naming
from strait.config import Link
from strait.errors import ConfigError
from strait.model import ClusterFacts, TopicFacts
from strait.planning.selection import Selection
from strait.reasons import Reason
from strait.state.schema import Waiting

OBSERVED_CONFIGS = ("message.timestamp.type", "max.message.bytes", "cleanup.policy", "retention.ms", "retention.bytes")
"""The configs that decisions are made from, on both clusters."""

# A created topic takes these from the source where they are not Kafka's defaults: a smaller limit would refuse the
# source's batches, and a shorter retention would delete old records as soon as they are copied.
_CARRIED = {
    "max.message.bytes": "1048588",
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
}


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A destination topic to create. ``replication_factor`` None: the broker's default."""

    topic: str
    source: str
    partitions: int
    replication_factor: int | None
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A source topic and its destination, both there."""

    source: TopicFacts
    destination: TopicFacts

    @property
    def fit(self) -> int:
        """So many partitions, the first ones, can be copied."""
        return 0 if self.destination_stamps else min(self.source.partitions, self.destination.partitions)

    @property
    def destination_stamps(self) -> bool:
        """The destination would put its own timestamps on records."""
        return self.destination.configs.get("message.timestamp.type") == "LogAppendTime"


@dataclass(frozen=True, slots=True)
class Homes:
    """Where selected topics go. All in order of source names."""

    create: tuple[CreateTopic, ...]
    pairs: tuple[Pair, ...]
    waiting: tuple[Waiting, ...]


def find_homes(
    link_name: str,
    link: Link,
    selection: Selection,
    source: ClusterFacts,
    destination: ClusterFacts,
    refused: Mapping[str, str] | None = None,
) -> Homes:
    """Pair every selected topic with its destination.

    Args:
        refused: destination topics that could not be created, and why.

    Raises:
        ConfigError: the link would copy topics onto themselves, or two topics onto one.
    """
    _check_clusters(link_name, link, source, destination)
    _check_names(link_name, link, selection.selected)
    refused = refused or {}
    create, pairs = [], []
    waiting = [Waiting(topic=t, reason=Reason.SOURCE_MISSING, detail=_missing(t, source)) for t in selection.missing]
    for topic in selection.selected:
        facts = source.topics[topic]
        target = naming.destination_topic(topic, link.naming)
        home = destination.topics.get(target)
        if home is not None:
            pair = Pair(facts, home)
            pairs.append(pair)
            waiting += _unfit(pair, destination.name)
        elif link.create_topics and target not in refused:
            create.append(CreateTopic(target, topic, facts.partitions, link.replication_factor, _configs(facts)))
        else:
            why = f"creating it: {refused[target]}" if target in refused else "`create_topics` is false"
            detail = f"cluster {destination.name} has no topic {target}: {why}"
            waiting.append(Waiting(topic=topic, reason=Reason.DESTINATION_MISSING, detail=detail))
    return Homes(tuple(create), tuple(pairs), tuple(sorted(waiting, key=lambda item: item.topic)))


def _unfit(pair: Pair, cluster: str) -> Iterable[Waiting]:
    topic, target = pair.source.topic, pair.destination.topic
    if pair.destination_stamps:
        detail = f"topic {target} on {cluster} has message.timestamp.type=LogAppendTime"
        yield Waiting(topic=topic, reason=Reason.DESTINATION_LOG_APPEND_TIME, detail=detail)
    elif pair.fit < pair.source.partitions:
        yield Waiting(
            topic=topic,
            partitions=tuple(range(pair.fit, pair.source.partitions)),
            reason=Reason.DESTINATION_HAS_FEWER_PARTITIONS,
            detail=f"topic {target} on {cluster} has {pair.destination.partitions} partitions, "
            f"the source has {pair.source.partitions}",
        )


def _configs(source: TopicFacts) -> tuple[tuple[str, str], ...]:
    carried = {name: source.configs.get(name, default) for name, default in _CARRIED.items()}
    chosen = {name: value for name, value in carried.items() if value != _CARRIED[name]}
    chosen["message.timestamp.type"] = "CreateTime"  # whatever the broker's default: a copy keeps its timestamps
    return tuple(sorted(chosen.items()))


def _missing(topic: str, source: ClusterFacts) -> str:
    return f"cluster {source.name} has no topic {topic}, or does not let this principal see it"


def _check_clusters(link_name: str, link: Link, source: ClusterFacts, destination: ClusterFacts) -> None:
    if source.cluster_id == destination.cluster_id and link.naming.policy == "identity":
        raise ConfigError(
            f"links.{link_name}",
            [
                f"source {source.name} and destination {destination.name} are the same Kafka cluster "
                f"({source.cluster_id}) and names stay the same, so each topic would be copied onto itself"
            ],
            hint="correct one cluster's `bootstrap.servers`, or give `naming` a prefix or suffix",
        )


def _check_names(link_name: str, link: Link, topics: Iterable[str]) -> None:
    sources: dict[str, str] = {}
    for topic in topics:
        target = naming.destination_topic(topic, link.naming)
        other = sources.setdefault(target, topic)
        if other != topic:
            raise ConfigError(f"links.{link_name}.naming", [f"topics {other} and {topic} would both become {target}"])
