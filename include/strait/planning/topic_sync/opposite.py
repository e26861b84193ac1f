"""Links that copy from a link's destination into its source. Pure.

What such a link has given to copies on the source is not the source's own: carried on, a right would hold itself up on
both clusters after it was revoked on one. And a topic that is copied both ways has two sides that people configure, so
whoever looked first would undo what was set on the other one. Under other names a copy would be copied back as a new topic,
and that one again, for as long as names can grow.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from strait.model import ClusterFacts, TopicAcl
from strait.planning.topics.pairs import Pair
from strait.state.schema import Plan


@dataclass(frozen=True, slots=True)
class Opposite:
    """All of them together.

    Attributes:
        acls: rules on the link's source that they have given there.
        copies: topics of the link's source that are their copies.
        copied: topics of the link's destination that they copy.
        unknown: why that cannot be known; "" where it is.
    """

    acls: frozenset[TopicAcl] = frozenset()
    copies: frozenset[str] = frozenset()
    copied: frozenset[str] = frozenset()
    unknown: str = ""

    @classmethod
    def of(cls, plans: Iterable[Plan]) -> "Opposite":
        plans = tuple(plans)
        acls = frozenset(TopicAcl(**dict(acl)) for plan in plans for acl in plan.acls)
        topics = [topic for plan in plans for topic in plan.topics]
        copies = {topic.destination for topic in topics} | {one.destination for plan in plans for one in plan.left}
        return cls(acls, frozenset(copies), frozenset(topic.source for topic in topics))

    def own(self, source: ClusterFacts) -> ClusterFacts:
        """The source with its own rules alone; with none that are known where it is not known which they are."""
        if source.acls is None:
            return source
        if self.unknown:
            return replace(source, acls=None, acls_denied=self.unknown)
        return replace(source, acls=source.acls - self.acls)

    def one_way(self, pairs: Iterable[Pair]) -> Collection[Pair]:
        """Those whose destination topic nobody copies back; none where that is not known."""
        return [] if self.unknown else [pair for pair in pairs if pair.destination.topic not in self.copied]
