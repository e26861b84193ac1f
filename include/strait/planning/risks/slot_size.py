"""Checks whether the slots of a link have more partitions than they can handle. Pure."""

import math
from collections.abc import Mapping

from strait.config.groups import Group
from strait.planning.history.load import MOST_PARTITIONS_PER_SLOT
from strait.planning.risks.risks import Risk
from strait.text import plural


def crowded(groups: Mapping[str, Group], partitions: Mapping[str, int]) -> tuple[Risk, ...]:
    """Return a risk for each task group with more than `MOST_PARTITIONS_PER_SLOT` partitions per slot, with its remedy.

    Args:
        partitions: task group -> number of partitions that it replicates.
    """
    risks = []
    for group, count in sorted(partitions.items()):
        settings = groups.get(group)
        needed = math.ceil(count / MOST_PARTITIONS_PER_SLOT)
        if settings is not None and needed > settings.most_slots:
            detail = (
                f"task group {group} has {plural(count, 'partition')} in at most {plural(settings.most_slots, 'slot')}, and a slot takes"
                f" {MOST_PARTITIONS_PER_SLOT:,}; set groups.{group}.max_slots to {needed} or more"
            )
            risks.append(Risk("crowded_slots", "", detail))
    return tuple(risks)
