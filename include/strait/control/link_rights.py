"""The permissions of a link's principals on the topics that it selects, as both clusters show them."""

from collections.abc import Container, Iterator, Mapping, Set
from typing import NamedTuple

from strait.config.route_names import topic_of
from strait.config.selecting import selects
from strait.planning.topics.routes import with_routes
from strait.planning.topics.selection import select
from strait.state.link_handle import ConfiguredLink

SOURCE = ("READ", "DESCRIBE_CONFIGS")
DESTINATION = ("READ", "WRITE", "DESCRIBE_CONFIGS")
"""Operations on topics that replication needs. Others, such as CREATE, depend on the settings."""


class LinkRights(NamedTuple):
    """The result for one link.

    Attributes:
        topics: number of selected source topics.
        lacking: missing permissions, as `READ on orders (source)`.
    """

    topics: int
    lacking: tuple[str, ...]


def link_rights(link: ConfiguredLink) -> LinkRights:
    """Ask both clusters. A topic without an answer, and a destination topic that is still to be created, lack nothing.

    Raises:
        ConfigError: the selection is invalid.
        ClusterUnavailable, NotAuthorized: a cluster does not answer.
    """
    source, destination = link.admin("source"), link.admin("destination")
    shared = source.cluster_id if link.source.properties == link.destination.properties else None
    seen = with_routes(source.observe(lambda _: False), link.settings.topics, ()).topics
    names = select(link.name, link.settings, seen, shared_cluster_id=shared).names
    there = destination.partition_counts().keys() & set(names.values())
    lacking = [
        *(f"{topic} (source), which does not exist or needs DESCRIBE" for topic in _unseen(link, seen)),
        *_lacking("source", SOURCE, source.rights({*map(topic_of, names)})),
        *_lacking("destination", DESTINATION, destination.rights(there)),
    ]
    return LinkRights(len({*map(topic_of, names)}), tuple(lacking))


def _unseen(link: ConfiguredLink, seen: Container[str]) -> Iterator[str]:
    topics = link.settings.topics
    return (topic for topic in topics.include if topic not in seen and selects(topics, topic))


def _lacking(end: str, needed: tuple[str, ...], rights: Mapping[str, Set[str]]) -> Iterator[str]:
    for topic, allowed in sorted(rights.items()):
        if allowed and (missing := [operation for operation in needed if operation not in allowed]):
            yield f"{', '.join(missing)} on {topic} ({end})"
