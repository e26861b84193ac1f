"""Which configurations a copy has, and what has to be altered so that it has them. Pure.

By MirrorMaker 2's rules: what is set on the source topic is set on the copy, what is not is left to the destination,
and some configurations belong to their cluster. In addition a copy gets, wherever the source has it from, what its
records need: a smaller `max.message.bytes` would refuse the source's batches, a shorter
retention would delete old records as soon as they are copied, and compaction all but one of each key.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from strait.config.copy_settings import EXCLUDED_CONFIGS
from strait.config.links import Configs, Link
from strait.config.rules import rule_of
from strait.model import TopicFacts
from strait.planning.topic_sync.actions import AlterTopic, CreateTopic
from strait.planning.topics.pairs import Pair

OBSERVED_CONFIGS = (
    "message.timestamp.type",
    "max.message.bytes",
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "delete.retention.ms",
    "min.compaction.lag.ms",
    "message.timestamp.before.max.ms",  # these three only to warn of
    "message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms",
)
"""The configs that decisions are made from, on both clusters."""

NEEDED = ("max.message.bytes", "cleanup.policy", "retention.ms", "retention.bytes")
"""What decides which of its records a copy takes and keeps."""
_NEEDED_COMPACTED = ("delete.retention.ms", "min.compaction.lag.ms")
"""The same, where it is compacted."""

_IN_WORDS = {"remote.storage.enable": "configured with remote log storage"}
"""Configurations that brokers reject without their name."""

_TIMESTAMP_TYPE = "message.timestamp.type"


def observed(link: Link) -> tuple[str, ...] | None:
    """The configs to ask the source for; None: all of them."""
    return None if link.configs.defaults_from == "source" else OBSERVED_CONFIGS


def created_with(link: Link, source: TopicFacts) -> tuple[tuple[str, str], ...]:
    """What a copy is created with. Whatever the brokers' defaults are, now or later, a copy keeps the timestamps of its
    records, and keeps records for as long as the source does."""
    return tuple(sorted((wanted(link, source, {}) | {_TIMESTAMP_TYPE: "CreateTime"}).items()))


def without_unaccepted(link: Link, create: CreateTopic, refusal: str) -> CreateTopic | None:
    """The topic without the configuration that the destination rejects; None if that is none that can be left out.

    Args:
        refusal: the broker's words, which name the configuration.
    """
    needed = {*NEEDED, *_NEEDED_COMPACTED, _TIMESTAMP_TYPE, *link.configs.overrides}
    needed |= rule_of(link.topics, create.source).overrides.keys()
    named = [item for item in create.configs if item[0] not in needed and _names(refusal, item[0])]
    if not named:
        return None
    (first, *_) = sorted(named, key=lambda item: -len(item[0]))
    configs = tuple(item for item in create.configs if item != first)
    return replace(create, configs=configs, left_out=(*create.left_out, first))


def _names(refusal: str, name: str) -> bool:
    whole = rf"(?<![\w.]){re.escape(name)}(?![\w]|\.\w)"
    return re.search(whole, refusal) is not None or _IN_WORDS.get(name, "\n") in refusal


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


def wanted(link: Link, source: TopicFacts, defaults: Mapping[str, str]) -> dict[str, str]:
    """Name -> value of what should be set on the copy. ``defaults``: what it has without that, as far as it is known."""
    all_taken = _taken(link.configs, source, defaults)
    taken = {name: value for name, value in all_taken.items() if not _excluded(link.configs, name)}
    return taken | dict(link.configs.overrides) | dict(rule_of(link.topics, source.topic).overrides)


def _altered(link: Link, pair: Pair) -> AlterTopic | None:
    now = pair.destination.topic_configs
    by_default = {name: value for name, value in pair.destination.configs.items() if name not in now}
    should = wanted(link, pair.source, by_default)
    put = tuple(sorted((name, value) for name, value in should.items() if now.get(name) != value))
    left = (name for name in now if name not in should and not _excluded(link.configs, name))
    reset = tuple(sorted(name for name in left if name != _TIMESTAMP_TYPE))
    if not put and not reset:
        return None
    touched = {name for name, _ in put} | set(reset)
    before = tuple(sorted((name, value) for name, value in now.items() if name in touched))
    return AlterTopic(pair.destination.topic, pair.source.topic, put, reset, before)


def _taken(configs: Configs, source: TopicFacts, defaults: Mapping[str, str]) -> Mapping[str, str]:
    if configs.defaults_from == "source":
        return {**source.configs, **source.topic_configs}
    compacted = "compact" in source.configs.get("cleanup.policy", "")
    names = (*NEEDED, *(_NEEDED_COMPACTED if compacted else ()))
    needed = {
        name: source.configs.get(name, "") for name in names if source.configs.get(name, "") != defaults.get(name, "")
    }
    return {
        **{name: value for name, value in needed.items() if value},
        **source.cluster_configs,
        **source.topic_configs,
    }


def _excluded(configs: Configs, name: str) -> bool:
    return name == _TIMESTAMP_TYPE or any(
        re.fullmatch(pattern, name) for pattern in (*EXCLUDED_CONFIGS, *configs.exclude)
    )
