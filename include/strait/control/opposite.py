"""Changes that links in the opposite direction have made to the topics of a link's source, according to their plans."""

from collections.abc import Collection, Iterator

from strait.config.cluster import Cluster
from strait.config.links import Link
from strait.errors import NotAuthorized, StateError
from strait.model import ClusterFacts
from strait.planning.topic_sync.configs import syncs_any
from strait.planning.topic_sync.opposite import Opposite
from strait.planning.topic_sync.sync import follows_acls
from strait.state.reader import StateReader
from strait.state.registrations import registrations, require_readable
from strait.state.schema import Plan


def opposite_of(link: Link, source: Cluster, destination: ClusterFacts) -> Opposite:
    """Return the changes of the opposite links. Queries their plans only if the link synchronizes ACLs or
    configurations, or if it could take their destination topics for source topics because it selects by a regular
    expression.

    Args:
        source: the link's source.

    Raises:
        ClusterUnavailable
    """
    if not (follows_acls(link) or syncs_any(link) or link.topics.regex):
        return Opposite()
    exist = False
    try:
        known = registrations(*source)
        links = {one.link for one in known.all() if one.source == destination.cluster_id}
        exist = bool(links or known.trouble)  # a record that cannot be read may be of such a link
        require_readable(known, source.name)
        moved_in = [one for one in known.moved_in() if one.source == destination.cluster_id]
        return Opposite.of(_plans(source, links), moved_in, destination.topics)
    except (NotAuthorized, StateError) as error:
        return Opposite(unknown=str(error), exist=exist)


def _plans(cluster: Cluster, links: Collection[str]) -> Iterator[Plan]:
    for link in sorted(links):
        with StateReader(*cluster, link, follow=("plan",)) as state:
            state.catch_up()
            yield from state.plans.values()
