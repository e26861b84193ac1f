"""Which source topics a link copies, and why the others are left out. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strait import naming
from strait.config import Naming, Topics
from strait.model import TopicFacts
from strait.reasons import Reason


@dataclass(frozen=True, slots=True)
class Skip:
    """A topic of the source that is not copied, and why."""

    topic: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Selection:
    """All in order of names.

    Attributes:
        selected: topics to copy; all of them exist on the source.
        missing: selected topics that the source does not have.
        skipped: every other topic of the source.
    """

    selected: tuple[str, ...]
    missing: tuple[str, ...]
    skipped: tuple[Skip, ...]


def select(
    topics: Topics,
    source: Mapping[str, TopicFacts],
    *,
    copied_before: Iterable[str] = (),
    copies: Naming | None = None,
) -> Selection:
    """Apply the `topics` block: named or matched by a whole regular expression; `exclude` wins; internal topics never.

    Args:
        source: every topic of the source.
        copied_before: topics that the link has copied; one that is gone from the source is missing, not forgotten.
        copies: the link's naming, where source and destination are one cluster; its copies are then left out, or they
            would be copied again and again.
    """
    selected, skipped = [], []
    for name in sorted(source):
        skip = _skip(topics, name, source[name].internal)
        if skip is None and copies is not None and naming.source_topic(name, copies) in source:
            original = naming.source_topic(name, copies)
            skip = Skip(name, Reason.EXCLUDED, f"it is this link's own copy of {original}")
        if skip is None:
            selected.append(name)
        else:
            skipped.append(skip)
    expected = {*topics.include, *copied_before}
    missing = sorted(name for name in expected if name not in source and selects(topics, name))
    return Selection(tuple(selected), tuple(missing), tuple(skipped))


def selects(topics: Topics, name: str) -> bool:
    """Whether a topic is selected, by its name alone."""
    return _skip(topics, name, internal=False) is None


def _skip(topics: Topics, name: str, internal: bool) -> Skip | None:
    matching = next((regex for regex in topics.regex if re.fullmatch(regex, name)), None)
    if name not in topics.include and matching is None:
        return Skip(name, Reason.NOT_SELECTED, "no `topics.include` or `topics.regex` selects it")
    if internal or naming.is_internal(name):
        return Skip(name, Reason.EXCLUDED, "it is an internal topic")
    excluding = next((regex for regex in topics.exclude if re.fullmatch(regex, name)), None)
    if excluding is not None:
        return Skip(name, Reason.EXCLUDED, f"`topics.exclude` has {excluding!r}")
    return None
