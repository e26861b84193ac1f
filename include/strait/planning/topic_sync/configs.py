"""Which configurations a copy has, and what has to be altered so that it has them. Pure.

By MirrorMaker 2's rules: what is set on the source topic is set on the copy, what is not is left to the destination,
and some configurations belong to their cluster. In addition a copy gets, wherever the source has it from, what its
records need: a smaller `max.message.bytes` would refuse the source's batches, and a shorter retention would delete old
records as soon as they are copied.
"""

import re
from collections.abc import Iterable, Mapping

from strait.config.links import Configs, Link
from strait.config.rules import rule_of
from strait.model import TopicFacts
from strait.planning.topic_sync.actions import AlterTopic
from strait.planning.topics.pairs import Pair

OBSERVED_CONFIGS = (
    "message.timestamp.type",
    "max.message.bytes",
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "message.timestamp.before.max.ms",  # these three only to warn of
    "message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms",
)
"""The configs that decisions are made from, on both clusters."""

_NEEDED = {
    "max.message.bytes": "1048588",
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
}
"""What records need, with Kafka's own defaults: these are not written down on the copy."""

_TIMESTAMP_TYPE = "message.timestamp.type"


def observed(link: Link) -> tuple[str, ...] | None:
    """The configs to ask the source for; None: all of them."""
    return None if link.configs.defaults_from == "source" else OBSERVED_CONFIGS


def created_with(link: Link, source: TopicFacts) -> tuple[tuple[str, str], ...]:
    """What a copy is created with. Whatever the broker's default, a copy keeps the timestamps of its records."""
    return tuple(sorted((wanted(link, source) | {_TIMESTAMP_TYPE: "CreateTime"}).items()))


def altered(link: Link, pairs: Iterable[Pair]) -> tuple[AlterTopic, ...]:
    """What to alter, in order of the pairs: only where the link keeps configurations, and only what differs."""
    found = (_altered(link, pair) for pair in pairs if pair.usable and syncs(link, pair.source.topic))
    return tuple(item for item in found if item is not None)


def syncs_any(link: Link) -> bool:
    """Whether the configurations of any copy are kept."""
    return link.configs.sync or any(rule.sync_configs for rule in link.topics.rules)


def syncs(link: Link, topic: str) -> bool:
    """Whether the configurations of a source topic's copy are kept as its source has them."""
    ruled = rule_of(link.topics, topic).sync_configs
    return link.configs.sync if ruled is None else ruled


def wanted(link: Link, source: TopicFacts) -> dict[str, str]:
    """Name -> value of what should be set on the copy."""
    taken = {name: value for name, value in _taken(link.configs, source).items() if not _excluded(link.configs, name)}
    return taken | dict(link.configs.overrides) | dict(rule_of(link.topics, source.topic).overrides)


def _altered(link: Link, pair: Pair) -> AlterTopic | None:
    should, now = wanted(link, pair.source), pair.destination.topic_configs
    put = tuple(sorted((name, value) for name, value in should.items() if now.get(name) != value))
    left = (name for name in now if name not in should and not _excluded(link.configs, name))
    reset = tuple(sorted(name for name in left if name != _TIMESTAMP_TYPE))
    if not put and not reset:
        return None
    touched = {name for name, _ in put} | set(reset)
    before = tuple(sorted((name, value) for name, value in now.items() if name in touched))
    return AlterTopic(pair.destination.topic, pair.source.topic, put, reset, before)


def _taken(configs: Configs, source: TopicFacts) -> Mapping[str, str]:
    if configs.defaults_from == "source":
        return {**source.configs, **source.topic_configs}
    needed = {
        name: source.configs[name] for name in _NEEDED if source.configs.get(name, _NEEDED[name]) != _NEEDED[name]
    }
    return {**needed, **source.cluster_configs, **source.topic_configs}


def _excluded(configs: Configs, name: str) -> bool:
    return name == _TIMESTAMP_TYPE or any(re.fullmatch(pattern, name) for pattern in configs.exclude)
