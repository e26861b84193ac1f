"""Whether the slots of a link have more partitions than they can take. Pure."""

import math
from collections import Counter
from collections.abc import Mapping

from strait.config.links import Link
from strait.planning.assignment.slots import group_of
from strait.planning.history.load import MOST_PARTITIONS_PER_SLOT
from strait.planning.plan.draft import Draft
from strait.planning.risks.risks import Risk
from strait.state.schema import Plan


def crowded(link: Link, plans: Mapping[str, Draft | Plan], create: Mapping[str, int]) -> tuple[Risk, ...]:
    """Task groups whose slots get more partitions than `MOST_PARTITIONS_PER_SLOT`, with what to set.

    Args:
        plans: task group -> its plan as it will be.
        create: source topic -> partitions, of those whose destinations are created first and that are planned then.
    """
    found = Counter(
        {group: sum(slot is not None for topic in plan.topics for slot in topic.slots) for group, plan in plans.items()}
    )
    for topic, partitions in create.items():
        found[group_of(link, topic)] += partitions
    risks = []
    for group, partitions in sorted(found.items()):
        settings = link.groups.get(group)
        needed = math.ceil(partitions / MOST_PARTITIONS_PER_SLOT)
        if settings is not None and needed > settings.most_slots:
            detail = (
                f"task group {group} has {partitions:,} partitions in at most {settings.most_slots} slots, and a slot"
                f" takes {MOST_PARTITIONS_PER_SLOT:,}; set groups.{group}.max_slots to {needed} or more"
            )
            risks.append(Risk("crowded_slots", "", detail))
    return tuple(risks)
