"""Why a topic of the source is not copied, for topics that the plan does not have. Pure."""

from collections.abc import Collection

from strait.config.validation import did_you_mean
from strait.planning.status.rows import PartitionStatus
from strait.planning.topics.selection import Selection, Skip
from strait.reasons import Reason

LEFT_OUT = "left_out"
"""The state of a topic that is not to be copied."""


def nearly_selected(selection: Selection) -> tuple[PartitionStatus, ...]:
    """Topics that the link names or matches and leaves out all the same. Those that nothing selects are too many to
    tell."""
    return tuple(_row(skip) for skip in selection.skipped if skip.reason is not Reason.NOT_SELECTED)


def explained(topic: str, selection: Selection, wanted: Collection[str]) -> PartitionStatus | None:
    """Why this topic of the source is not in the plan; None where the source has no such topic.

    Args:
        wanted: the names that the link asks for, one of which may be a misspelt form of this one.
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
