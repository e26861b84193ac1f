"""Risks of topics whose replication starts, found before it does. Pure.

A risk stops nothing. Its consequence would show later as a reason code, or as records that the destination does not
keep.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from strait.model import TopicFacts
from strait.planning.topics.pairs import Pair
from strait.text import duration, plural

PRODUCER_EXPIRATION = ("producer.id.expiration.ms", "transactional.id.expiration.ms", "transactional_id_expiration_ms")
"""Names of the time after which brokers discard a quiet producer's state; the first one that a broker has counts: Kafka's,
that of Kafka before 3.0, and Redpanda's."""
SHORTEST_EXPIRATION_MS = 3 * 3_600_000
"""Several instances send records that are up to one hour old (ADR 12), and rely on brokers to keep the state of their
producer ID for longer than that, however late a process or a clock is."""

_FOR_EVER = 1 << 62
_BEFORE = ("message.timestamp.before.max.ms", "message.timestamp.difference.max.ms")
_AFTER = ("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms")


class Risk(NamedTuple):
    """One warning: a code with a permanent meaning, the source topic (empty: the whole link), and a text."""

    code: str
    topic: str
    detail: str

    def __str__(self) -> str:
        return f"risk      {self.topic or 'the link'}: {self.code}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Known:
    """Permissions and quotas of the link's principals.

    Attributes:
        source_rights, destination_rights: topic -> the operations that are allowed on it; a topic is missing if the
            cluster does not report them.
        source_quotas, destination_quotas: quota entity -> bytes per second.
    """

    source_rights: Mapping[str, Collection[str]] = field(default_factory=dict)
    destination_rights: Mapping[str, Collection[str]] = field(default_factory=dict)
    source_quotas: Mapping[str, float] = field(default_factory=dict)
    destination_quotas: Mapping[str, float] = field(default_factory=dict)


def risks(pairs: Iterable[Pair], growing: Collection[str], sources: Collection[str], known: Known) -> tuple[Risk, ...]:
    """Return all risks, by topic.

    Args:
        pairs: of topics whose replication starts and whose destination topics exist.
        growing: destination topics that get their missing partitions.
        sources: every source topic whose replication starts.
    """
    pairs = tuple(pairs)
    found = [risk for pair in pairs for risk in _of_pair(pair, growing)]
    for topic in sources:
        if topic in known.source_rights and "READ" not in known.source_rights[topic]:
            found.append(Risk("missing_right", topic, "the source does not allow READ on it"))
    for pair in pairs:
        target = pair.destination.topic
        if target in known.destination_rights and "WRITE" not in known.destination_rights[target]:
            found.append(Risk("missing_right", pair.source.topic, f"the destination does not allow WRITE on {target}"))
    for side, quotas in (("source", known.source_quotas), ("destination", known.destination_quotas)):
        found += [
            Risk("quota", "", f"the {side} limits {whose} to {rate:,.0f} bytes/s, broker by broker")
            for whose, rate in quotas.items()
        ]
    return tuple(sorted(found, key=lambda risk: (risk.topic, risk.code)))


def lacking(end: str, request: str, cost: str) -> Risk:
    """Return the risk of a request that a broker at this end does not serve. ``cost``: the consequence."""
    return Risk("missing_request", "", f"the {end} does not serve {request}: {cost}")


def config_refused(topic: str, target: str, error: str) -> Risk:
    """Return the risk that the destination topic never gets a configuration of its source topic."""
    return Risk("config_refused", topic, f"{target} does not get it: {error}")


def forgetful(expirations: Iterable[tuple[str, str]]) -> tuple[Risk, ...]:
    """Return a risk if brokers discard a producer's state too early.

    Args:
        expirations: name and value of the configuration on each of the destination's brokers that shows it.
    """
    told = ((int(value), name) for name, value in expirations if value.isdecimal())
    expiration_ms, name = min(told, default=(_FOR_EVER, ""))
    if expiration_ms >= SHORTEST_EXPIRATION_MS:
        return ()
    detail = (
        f"the destination's brokers discard a producer's state after {duration(expiration_ms / 1000)}, so records can "
        f"be duplicated or lost; set {name} to {duration(SHORTEST_EXPIRATION_MS / 1000)} or more"
    )
    return (Risk("short_producer_expiration", "", detail),)


def kept_less(pairs: Iterable[Pair]) -> tuple[Risk, ...]:
    """Return risks of destination topics that retain less than their sources, whether new or not."""
    return tuple(risk for pair in pairs if pair.usable for risk in _kept_less(pair.source, pair.destination))


def smaller_messages(pairs: Iterable[Pair]) -> tuple[Risk, ...]:
    """Return risks of destination topics that accept smaller batches than their sources, whether new or not."""
    found = []
    for source, target in ((pair.source, pair.destination) for pair in pairs if pair.usable):
        here, there = _number(source, "max.message.bytes"), _number(target, "max.message.bytes")
        if here is not None and there is not None and there < here:
            detail = f"{target.topic} takes batches of {there:,} bytes, the source of {here:,}; larger ones are split or halt"
            found.append(Risk("smaller_messages", source.topic, detail))
    return tuple(found)


def wider(pairs: Iterable[Pair]) -> tuple[Risk, ...]:
    """Return risks of destination topics with more partitions than their sources, whether new or not: clients that choose
    a partition by the key choose another one on the destination."""
    return tuple(
        Risk(
            "more_partitions",
            pair.source.topic,
            f"{pair.destination.topic} has {plural(pair.destination.partitions, 'partition')}, the source {pair.source.partitions}: "
            "after a failover, new records of a key go to another partition than its earlier ones; give the source as many",
        )
        for pair in pairs
        if pair.usable and pair.destination.partitions > pair.source.partitions
    )


def _kept_less(source: TopicFacts, target: TopicFacts) -> Iterator[Risk]:
    policy, target_policy = source.configs.get("cleanup.policy", ""), target.configs.get("cleanup.policy", "")
    if policy and "compact" in target_policy and "compact" not in policy:
        detail = f"{target.topic} has cleanup.policy={target_policy}, the source {policy}"
        how = f"it keeps one record of each key, and rejects records without one; set cleanup.policy={policy} on it"
        yield Risk("copy_compacted", source.topic, f"{detail}: {how}")
    how = "; set it to the source's value, or `configs.sync: true`"
    if "compact" in policy and "compact" in target_policy:
        kept, keeps = _milliseconds(source, "delete.retention.ms"), _milliseconds(target, "delete.retention.ms")
        if keeps is not None and kept is not None and keeps < kept:
            detail = f"{target.topic} keeps deletions for {duration(keeps / 1000)} (delete.retention.ms)"
            yield Risk("shorter_delete_retention", source.topic, f"{detail}, the source keeps them longer{how}")
    if "delete" not in target_policy:
        return
    kept, keeps = _limit(source, "retention.ms"), _limit(target, "retention.ms")
    if keeps is not None and kept is not None and keeps < kept:
        detail = f"{target.topic} deletes records after {duration(keeps / 1000)} (retention.ms)"
        yield Risk("shorter_retention", source.topic, f"{detail}, the source keeps them longer{how}")
    kept, keeps = _limit(source, "retention.bytes"), _limit(target, "retention.bytes")
    if keeps is not None and kept is not None and keeps < kept:
        detail = f"{target.topic} keeps {keeps:,} bytes of a partition (retention.bytes)"
        yield Risk("smaller_retention", source.topic, f"{detail}, the source more{how}")


def _limit(topic: TopicFacts, name: str) -> int | None:
    """Return a limit of the topic's retention; practically unlimited if the topic deletes nothing, None if unknown."""
    deletes = "delete" in topic.configs.get("cleanup.policy", "delete")
    return _milliseconds(topic, name) if deletes else _FOR_EVER


def similar_names(names: Mapping[str, str], begin: Collection[str]) -> tuple[Risk, ...]:
    """Return risks of destination topics whose names collide in brokers' metrics: brokers reject the second such topic.

    ``begin``: source topics whose replication starts.

    Args:
        names: source topic -> name of its destination topic, for every topic of the link.
    """
    alike: dict[str, list[str]] = {}
    for name in sorted(names.values()):
        alike.setdefault(name.replace(".", "_"), []).append(name)
    found = []
    for topic in sorted(begin):
        name = names.get(topic, "")
        others = [other for other in alike.get(name.replace(".", "_"), ()) if other != name]
        if others:
            detail = f"{name} differs from {', '.join(others)} only by `.` and `_`; brokers reject the second one"
            found.append(Risk("similar_names", topic, detail))
    return tuple(found)


def _of_pair(pair: Pair, growing: Collection[str]) -> Iterator[Risk]:
    source, target = pair.source, pair.destination
    if target.partitions < source.partitions and target.topic not in growing:
        detail = f"{target.topic} has {plural(target.partitions, 'partition')}, the source {source.partitions}; the other partitions wait"
        yield Risk("fewer_partitions", source.topic, detail)
    yield from _times(source, target)


def _times(source: TopicFacts, target: TopicFacts) -> Iterator[Risk]:
    kept = _milliseconds(source, "retention.ms")
    before, after = _first(target, _BEFORE), _first(target, _AFTER)
    if before < _FOR_EVER and (kept is None or before < kept):
        detail = f"{target.topic} rejects records older than {duration(before / 1000)}"
        yield Risk("timestamps_before", source.topic, detail)
    if after < _first(source, _AFTER):
        detail = (
            f"{target.topic} rejects records more than {duration(after / 1000)} in the future, the source accepts them"
        )
        yield Risk("timestamps_after", source.topic, detail)


def _first(topic: TopicFacts, names: Iterable[str]) -> int:
    found = (_milliseconds(topic, name) for name in names)
    return next((value for value in found if value is not None), _FOR_EVER)


def _milliseconds(topic: TopicFacts, name: str) -> int | None:
    value = _number(topic, name)
    return _FOR_EVER if value is not None and not 0 <= value < _FOR_EVER else value


def _number(topic: TopicFacts, name: str) -> int | None:
    """Return a configuration as a number; None if the cluster does not report it."""
    text = topic.configs.get(name, "")
    return int(text) if text.removeprefix("-").isdecimal() else None
