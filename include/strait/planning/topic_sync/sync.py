"""Changes that destination topics need besides their records: partitions, configurations, ACLs and deletion. Pure."""

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from strait.config.links import Link
from strait.config.rules import rule_of
from strait.model import ClusterFacts, TopicAcl
from strait.planning.topic_sync.acls import acl_changes, still_given
from strait.planning.topic_sync.actions import Action, AlterTopic, GrowTopic
from strait.planning.topic_sync.configs import altered
from strait.planning.topic_sync.creation import Destinations
from strait.planning.topic_sync.opposite import Opposite
from strait.planning.topic_sync.retirement import Retirement, dated
from strait.planning.topics.pairs import Pair
from strait.planning.topics.policies import creates
from strait.reasons import Reason
from strait.state.schema import GivenAcl, Plan, Waiting, newest_of
from strait.text import utc

_NONE = Opposite()


@dataclass(frozen=True, slots=True)
class Memory:
    """State that the current plans record for topic sync.

    Attributes:
        copied_from: ID of the source cluster when the link first replicated; "" before the first plan.
        acls: ACLs that the link has added.
        waiting: all waiting entries of these plans.
    """

    copied_from: str = ""
    acls: tuple[TopicAcl, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @classmethod
    def of(cls, plans: Iterable[Plan], unproven: Container[str] = ()) -> "Memory":
        """Return the newest plan's state, which is the same in every task group's plan, and the waiting entries of all
        plans.

        Args:
            unproven: task groups whose plan may be a foreign one. No ACL that denies something is removed on its word.
        """
        plans = tuple(plans)
        newest = newest_of(plans)
        if newest is None:
            return cls()
        acls = tuple(TopicAcl(**dict(acl)) for acl in newest.acls)
        if newest.group in unproven:
            acls = tuple(acl for acl in acls if acl.permission == "ALLOW")
        return cls(newest.copied_from, acls, tuple(item for plan in plans for item in plan.waiting))


@dataclass(frozen=True, slots=True)
class TopicSync:
    """Changes to make to destination topics, and the state that the next plan records.

    Attributes:
        actions: in the order in which they are carried out.
        acls_denied: why the ACLs of destination topics cannot be synchronized; "" if they are, or need not be.
    """

    actions: tuple[Action, ...] = ()
    acls_denied: str = ""
    retirement: Retirement = field(default_factory=Retirement)
    memory: Memory = field(default_factory=Memory)

    @property
    def given(self) -> tuple[GivenAcl, ...]:
        """ACLs that the link has added, as the plan records them."""
        return tuple(GivenAcl(**acl._asdict()) for acl in self.memory.acls)

    def without_altering(self, topics: Container[str]) -> "TopicSync":
        """Return the same without changed configurations of these destination topics."""
        kept = (item for item in self.actions if not (isinstance(item, AlterTopic) and item.topic in topics))
        return replace(self, actions=tuple(kept))

    def waiting(self, waits: Iterable[Waiting], now_ms: int) -> list[Waiting]:
        """Return the waiting entries for the plan: dated, without forgotten topics, and with the reason why a
        destination topic is kept."""
        left = (item for item in waits if item.topic not in self.retirement.forgotten)
        return [self._explained(item) for item in dated(left, self.memory.waiting, now_ms)]

    def _explained(self, item: Waiting) -> Waiting:
        if item.reason == Reason.AWAITING_APPROVAL:
            return item.model_copy(update={"detail": f"since {utc(item.since_ms)} UTC: {item.detail}"})
        kept = self.retirement.kept.get(item.topic)
        if kept is None:
            return item
        return item.model_copy(update={"detail": f"{item.detail}; destination topic not deleted: {kept}"})


def topic_sync(
    link: Link,
    destinations: Destinations,
    source: ClusterFacts,
    destination: ClusterFacts,
    memory: Memory,
    *,
    retirement: Retirement | None = None,
    refused: Collection[str] = (),
    done: Collection[Action] = (),
    opposite: Opposite = _NONE,
) -> TopicSync:
    """Compare every destination topic with its source topic.

    Args:
        retirement: the result for destination topics whose source topics were deleted.
        ``refused``: destination topics to which a change was rejected in this cycle.
        done: actions completed in this cycle.
        opposite: links from the destination to the source.
    """
    source = opposite.own(source)
    followed = _followed(link, destinations)
    given = still_given(memory.acls, done, destination)
    retirement = retirement or Retirement()
    return TopicSync(
        actions=(
            *grown(link, destinations.pairs, refused),
            *altered(link, opposite.one_way(destinations.pairs)),
            *acl_changes(followed, source, destination, given, remove=link.acls.remove),
            *retirement.delete,
        ),
        acls_denied=source.acls_denied or destination.acls_denied,
        retirement=retirement,
        memory=Memory(memory.copied_from or source.cluster_id, given, memory.waiting),
    )


def follows_acls(link: Link) -> bool:
    """Return whether both authorizers have to be queried at all."""
    return link.acls.sync or any(rule.sync_acls for rule in link.topics.rules)


def syncs_acls(link: Link, topic: str) -> bool:
    """Return whether the ACLs of a source topic are synchronized."""
    ruled = rule_of(link.topics, topic).sync_acls
    return link.acls.sync if ruled is None else ruled


def _followed(link: Link, destinations: Destinations) -> Mapping[str, str]:
    """Return source topic -> destination topic, of topics whose ACLs are synchronized."""
    found = {}
    for pair in destinations.pairs:
        if syncs_acls(link, pair.source.topic):
            found[pair.source.topic] = pair.destination.topic
    return found


def grown(link: Link, pairs: Iterable[Pair], refused: Collection[str]) -> tuple[GrowTopic, ...]:
    """Return the destination topics to grow, in order of the pairs: if the link may create topics, and the destination
    has not rejected a change to the topic (``refused``)."""
    return tuple(
        GrowTopic(pair.destination.topic, pair.source.topic, pair.destination.partitions, pair.source.partitions)
        for pair in pairs
        if pair.usable
        and pair.destination.partitions < pair.source.partitions
        and creates(link, pair.source.topic)
        and pair.destination.topic not in refused
    )
