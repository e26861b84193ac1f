"""Whether the slots of a link have more partitions than they can take. Pure."""

import math
from collections.abc import Mapping

from strait.config.groups import Group
from strait.planning.history.load import MOST_PARTITIONS_PER_SLOT
from strait.planning.risks.risks import Risk


def crowded(groups: Mapping[str, Group], partitions: Mapping[str, int]) -> tuple[Risk, ...]:
    """Task groups whose slots get more partitions than `MOST_PARTITIONS_PER_SLOT`, with what to set.

    Args:
        partitions: task group -> how many it replicates.
    """
    risks = []
    for group, count in sorted(partitions.items()):
        settings = groups.get(group)
        needed = math.ceil(count / MOST_PARTITIONS_PER_SLOT)
        if settings is not None and needed > settings.most_slots:
            detail = (
                f"task group {group} has {count:,} partitions in at most {settings.most_slots} slots, and a slot takes"
                f" {MOST_PARTITIONS_PER_SLOT:,}; set groups.{group}.max_slots to {needed} or more"
            )
            risks.append(Risk("crowded_slots", "", detail))
    return tuple(risks)
