"""What may go wrong with topics that begin to be copied, found before they are. Pure.

A risk stops nothing: what it warns of would show as a reason code later, or as records that the destination does not
keep.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from strait.model import TopicFacts
from strait.planning.history.overrun import duration
from strait.planning.topics.pairs import Pair

PRODUCER_EXPIRATION = "producer.id.expiration.ms"
SHORTEST_EXPIRATION_MS = 3 * 3_600_000
"""Several instances send records that are up to one hour old (ADR 12), and count on it that brokers know their producer
ID for longer than that, however late a process or a clock is."""

_FOR_EVER = 1 << 62
_BEFORE = ("message.timestamp.before.max.ms", "message.timestamp.difference.max.ms")
_AFTER = ("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms")


class Risk(NamedTuple):
    """One warning: a code that never changes its meaning, the source topic (empty: the whole link), and words."""

    code: str
    topic: str
    detail: str

    def __str__(self) -> str:
        return f"risk      {self.topic or 'the link'}: {self.code}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Known:
    """What was found out about the link's principals.

    Attributes:
        source_rights, destination_rights: topic -> the operations that are allowed on it; a topic is not there where
            the cluster does not tell.
        source_quotas, destination_quotas: whose -> bytes per second.
    """

    source_rights: Mapping[str, Collection[str]] = field(default_factory=dict)
    destination_rights: Mapping[str, Collection[str]] = field(default_factory=dict)
    source_quotas: Mapping[str, float] = field(default_factory=dict)
    destination_quotas: Mapping[str, float] = field(default_factory=dict)


def risks(pairs: Iterable[Pair], growing: Collection[str], sources: Collection[str], known: Known) -> tuple[Risk, ...]:
    """All of them, by topic.

    Args:
        pairs: of topics that begin to be copied and whose destinations are there.
        growing: destination topics that get the partitions that they lack.
        sources: every source topic that begins to be copied.
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
    """A broker at this end does not serve a request. ``cost``: what is impossible then."""
    return Risk("missing_request", "", f"the {end} does not serve {request}: {cost}")


def forgetful(expiration_ms: int) -> tuple[Risk, ...]:
    """Brokers that discard a producer's state too early. ``expiration_ms``: the shortest of the destination's brokers."""
    if expiration_ms >= SHORTEST_EXPIRATION_MS:
        return ()
    detail = (
        f"the destination's brokers discard a producer's state after {duration(expiration_ms / 1000)}, so records can "
        f"be duplicated or lost; set {PRODUCER_EXPIRATION} to {duration(SHORTEST_EXPIRATION_MS / 1000)} or more"
    )
    return (Risk("short_producer_expiration", "", detail),)


def kept_less(pairs: Iterable[Pair]) -> tuple[Risk, ...]:
    """Copies that do not keep all that their sources keep, whether they begin to be copied or have been for long."""
    return tuple(risk for pair in pairs if pair.usable for risk in _kept_less(pair.source, pair.destination))


def _kept_less(source: TopicFacts, target: TopicFacts) -> Iterator[Risk]:
    policy, target_policy = source.configs.get("cleanup.policy", ""), target.configs.get("cleanup.policy", "")
    if policy and "compact" in target_policy and "compact" not in policy:
        detail = f"{target.topic} has cleanup.policy={target_policy}, the source {policy}"
        how = f"it keeps one record of each key, and rejects records without one; set cleanup.policy={policy} on it"
        yield Risk("copy_compacted", source.topic, f"{detail}: {how}")
    if "delete" not in target_policy:
        return
    how = "; set it to the source's value, or `configs.sync: true`"
    kept, keeps = _limit(source, "retention.ms"), _limit(target, "retention.ms")
    if keeps is not None and kept is not None and keeps < kept:
        detail = f"{target.topic} deletes records after {duration(keeps / 1000)} (retention.ms)"
        yield Risk("shorter_retention", source.topic, f"{detail}, the source keeps them longer{how}")
    kept, keeps = _limit(source, "retention.bytes"), _limit(target, "retention.bytes")
    if keeps is not None and kept is not None and keeps < kept:
        detail = f"{target.topic} keeps {keeps:,} bytes of a partition (retention.bytes)"
        yield Risk("smaller_retention", source.topic, f"{detail}, the source more{how}")


def _limit(topic: TopicFacts, name: str) -> int | None:
    """Of its retention: none where it deletes nothing."""
    deletes = "delete" in topic.configs.get("cleanup.policy", "delete")
    return _milliseconds(topic, name) if deletes else _FOR_EVER


def similar_names(names: Mapping[str, str], begin: Collection[str]) -> tuple[Risk, ...]:
    """Names of copies that are one in brokers' metrics, so that brokers do not create one where the other is there.

    Args:
        names: source topic -> name of its copy, of all that the link copies.
        begin: source topics that begin to be copied.
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
        detail = f"{target.topic} has {target.partitions} partitions, the source {source.partitions}; the other partitions wait"
        yield Risk("fewer_partitions", source.topic, detail)
    here, there = _number(source, "max.message.bytes"), _number(target, "max.message.bytes")
    if here is not None and there is not None and there < here:
        detail = (
            f"{target.topic} takes batches of {there:,} bytes, the source of {here:,}; larger ones are split or halt"
        )
        yield Risk("smaller_messages", source.topic, detail)
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
    """None where the cluster does not tell."""
    text = topic.configs.get(name, "")
    return int(text) if text.removeprefix("-").isdecimal() else None
