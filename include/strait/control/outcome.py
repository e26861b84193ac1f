"""What one cycle of the control plane did."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strait.config.groups import DEFAULT_GROUP
from strait.planning.plan.planner import Proposal
from strait.planning.review import text
from strait.planning.topic_sync.actions import Action, CreateTopic
from strait.state.schema import Plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a cycle did.

    Attributes:
        done: what was done to topics and rights here.
        refused: topics that were not created, or not given what they lack, and why.
        plans: task group -> the plan in force now.
        proposal: what the plans in force were last held against; it has no drafts where nothing was published.
    """

    done: tuple[Action, ...]
    refused: Mapping[str, str]
    plans: Mapping[str, Plan]
    proposal: Proposal

    @property
    def plan(self) -> Plan:
        """That of the task group that every link has."""
        return self.plans[DEFAULT_GROUP]

    @property
    def published(self) -> bool:
        """Whether this cycle published a plan."""
        return bool(self.proposal.drafts)

    @property
    def created(self) -> tuple[str, ...]:
        """Topics created here."""
        return tuple(sorted(action.topic for action in self.done if isinstance(action, CreateTopic)))

    def as_text(self) -> str:
        """For people."""
        done = [action.done_line for action in self.done]
        return "\n".join([*done, *text.refused_lines(self.refused), text.proposal_text(self.proposal)])

    def as_data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "created": list(self.created),
            "done": [action.done_line for action in self.done if not isinstance(action, CreateTopic)],
            "refused": dict(self.refused),
            "published": self.published,
            "plans": {group: plan.model_dump() for group, plan in self.plans.items()},
            "proposal": text.proposal_data(self.proposal),
        }
