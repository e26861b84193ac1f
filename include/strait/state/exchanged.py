"""Notices that the addresses of a link's two clusters are exchanged in the links file."""

from strait.config.cluster import Cluster
from strait.errors import ConfigError, NotAuthorized, StateError
from strait.state.reader import StateReader


def require_not_exchanged(link: str, source: Cluster, destination: Cluster) -> None:
    """Check a link of which the destination has no plan: it may be new, or its addresses are exchanged, so that it would
    replicate in the wrong direction. A source that does not let its state topics be read proves neither.

    Raises:
        ConfigError: its source has a plan of it.
        ClusterUnavailable
    """
    try:
        with StateReader(*source, link, follow=("plan",)) as reader:
            reader.catch_up()
            has_plan = any(plan.topics for plan in reader.plans.values())
    except (NotAuthorized, StateError):
        return
    if has_plan:
        raise ConfigError(
            f"link {link}",
            [
                f"its state is on its source, cluster {source.name}, and not on its destination, cluster {destination.name}"
            ],
            hint=f"exchange `bootstrap.servers` of {source.name} and {destination.name} in the links file; if the link is to "
            f"replicate from {source.name} to {destination.name} beside the one that replicates back, give it another name",
        )
