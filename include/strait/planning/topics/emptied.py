"""Rejects settings that would deselect every topic of a link. Pure."""

from collections.abc import Iterable

from strait.config.links import Link
from strait.config.selecting import selects
from strait.errors import ConfigError
from strait.planning.topics.selection import Selection
from strait.state.schema import Plan
from strait.text import plural


def check_not_emptied(link_name: str, link: Link, selection: Selection, previous: Iterable[Plan]) -> None:
    """Raise ConfigError if the link replicates topics and its settings select none of these, and no other.

    Topics that were deleted on the source are still selected, so they are no such change.
    """
    beats = {link.heartbeats.topic} if link.heartbeats.enabled else set()
    planned = {topic.source for plan in previous for topic in plan.topics} - beats
    if link.topics.allow_empty or not planned or set(selection.selected) - beats:
        return
    if not any(selects(link.topics, topic) for topic in planned):
        where = link.origins.get("topics", f"links.{link_name}.topics")
        topics = (
            f"all {plural(len(planned), 'topic')}"
            if len(planned) > 1
            else f"topic {next(iter(planned))}, its only one,"
        )
        raise ConfigError(
            where,
            [f"selects no topic, so {topics} would no longer be replicated"],
            hint="correct it; to pause or stop the link use `strait pause` or `strait stop`; if it is meant, set `allow_empty: true`",
        )
