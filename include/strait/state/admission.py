"""Limits of a plan that is not proven to come from a control plane: the selection in the application's spec.

A plan is a record of the destination, so any client that may write to the plan topic can publish one. Without these
limits it could have any topic copied that the link's principal may read, or records that a rule masks as they are.
"""

from collections.abc import Mapping

from strait.config import naming
from strait.config.app_spec import AppSpec
from strait.config.selecting import selects
from strait.errors import ConfigError
from strait.state.schema import Plan, PlannedGroupSync, PlannedTopic
from strait.state.signing import Proof
from strait.state.transform import TopicTransform


class Admission:
    """The limits of one application. A spec without a selection admits every plan."""

    def __init__(self, spec: AppSpec) -> None:
        self._selected = spec.selected
        self._link = None if spec.selected is None else spec.selected.link(spec.source_name, spec.destination_name)
        self._known: dict[tuple[str, str, str], bool] = {}

    def refused_topics(self, plan: Plan, proof: Proof | None) -> frozenset[str]:
        """Return the source topics of a plan that the application must not copy."""
        if self._link is None or proof is Proof.PROVEN:
            return frozenset()
        self._known = {_what(topic): self._admits(topic) for topic in plan.topics}  # of the current plan alone
        return frozenset(source for (source, _, _), admitted in self._known.items() if not admitted)

    def admits_transform(self, topic: PlannedTopic, proof: Proof | None) -> bool:
        """Return whether a topic's records may be transformed as in the plan."""
        if self._link is None or proof is Proof.PROVEN:
            return True
        try:
            return _made(topic) == self._rule_digest(topic)
        except ConfigError:
            return False

    def admits_heartbeat(self, plan: Plan, proof: Proof | None) -> bool:
        """Return whether the application may write the plan's heartbeats to the source."""
        if self._selected is None or proof is Proof.PROVEN or plan.heartbeat is None:
            return True
        return plan.heartbeat.topic == self._selected.heartbeats

    def admits_groups(self, sync: PlannedGroupSync | None, proof: Proof | None) -> bool:
        """Return whether the application may synchronize these consumer groups and write these checkpoints."""
        if self._selected is None or self._link is None or proof is Proof.PROVEN or sync is None:
            return True
        ours = self._selected.consumer_groups
        topics = {sync.checkpoints_topic, sync.offset_syncs_topic}
        return (
            ours.sync
            and (sync.include, sync.exclude, sync.include_moved) == (ours.include, ours.exclude, ours.include_moved)
            and topics <= {"", naming.checkpoints_topic(self._link), naming.offset_syncs_topic(self._link)}
        )

    def admits(self, plan: Plan, proof: Proof | None) -> bool:
        """Return whether the application may follow the whole plan."""
        return (
            not self.refused_topics(plan, proof)
            and self.admits_heartbeat(plan, proof)
            and self.admits_groups(plan.consumer_groups, proof)
        )

    def _admits(self, topic: PlannedTopic) -> bool:
        known = self._known.get(_what(topic))
        if known is not None or self._link is None:
            return known is not False
        try:
            named = naming.Names(self._link).destination(topic.source)
            return (
                selects(self._link.topics, topic.source)
                and named == topic.destination
                and _made(topic) == self._rule_digest(topic)
            )
        except ConfigError:  # an expression takes too long on a name that only an attacker would choose
            return False

    def _rule_digest(self, topic: PlannedTopic) -> str:
        assert self._link is not None
        transform = TopicTransform.of_topic(self._link.topics, topic.source)
        return "" if transform is None else transform.rule_digest


def _what(topic: PlannedTopic) -> tuple[str, str, str]:
    return topic.source, topic.destination, _made(topic)


def _made(topic: PlannedTopic) -> str:
    return "" if topic.policy.transform is None else topic.policy.transform.rule_digest


def with_selection_of(wanted: AppSpec, runs_with: object, plan: Plan, proofs: Mapping[str, Proof]) -> AppSpec:
    """Return the wanted spec with the selection of the running application if that one may follow the plan as it is.
    Then an edit of the selection does not restart it: it follows the plan.

    Args:
        proofs: by this process's key; they count for the application if its spec has that key, too.
    """
    if not isinstance(runs_with, AppSpec) or runs_with.selected == wanted.selected:
        return wanted
    proof = proofs.get(plan.group) if runs_with.state_keys & wanted.state_keys else None
    if not Admission(runs_with).admits(plan, proof):
        return wanted
    return wanted.model_copy(update={"selected": runs_with.selected})
