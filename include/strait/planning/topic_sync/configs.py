"""Configurations that a destination topic should have, and the changes that are needed. Pure.

As in MirrorMaker 2, a configuration set on the source topic is set on the destination topic, one that is not set is
left to the destination, and some configurations belong to their cluster. In addition, a destination topic gets the
values that its records depend on, regardless of the level at which the source sets them: a smaller `max.message.bytes`
would reject the source's batches, a shorter retention would delete old records as soon as they are replicated, and
compaction would delete all but one record of each key.
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
    "message.timestamp.before.max.ms",  # this and the next two are used for warnings only
    "message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms",
)
"""Configurations that planning depends on, on both clusters."""

NEEDED = ("max.message.bytes", "cleanup.policy", "retention.ms", "retention.bytes")
"""Configurations that determine which of its records a destination topic accepts and retains."""
_NEEDED_COMPACTED = ("delete.retention.ms", "min.compaction.lag.ms")
"""Additional ones for a compacted topic."""

_IN_WORDS = {"remote.storage.enable": "configured with remote log storage"}
"""Configurations that brokers reject without naming them -> words of the error message."""

_TIMESTAMP_TYPE = "message.timestamp.type"


def observed(link: Link) -> tuple[str, ...] | None:
    """Return the configurations to request from the source; None: all of them."""
    return None if link.configs.defaults_from == "source" else OBSERVED_CONFIGS


def created_with(link: Link, source: TopicFacts) -> tuple[tuple[str, str], ...]:
    """Return the configurations with which a destination topic is created. Regardless of the brokers' defaults, now or
    later, the topic keeps the timestamps of its records, and keeps records for as long as the source does."""
    return tuple(sorted((wanted(link, source, {}) | {_TIMESTAMP_TYPE: "CreateTime"}).items()))


def without_unaccepted(link: Link, create: CreateTopic, refusal: str) -> CreateTopic | None:
    """Return the topic without the configuration that the destination rejects; None if it is not one that may be
    omitted.

    Args:
        refusal: the broker's error message, which names the configuration.
    """
    first = _unaccepted(link, create.source, create.configs, refusal)
    if first is None:
        return None
    configs = tuple(item for item in create.configs if item != first)
    return replace(create, configs=configs, left_out=(*create.left_out, first))


def with_unaccepted_left(link: Link, alter: AlterTopic, refusal: str) -> AlterTopic | None:
    """Return the alteration without the configuration that the destination rejects; None as in `without_unaccepted`."""
    first = _unaccepted(link, alter.source, alter.put, refusal)
    return None if first is None else replace(alter, put=tuple(item for item in alter.put if item != first))


def _unaccepted(link: Link, source: str, configs: Iterable[tuple[str, str]], refusal: str) -> tuple[str, str] | None:
    needed = {*NEEDED, *_NEEDED_COMPACTED, _TIMESTAMP_TYPE, *link.configs.overrides}
    needed |= rule_of(link.topics, source).overrides.keys()
    named = [item for item in configs if item[0] not in needed and _names(refusal, item[0])]
    return max(named, key=lambda item: len(item[0]), default=None)


def _names(refusal: str, name: str) -> bool:
    whole = rf"(?<![\w.]){re.escape(name)}(?![\w]|\.\w)"
    return re.search(whole, refusal) is not None or _IN_WORDS.get(name, "\n") in refusal


def altered(link: Link, pairs: Iterable[Pair]) -> tuple[AlterTopic, ...]:
    """Return the topics to alter, in order of the pairs: only if their configurations are synchronized, and only values
    that differ."""
    found = (_altered(link, pair) for pair in pairs if pair.usable and syncs(link, pair.source.topic))
    return tuple(item for item in found if item is not None)


def syncs_any(link: Link) -> bool:
    """Return whether the configurations of any destination topic are synchronized."""
    return link.configs.sync or any(rule.sync_configs for rule in link.topics.rules)


def syncs(link: Link, topic: str) -> bool:
    """Return whether the configurations of a source topic are synchronized to its destination topic."""
    ruled = rule_of(link.topics, topic).sync_configs
    return link.configs.sync if ruled is None else ruled


def wanted(link: Link, source: TopicFacts, defaults: Mapping[str, str]) -> dict[str, str]:
    """Return name -> value of the configurations to set on the destination topic. ``defaults``: the values that apply
    if they are not set, as far as known."""
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
