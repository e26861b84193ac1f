"""The positions of a link, and handing over to a tool that runs in Kafka Connect: they are written into its offsets
topic.

Positions come from the offset map. Before the handover, each is compared with the destination's last records, and the
link must have stopped: the other tool would copy again all that the link copies later.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from strait.config.route_names import topic_of
from strait.consumer_groups.offsets import Offsets
from strait.control.copy_ends import ends_of, look_at_copies
from strait.control.move_in import GROWTH_SECONDS
from strait.errors import ClusterError, ConfigError, StraitError
from strait.kafka.admin import Admin, NewTopic
from strait.kafka.clients import Watch, make_producer
from strait.kafka.reading import read_ranges
from strait.kafka.verified import identify
from strait.model import TopicPartition
from strait.net.cluster_facts import await_topic_everywhere
from strait.planning.topics.move_in import Match
from strait.state.link_handle import ConfiguredLink
from strait.state.planned_pairs import runs_about
from strait.state.positions import ConnectOffset, Position, connect_record, read_connect
from strait.state.schema import Plan
from strait.state.translation import Fit
from strait.text import plural

_CONNECT_PARTITIONS = 25  # as Connect creates it
_SECONDS = 30.0


class Owner(NamedTuple):
    """The owner of the positions: a connector, and the source's alias in MirrorMaker 2; None: Mirus, which has none.
    ``guessed``: the operator did not name them."""

    connector: str
    alias: str | None
    guessed: bool = False


class Stored(NamedTuple):
    """An entry of an offsets topic, and its partition and key."""

    entry: ConnectOffset
    partition: int
    key: bytes


def positions(link: ConfiguredLink) -> list[Position]:
    """Return how far each partition of the link's plan is copied, according to the map and the reports.

    Raises:
        ConfigError: the link has no plan.
        ClusterUnavailable, NotAuthorized, StateError
    """
    offsets = Offsets(link)
    plans = offsets.plans()
    counts = {(topic.source, topic.destination): len(topic.slots) for plan in plans.values() for topic in plan.topics}
    if not counts:
        raise ConfigError(f"link {link.name}", ["has no plan yet, so it has no positions"])
    sources = {
        TopicPartition(copy, number): topic for (topic, copy), count in counts.items() for number in range(count)
    }
    ends = link.admin("destination").offsets_each(sources, "end")
    found = offsets.to_source((copy, ends.results[copy]) for copy in sources if copy in ends.results)
    known = [
        Position(
            sources[TopicPartition(item.topic, item.partition)],
            item.partition,
            item.to_offset,
            item.topic,
            item.offset,
            item.fit,
            item.detail,
        )
        for item in found
    ]
    unknown = [
        Position(sources[copy], copy.partition, None, copy.topic, None, str(Fit.UNKNOWN), failure.message)
        for copy, failure in ends.failures.items()
    ]
    lost = {
        TopicPartition(topic.source, number)
        for plan in plans.values()
        for topic in plan.topics
        for of_topic in topic.lost
        for number in of_topic.partitions
    }
    return sorted((_doubted(item, lost) for item in (*known, *unknown)), key=lambda item: item.place)


def _doubted(item: Position, lost: Collection[TopicPartition]) -> Position:
    """Mark a partition as unknown if the map has lost all its entries, since it differs from one that was never
    copied."""
    if item.place not in lost or item.offset is not None:
        return item
    return replace(item, fit=str(Fit.UNKNOWN), detail="the offset map has lost its entries: strait map rebuild")


def read_offsets_topic(properties: Mapping[str, str], cluster: str, topic: str) -> list[Stored]:
    """Return the entries that connectors have stored in an offsets topic of Kafka Connect, the latest under each key.

    Raises:
        ConfigError: there is no such topic.
        ClusterUnavailable, NotAuthorized
    """
    admin = Admin(properties, cluster)
    facts = admin.observe(topic.__eq__).topics
    if topic not in facts:
        raise ConfigError(f"cluster {cluster}", [f"has no topic {topic}"], hint="`--on` names the other cluster")
    places = [TopicPartition(topic, number) for number in range(facts[topic].partitions)]
    ends = admin.offsets(places, "latest")
    latest: dict[tuple[int, bytes], Stored] = {}
    for message in read_ranges(properties, cluster, {place: (0, ends[place]) for place in places}):
        key, entry = message.key() or b"", read_connect(message.key(), message.value())
        latest.pop((message.partition(), key), None)
        if entry is not None:
            latest[message.partition(), key] = Stored(entry, message.partition(), key)
    return list(latest.values())


def hand_over(link: ConfiguredLink, topic: str, owner: Owner, *, on: str, dry_run: bool = False) -> list[Position]:
    """Write the positions of a stopped or paused link into an offsets topic; return them.

    Args:
        on: the cluster of the offsets topic.

    Raises:
        ConfigError: the link copies, transforms records, or a position is not certain; nothing was written.
        ClusterUnavailable, NotAuthorized, StateError
    """
    require_untransformed(link)
    _require_at_rest(link.name, Offsets(link).plans().values())
    source, destination = link.admin("source"), link.admin("destination")
    at = time.monotonic()
    found = positions(link)
    certain = _certain(link.name, found, source, destination)
    time.sleep(max(0.0, at + GROWTH_SECONDS - time.monotonic()))
    ends = ends_of(destination, [TopicPartition(item.destination, item.partition) for item in certain])
    moved = [
        item for item in certain if ends[TopicPartition(item.destination, item.partition)] != item.destination_offset
    ]
    if moved:
        raise ConfigError(
            f"link {link.name}",
            [f"topic {moved[0].destination} still grows, so something writes there"],
            hint=f"run `strait wait {link.name} --for stopped`, and export again",
        )
    there = _stored_there(link.file.clusters[on], on, topic, owner)
    if not dry_run:
        _write(link.file.clusters[on], on, topic, owner, certain, there)
    return certain


def require_untransformed(link: ConfiguredLink) -> None:
    """Raise ConfigError if a destination topic has records that a rule has made: a tool that continues would add the source's
    own to them."""
    with link.state("plan", "map") as state:
        state.catch_up()
        planned = [topic for plan in state.plans.values() for topic in plan.topics]
        made = (
            topic.source
            for topic in planned
            for number in range(len(topic.slots))
            if any(run.transform for run in runs_about(state.runs.get((topic.source, number), ()), topic))
        )
        names = sorted(
            {*map(topic_of, made), *(topic_of(name) for plan in state.plans.values() for name in plan.transformed)}
        )
    if names:
        text = f"a rule's `transform` makes the records of topic {names[0]}; another tool would copy them as they are on the source"
        raise ConfigError(f"link {link.name}", [text], hint="take the topic out of the link first")


def _require_at_rest(link: str, plans: Iterable[Plan]) -> None:
    copying = [
        topic.source
        for plan in plans
        if not plan.stopped
        for topic in plan.topics
        if any(slot is not None for slot in topic.slots)
    ]
    if copying:
        raise ConfigError(
            f"link {link}",
            [f"replicates {plural(len(copying), 'topic')}, such as {copying[0]}"],
            hint=f"run `strait stop {link}`",
        )


def _certain(link: str, found: Sequence[Position], source: Admin, destination: Admin) -> list[Position]:
    """Return certain positions, from the destination's last records if these determine them: after a crash the map
    lacks some of the copied records."""
    begun = [item for item in found if item.offset is not None]
    unknown = [f"{item.place}: {item.detail or item.fit}" for item in found if item.offset is None and not item.certain]
    if unknown:
        hint = "see `strait status`; another tool would begin these partitions elsewhere"
        raise ConfigError(f"link {link}: unknown positions", unknown, hint=hint)
    copies = {item.place: TopicPartition(item.destination, item.partition) for item in begun}
    looked = look_at_copies(source, destination, copies, {item.place: item.offset for item in begun})
    certain, problems = [], []
    for item in begun:
        match, known = looked[item.place].match, item.offset or 0
        if isinstance(match, Match) and (match.offset > known or item.fit != Fit.EXACT):
            known = match.offset
        elif item.fit != Fit.EXACT:
            problems.append(
                f"{item.place}: {item.detail or item.fit}, and the destination's last record is not in the source"
            )
        certain.append(
            Position(
                item.topic,
                item.partition,
                known,
                item.destination,
                item.destination_offset,
                str(Fit.EXACT),
                item.detail,
            )
        )
    if problems:
        raise ConfigError(f"link {link}: uncertain positions", problems, hint="start the link and stop it again")
    return certain


def _stored_there(
    properties: Mapping[str, str], cluster: str, topic: str, owner: Owner
) -> dict[TopicPartition, Stored] | None:
    """Return the owner's entries in an offsets topic; None: there is no such topic."""
    if topic not in Admin(properties, cluster).observe(lambda _: False).topics:
        return None
    stored = read_offsets_topic(properties, cluster, topic)
    found = {one.entry.place: one for one in stored if (one.entry.connector, one.entry.cluster) == owner[:2]}
    if stored and not found and owner.guessed:
        of = stored[0].entry
        options = f"--connector {of.connector}" + (f" --cluster {of.cluster}" if of.cluster else " --mirus")
        problem = f"holds positions of another connector ({options}), none of {owner.connector} with {owner.alias}"
        raise ConfigError(f"topic {topic}", [problem], hint="name the connector that is to continue")
    return found


def _write(
    properties: Mapping[str, str],
    cluster: str,
    topic: str,
    owner: Owner,
    positions: Sequence[Position],
    there: Mapping[TopicPartition, Stored] | None,
) -> None:
    """Write the positions; existing entries keep their own keys and partitions, so that no partition has two
    entries."""
    if there is None:
        Admin(properties, cluster).create([NewTopic(topic, _CONNECT_PARTITIONS, None, {"cleanup.policy": "compact"})])
        await_topic_everywhere(properties, cluster, topic)
    watch = Watch(cluster)
    producer = make_producer(properties, watch, partitioner="murmur2_random")  # Kafka's own, which Connect uses
    identify(producer, properties, watch, f"writing to {topic}")
    refused: list[StraitError] = []

    def done(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(watch.translate(error, f"writing to {topic}"))

    for item in positions:
        known, offset = (there or {}).get(item.place), item.offset or 0
        if not offset and known is None:
            continue  # nothing was copied: the tool starts at the first record, too
        key, value = connect_record(owner.connector, owner.alias, item.place, offset)
        place = {} if known is None else {"partition": known.partition}
        try:
            producer.produce(
                topic,
                key=key if known is None else known.key,
                value=value if offset else None,
                on_delivery=done,
                **place,
            )
        except KafkaException as exception:
            raise watch.translate(exception, f"writing to {topic}") from exception
    if producer.flush(_SECONDS) and not refused:
        raise ClusterError(cluster, f"writing to {topic}: not acknowledged within {_SECONDS:g} s; run it again")
    if refused:
        raise refused[0]
