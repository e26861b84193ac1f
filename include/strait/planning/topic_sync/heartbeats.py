"""Heartbeats that a link replicates, their topic names, and the heartbeats that its slots write. Pure. Their purpose is
described in `strait.state.heartbeats`."""

import re
from collections.abc import Collection, Iterable

from strait.config.links import Link
from strait.config.topics import Naming, Rule
from strait.model import ClusterFacts
from strait.planning.topic_sync.actions import CreateHeartbeats
from strait.state.schema import Plan, PlannedHeartbeat


def with_heartbeats(link: Link) -> Link:
    """Return the link with heartbeats topics selected: its own, and those that reached the source from clusters further
    upstream, except those that came from the destination. Topics that the link itself excludes stay excluded."""
    beats = link.heartbeats
    if not beats.enabled:
        return link
    names = link.naming if link.naming.policy == "alias" else Naming(policy="alias")
    topic, separator = re.escape(beats.topic), re.escape(names.separator)
    alias = rf"(?:[A-Za-z0-9_-]+{separator})"
    theirs = rf"{alias}+{topic}"
    from_destination = rf"{alias}*{re.escape(link.destination)}{separator}{alias}*{topic}"
    # Old heartbeats have no reader, hence `latest`; those from upstream were written by a link, hence `forward`.
    rule = Rule(match=rf"{alias}*{topic}", start="latest", naming=names, copies="forward")
    topics = link.topics
    return link.model_copy(
        update={
            "topics": topics.model_copy(
                update={
                    "include": (*topics.include, beats.topic),
                    "regex": (*topics.regex, theirs),
                    "exclude": (*topics.exclude, from_destination),
                    "rules": (rule, *topics.rules),
                }
            )
        }
    )


def planned(link: Link) -> PlannedHeartbeat | None:
    """Return the heartbeat settings for the slots; None if the link writes no heartbeats."""
    if not link.heartbeats.enabled:
        return None
    return PlannedHeartbeat(
        topic=link.heartbeats.topic,
        source=link.destination,
        target=link.naming.alias or link.source,
        interval_seconds=link.heartbeats.interval_seconds,
    )


def written_by_links(link: Link, plans: Iterable[Plan], clusters: Collection[str]) -> set[str]:
    """Return the source topics of these plans that only links write to: the planned heartbeats topic, and destination
    topics of other clusters' heartbeats. Any other topic belongs to other producers, regardless of its name.

    Args:
        clusters: names of the clusters; a replicated heartbeats topic has one or more of them before its name.
    """
    found = list(plans)
    names = [re.escape(name) for name in {*clusters, link.naming.alias or link.source}]
    written = set()
    for topic in {plan.heartbeat.topic for plan in found if plan.heartbeat is not None}:
        copies = re.compile(rf"(?:(?:{'|'.join(names)}){re.escape(link.naming.separator)})*{re.escape(topic)}")
        written |= {planned.source for plan in found for planned in plan.topics if copies.fullmatch(planned.source)}
    return written


def missing(link: Link, source: ClusterFacts) -> CreateHeartbeats | None:
    """Return the heartbeats topic to create if the source has none: compacted, with one partition, as MirrorMaker 2
    creates it."""
    beats = link.heartbeats
    if not beats.enabled or beats.topic in source.topics:
        return None
    return CreateHeartbeats(beats.topic, beats.topic, 1, beats.replication_factor, (("cleanup.policy", "compact"),))
