"""Stopping a link and starting it again by its plans in force. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from strait.config.groups import DEFAULT_GROUP
from strait.planning.plan.draft import Draft
from strait.reasons import Reason


def with_stopped(drafts: Mapping[str, Draft], stopped: bool) -> dict[str, Draft]:
    """The drafts of a link by task group, stopped or started; nothing else changes.

    A group besides the default one that has no partition to copy stays stopped: its application would do nothing.
    """
    return {group: replace(of, stopped=stopped or not _has_work(group, of)) for group, of in drafts.items()}


def _has_work(group: str, draft: Draft) -> bool:
    assigned = any(slot is not None for topic in draft.topics for slot in topic.slots)
    return group == DEFAULT_GROUP or assigned or any(item.reason == Reason.PAUSED for item in draft.waiting)
