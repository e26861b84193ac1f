"""Selection of topics by their names alone, and the part of a link's settings that it depends on. Pure."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from strait.config import naming
from strait.config.consumer_groups import ConsumerGroups
from strait.config.links import Link
from strait.config.patterns import FirstMatch, once_for_each
from strait.config.route_names import is_route, topic_of
from strait.config.routes import route_of
from strait.config.topic_names import is_never_copied
from strait.config.topics import Naming, Rule, Topics
from strait.errors import ConfigError
from strait.reasons import Reason


class Why(NamedTuple):
    """Why a topic is not selected."""

    reason: Reason
    detail: str


class _Lists:
    """The lists of a `topics` block, prepared for matching."""

    def __init__(self, topics: Topics) -> None:
        self.include = frozenset(topics.include)
        self.regex = FirstMatch("topics.regex.{}", topics.regex)
        self.exclude = FirstMatch("topics.exclude.{}", topics.exclude)


_lists = once_for_each(_Lists)


def why_not(topics: Topics, name: str, *, internal: bool = False) -> Why | None:
    """Return why a topic or a route is not selected; None if it is. ``internal``: Kafka marks the topic as internal.

    Raises:
        ConfigError: a regular expression takes too long.
    """
    lists = _lists(topics)
    if is_route(name):
        route, name = name, topic_of(name)
        if route_of(topics, route) is None:
            return Why(Reason.NOT_SELECTED, f"the rule of topic {name} has no such route")
    if name not in lists.include and lists.regex(name) is None:
        return Why(Reason.NOT_SELECTED, "neither `topics.include` nor `topics.regex` matches")
    if internal or is_never_copied(name):
        return Why(Reason.EXCLUDED, "internal topic; never replicated")
    if naming.is_internal(name) and not topics.internal:
        return Why(Reason.EXCLUDED, "internal topic, and `topics.internal` is false")
    excluding = lists.exclude(name)
    if excluding is not None:
        return Why(Reason.EXCLUDED, f"`topics.exclude` has {topics.exclude[excluding]!r}")
    return None


def selects(topics: Topics, name: str) -> bool:
    """Return whether a topic is selected, by its name alone."""
    return why_not(topics, name) is None


def is_own(link: Link, names: naming.Names, source: str, destination: str) -> bool:
    """Return whether a link selects a topic, and copies it under this name. ``names``: of the link."""
    try:
        return selects(link.topics, source) and names.destination(source) == destination
    except ConfigError:  # an expression takes too long on a name that only an attacker would choose
        return False


class Selected(BaseModel):
    """The settings of a link that determine where an application may read and write, and how it must transform records:
    part of its spec.

    A plan comes from a topic of the destination, and the spec from the control plane itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    topics: Topics
    naming: Naming
    heartbeats: str
    consumer_groups: ConsumerGroups

    @classmethod
    def of(cls, link: Link) -> "Selected":
        """Return these settings of a link. Other settings of its topics do not matter, so they are left at their
        defaults: their change must not restart the application."""
        topics = link.topics
        ruled = any(rule.naming is not None or rule.transform is not None for rule in topics.rules)
        return cls(
            topics=Topics(
                include=topics.include,
                regex=topics.regex,
                exclude=topics.exclude,
                internal=topics.internal,
                rules=tuple(
                    Rule(match=rule.match, naming=rule.naming, transform=rule.transform) for rule in topics.rules
                )
                if ruled
                else (),
            ),
            naming=link.naming,
            heartbeats=link.heartbeats.topic if link.heartbeats.enabled else "",
            consumer_groups=link.consumer_groups.model_copy(update={"interval_seconds": 1}),
        )

    def link(self, source: str, destination: str) -> Link:
        """Return a link between these clusters with these settings, and defaults for all others."""
        return Link(source=source, destination=destination, topics=self.topics, naming=self.naming)
