"""Which heartbeats a link copies, under which names, and what its slots write. Pure. `strait.state.heartbeats` says
what for."""

import re
from collections.abc import Collection, Iterable

from strait.config.links import Link
from strait.config.topics import Naming, Rule
from strait.model import ClusterFacts
from strait.planning.topic_sync.actions import CreateHeartbeats
from strait.state.schema import Plan, PlannedHeartbeat


def with_heartbeats(link: Link) -> Link:
    """The link as it is copied: with its heartbeats topic selected, and those that came to the source from further
    away, but for those that came from the destination. What the link itself excludes stays excluded."""
    beats = link.heartbeats
    if not beats.enabled:
        return link
    names = link.naming if link.naming.policy == "alias" else Naming(policy="alias")
    topic, separator = re.escape(beats.topic), re.escape(names.separator)
    alias = rf"(?:[A-Za-z0-9_-]+{separator})"
    theirs = rf"{alias}+{topic}"
    from_destination = rf"{alias}*{re.escape(link.destination)}{separator}{alias}*{topic}"
    # Nobody reads old heartbeats; and those from further away were written by a link.
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
    """What the slots need to know; None where no heartbeats are to be written."""
    if not link.heartbeats.enabled:
        return None
    return PlannedHeartbeat(
        topic=link.heartbeats.topic,
        source=link.destination,
        target=link.naming.alias or link.source,
        interval_seconds=link.heartbeats.interval_seconds,
    )


def written_by_links(link: Link, plans: Iterable[Plan], clusters: Collection[str]) -> set[str]:
    """The source topics of these plans that links alone write to: the one that the plan has heartbeats written to, and
    copies of other clusters' heartbeats. Any other topic is somebody's own, however it is called.

    Args:
        clusters: their names; a copy of heartbeats has one or more of them before its name.
    """
    found = list(plans)
    names = [re.escape(name) for name in {*clusters, link.naming.alias or link.source}]
    written = set()
    for topic in {plan.heartbeat.topic for plan in found if plan.heartbeat is not None}:
        copies = re.compile(rf"(?:(?:{'|'.join(names)}){re.escape(link.naming.separator)})*{re.escape(topic)}")
        written |= {planned.source for plan in found for planned in plan.topics if copies.fullmatch(planned.source)}
    return written


def missing(link: Link, source: ClusterFacts) -> CreateHeartbeats | None:
    """The heartbeats topic where the source has none: compacted, with one partition, as MirrorMaker 2 creates it."""
    beats = link.heartbeats
    if not beats.enabled or beats.topic in source.topics:
        return None
    return CreateHeartbeats(beats.topic, beats.topic, 1, beats.replication_factor, (("cleanup.policy", "compact"),))
