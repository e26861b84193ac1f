"""What copies need besides being copied into: partitions, configurations, rights, and an end. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from strait.config.links import Link
from strait.config.rules import rule_of
from strait.model import ClusterFacts, TopicAcl
from strait.planning.topic_sync.acls import acl_changes, still_given
from strait.planning.topic_sync.actions import Action
from strait.planning.topic_sync.configs import altered
from strait.planning.topic_sync.creation import Destinations
from strait.planning.topic_sync.growth import grown
from strait.planning.topic_sync.opposite import Opposite
from strait.planning.topic_sync.retirement import Retirement, dated
from strait.state.schema import GivenAcl, Plan, Waiting

_NONE = Opposite()


@dataclass(frozen=True, slots=True)
class Memory:
    """What the plans in force remember for it.

    Attributes:
        copied_from: id of the source cluster as it was when the link began; "" before the first plan.
        acls: rules that the link has given in all its life.
        waiting: all that waits by these plans.
    """

    copied_from: str = ""
    acls: tuple[TopicAcl, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @classmethod
    def of(cls, plans: Iterable[Plan]) -> "Memory":
        """Of the newest one; every task group's plan has the same but for what waits."""
        plans = tuple(plans)
        newest = max(plans, key=lambda plan: plan.published_at_ms, default=None)
        if newest is None:
            return cls()
        acls = tuple(TopicAcl(**dict(acl)) for acl in newest.acls)
        return cls(newest.copied_from, acls, tuple(item for plan in plans for item in plan.waiting))


@dataclass(frozen=True, slots=True)
class TopicSync:
    """What is to be done to copies, and what the next plan is to remember of it.

    Attributes:
        actions: in the order in which they are done.
        acls_denied: why the rights on copies cannot follow; "" where they do or need not.
    """

    actions: tuple[Action, ...] = ()
    acls_denied: str = ""
    retirement: Retirement = field(default_factory=Retirement)
    memory: Memory = field(default_factory=Memory)

    @property
    def given(self) -> tuple[GivenAcl, ...]:
        """For the plan."""
        return tuple(GivenAcl(**acl._asdict()) for acl in self.memory.acls)

    def waiting(self, waits: Iterable[Waiting], now_ms: int) -> list[Waiting]:
        """What waits, as the plan has it: dated, without what is forgotten, and with why a copy is kept."""
        left = (item for item in waits if item.topic not in self.retirement.forgotten)
        return [self._explained(item) for item in dated(left, self.memory.waiting, now_ms)]

    def _explained(self, item: Waiting) -> Waiting:
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
    """Hold every copy against its source.

    Args:
        retirement: what was decided about copies whose sources are gone.
        refused: destination topics that were not given what they lack in this cycle.
        done: what was done in this cycle.
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
    """Whether both authorizers have to be asked at all."""
    return link.acls.sync or any(rule.sync_acls for rule in link.topics.rules)


def _followed(link: Link, destinations: Destinations) -> Mapping[str, str]:
    """Source topic -> its copy, of those whose rights follow."""
    found = {}
    for pair in destinations.pairs:
        ruled = rule_of(link.topics, pair.source.topic).sync_acls
        if link.acls.sync if ruled is None else ruled:
            found[pair.source.topic] = pair.destination.topic
    return found
