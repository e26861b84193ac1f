"""The outcome of one cycle of the control plane."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strait.config.groups import DEFAULT_GROUP
from strait.planning.plan.planner import Proposal
from strait.planning.review import text
from strait.planning.review.approval import pending_lines
from strait.planning.review.effects import Effects
from strait.planning.topic_sync.actions import Action, CreateTopic
from strait.state.schema import Plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a cycle.

    Attributes:
        done: changes made to topics and ACLs here.
        ``refused``: topics that were not created or not changed as needed, and why.
        plans: task group -> its current plan.
        proposal: the one last compared with the current plans; it has no drafts if nothing was published.
        pending: changes that wait for an operator's approval; everything else was carried out.
    """

    done: tuple[Action, ...]
    refused: Mapping[str, str]
    plans: Mapping[str, Plan]
    proposal: Proposal
    pending: Effects = ()

    @property
    def plan(self) -> Plan:
        """The plan of the task group that every link has."""
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
        """Return the outcome, human-readable."""
        done = [action.done_line for action in self.done]
        lines = [*done, *text.refused_lines(self.refused), text.proposal_text(self.proposal)]
        return "\n".join([*lines, *pending_lines(self.pending)])

    def as_data(self) -> dict[str, Any]:
        """Return the outcome, machine-readable."""
        return {
            "created": list(self.created),
            "done": [action.done_line for action in self.done if not isinstance(action, CreateTopic)],
            "refused": dict(self.refused),
            "published": self.published,
            "plans": {group: plan.model_dump() for group, plan in self.plans.items()},
            "proposal": text.proposal_data(self.proposal),
            "pending": [list(effect) for effect in self.pending],
        }
