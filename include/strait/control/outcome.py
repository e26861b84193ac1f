"""What one cycle of the control plane did."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strait.config.groups import DEFAULT_GROUP
from strait.planning.plan.planner import Proposal
from strait.planning.review import text
from strait.state.schema import Plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a cycle did.

    Attributes:
        created: destination topics created here.
        refused: destination topics that were not created, or not given what they lack, and why.
        plans: task group -> the plan in force now.
        proposal: what the plans in force were last held against; it has no drafts where nothing was published.
        done: what else was done to copies, line by line.
    """

    created: tuple[str, ...]
    refused: Mapping[str, str]
    plans: Mapping[str, Plan]
    proposal: Proposal
    done: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """That of the task group that every link has."""
        return self.plans[DEFAULT_GROUP]

    @property
    def published(self) -> bool:
        """Whether this cycle published a plan."""
        return bool(self.proposal.drafts)

    def as_text(self) -> str:
        """For people."""
        created = [f"created   {topic}" for topic in self.created]
        return "\n".join([*created, *self.done, *text.refused_lines(self.refused), text.proposal_text(self.proposal)])

    def as_data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "created": list(self.created),
            "done": list(self.done),
            "refused": dict(self.refused),
            "published": self.published,
            "plans": {group: plan.model_dump() for group, plan in self.plans.items()},
            "proposal": text.proposal_data(self.proposal),
        }
