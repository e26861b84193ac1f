"""A failover of part of a link: the topics and consumer groups that it moves, and the topics moved before. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from strait.config.patterns import FirstMatch
from strait.config.route_names import topic_of
from strait.config.settings import checked_regex
from strait.errors import ConfigError
from strait.state.failover_records import Failover
from strait.state.schema import Pause

_PATTERNS_MOST, _LONGEST = 100, 1_000
"""Bounds of the expressions in a failover's record."""


@dataclass(frozen=True)
class Wave:
    """Regular expressions, each for a whole name.

    Attributes:
        topics: of the source; none: all that the link replicates, except those that waves have moved before.
        groups: of those consumer groups that have offsets in these topics; none: all.
    """

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, topics: Sequence[str], groups: Sequence[str]) -> "Wave":
        """Return the wave for command-line values. Raises ConfigError."""
        problems = []
        if groups and not topics:
            problems.append("--groups needs --topics: a wave moves topics, and these groups with them")
        patterns = (*topics, *groups)
        if len(patterns) > _PATTERNS_MOST:
            problems.append(f"{len(patterns)} expressions; {_PATTERNS_MOST} are allowed")
        for pattern in patterns[:_PATTERNS_MOST]:
            try:
                checked_regex(pattern)
            except ValueError as error:
                problems.append(str(error))
            if len(pattern) > _LONGEST or not pattern.isprintable():
                problems.append(f"{pattern[:40]!r}…: at most {_LONGEST} printable characters are allowed")
        if problems:
            raise ConfigError("command line", problems)
        return cls(tuple(topics), tuple(groups))

    def __bool__(self) -> bool:
        """Return whether it is a part of the link, not all of it."""
        return bool(self.topics)

    def __str__(self) -> str:
        text = f"a wave of {', '.join(self.topics)}" if self else "the whole link"
        return text + (f" with groups {', '.join(self.groups)}" if self.groups else "")

    def takes(self, topic: str) -> bool:
        """Return whether the wave moves a source topic, with all of its routes. Raises ConfigError if an expression takes too long."""
        return not self.topics or self._topics(topic_of(topic)) is not None

    def takes_group(self, name: str) -> bool:
        """Return whether the wave moves a group with offsets in its topics. Raises ConfigError if an expression takes
        too long."""
        return not self.groups or self._groups(name) is not None

    @cached_property
    def _topics(self) -> FirstMatch:
        return FirstMatch("--topics", self.topics)

    @cached_property
    def _groups(self) -> FirstMatch:
        return FirstMatch("--groups", self.groups, of="consumer group", any_text=True)


WHOLE_LINK = Wave()


def wave_of(record: Failover) -> Wave:
    """Return the topics and groups that a failover moves."""
    return Wave(record.wave_topics, record.wave_groups)


def moved_topics(records: Iterable[Failover], pauses: Iterable[Pause]) -> frozenset[str]:
    """Return the topics that waves have moved and no operator has resumed since.

    Args:
        records: all failovers of the link.
        pauses: the current pauses.
    """
    reasons = {item.topic: item.reason for item in pauses if item.partition is None}
    return frozenset(
        item.topic
        for record in records
        if record.outcome == "done" and wave_of(record)
        for item in record.topics
        if record.id in reasons.get(item.topic, "")
    )
