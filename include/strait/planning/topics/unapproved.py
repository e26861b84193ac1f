"""Changes that no operator has approved: a plan without them keeps the current settings of the topics that they affect.
Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from strait.config.links import BackfillBudget
from strait.planning.topics.policies import with_facts
from strait.reasons import Reason
from strait.state.schema import TopicPolicy, Waiting

_NOT_MADE = {Reason.DESTINATION_MISSING, Reason.DESTINATION_HAS_FEWER_PARTITIONS}


@dataclass(frozen=True, slots=True)
class Unapproved:
    """Changes to leave out of a plan.

    Attributes:
        starts: source topic whose replication is not started -> the change, as text.
        names: source topic -> its current destination topic, although the configuration selects it no longer or names
            another one.
        policies: source topic -> its current policy, of topics that keep it.
        limits: topic class -> its current budget, with "" for the link's; None: the configured ones apply.
        backfill: with ``limits``, those of the backfill task group; None: it has none.
        targets: destination topics that are neither created nor given more partitions -> their source topics.
        changes: source topic -> changes of its settings, as text.
    """

    starts: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, TopicPolicy] = field(default_factory=dict)
    limits: Mapping[str, int] | None = None
    backfill: BackfillBudget | None = None
    targets: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)

    def policy(self, topic: str, configured: TopicPolicy) -> TopicPolicy:
        """Return the policy of a source topic: the current one, with the present facts about both topics, if its change
        is not approved."""
        return with_facts(self.policies[topic], configured) if topic in self.policies else configured

    def refused(self, refused: Mapping[str, str] | None) -> Mapping[str, str]:
        """Return the destination topics that were not created or given more partitions, with these."""
        return {**(refused or {}), **dict.fromkeys(self.targets, "no operator has approved it")}

    def explained(self, waiting: Iterable[Waiting]) -> Iterator[Waiting]:
        """Yield the waiting entries of a plan, with those of topics that wait for approval, and with the changes that
        are not approved."""
        for topic, text in self.starts.items():
            yield Waiting(topic=topic, reason=Reason.AWAITING_APPROVAL, detail=text)
        growing = set(self.targets.values())
        for item in waiting:
            changed: dict[str, str] = {}
            if item.topic in growing and item.reason in _NOT_MADE:
                changed["reason"] = Reason.AWAITING_APPROVAL
            if item.topic in self.changes:
                changed["detail"] = f"{item.detail}; not approved: {self.changes[item.topic]}"
            yield item.model_copy(update=changed) if changed else item


NOTHING = Unapproved()
