"""Explains why a source topic that the plan does not contain is not replicated. Pure."""

from collections.abc import Collection

from strait.config.validation import did_you_mean
from strait.planning.status.rows import PartitionStatus
from strait.planning.topics.selection import Selection, Skip
from strait.reasons import Reason

LEFT_OUT = "left_out"
"""State of a topic that is not to be replicated."""


def nearly_selected(selection: Selection) -> tuple[PartitionStatus, ...]:
    """Return the topics that the link names or matches but skips.

    Topics that no pattern selects are not included: there are too many of them.
    """
    return tuple(_row(skip) for skip in selection.skipped if skip.reason is not Reason.NOT_SELECTED)


def explained(topic: str, selection: Selection, wanted: Collection[str]) -> PartitionStatus | None:
    """Return why this source topic is not in the plan; None if the source has no such topic.

    Args:
        wanted: the topic names known to the link, one of which may be a misspelling of this one.
    """
    if topic in selection.selected:
        detail = "selected since the last plan"
        return PartitionStatus(topic, None, "", None, "waiting", str(Reason.PLAN_MISSING), detail)
    skip = next((skip for skip in selection.skipped if skip.topic == topic), None)
    if skip is None:
        return None
    near = did_you_mean(topic, wanted).replace("did you mean", "is it meant by")
    return _row(skip, near if skip.reason is Reason.NOT_SELECTED else "")


def _row(skip: Skip, more: str = "") -> PartitionStatus:
    return PartitionStatus(skip.topic, None, "", None, LEFT_OUT, str(skip.reason), skip.detail + more)
