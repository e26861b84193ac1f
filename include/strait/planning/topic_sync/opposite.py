"""Links that replicate from a link's destination into its source. Pure.

ACLs that such a link has added to destination topics on the source are not the source's own: if they were synchronized,
an ACL would restore itself on both clusters after it was revoked on one. And a topic that is replicated both ways has
two sides that operators configure, so the first link to check would undo a change made on the other side. Under other
names, a destination topic of such a link would be replicated back as a new topic, and that one again, until names reach
their maximum length.
"""

from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, replace

from strait.config.route_names import topic_of
from strait.model import ClusterFacts, TopicAcl
from strait.planning.topics.pairs import Pair
from strait.state.moved_copies import MovedCopies
from strait.state.schema import Plan


@dataclass(frozen=True, slots=True)
class Opposite:
    """All of these links together.

    Attributes:
        acls: ACLs that they have added on the link's source.
        copies: topics of the link's source that are their destination topics.
        renamed: those of them that have another name than their source topic.
        copied: topics of the link's destination that they replicate.
        unknown: why this is unknown; "" if it is known.
        exist: whether there is such a link, although this is unknown.
    """

    acls: frozenset[TopicAcl] = frozenset()
    copies: frozenset[str] = frozenset()
    renamed: frozenset[str] = frozenset()
    copied: frozenset[str] = frozenset()
    unknown: str = ""
    exist: bool = False

    @classmethod
    def of(
        cls, plans: Iterable[Plan], moved_in: Iterable[MovedCopies] = (), originals: Container[str] = ()
    ) -> "Opposite":
        """Return the changes of these plans. ``moved_in``: copies that another tool made before such links, of
        ``originals``, all topics of the link's destination."""
        plans = tuple(plans)
        acls = frozenset(TopicAcl(**dict(acl)) for plan in plans for acl in plan.acls)
        topics = [topic for plan in plans for topic in plan.topics]
        pairs = {(topic.source, topic.destination) for topic in topics}
        pairs |= {(one.source, one.destination) for plan in plans for one in plan.left}
        taken_over = {one.moved_in for one in moved_in}
        copies = {there for _, there in pairs} | taken_over
        renamed = {there for here, there in pairs if topic_of(here) != there}
        renamed |= {name for name in taken_over if name not in originals}
        return cls(acls, frozenset(copies), frozenset(renamed), frozenset(topic_of(topic.source) for topic in topics))

    def own(self, source: ClusterFacts) -> ClusterFacts:
        """Return the source with its own ACLs only; without any if it is unknown which ones are its own."""
        if source.acls is None:
            return source
        if self.unknown:
            return replace(source, acls=None, acls_denied=self.unknown)
        return replace(source, acls=source.acls - self.acls)

    def one_way(self, pairs: Iterable[Pair]) -> Collection[Pair]:
        """Return the pairs whose destination topic is not replicated back; none if that is unknown."""
        return [] if self.unknown else [pair for pair in pairs if pair.destination.topic not in self.copied]
