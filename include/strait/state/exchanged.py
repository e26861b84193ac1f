"""Notices that the addresses of a link's two clusters are exchanged in the links file."""

from strait.config.cluster import Cluster
from strait.errors import ConfigError, NotAuthorized, StateError
from strait.state.reader import StateReader


def exchanged_addresses(link: str, source: Cluster, destination: Cluster) -> ConfigError | None:
    """Return the error of a link of which the source has a plan. The destination has none: the link may also be new, but
    then it would replicate in the wrong direction. None: the source has no plan, or does not let it be read.

    Raises:
        ClusterUnavailable
    """
    try:
        with StateReader(*source, link, follow=("plan",)) as reader:
            reader.catch_up()
            has_plan = any(plan.topics for plan in reader.plans.values())
    except (NotAuthorized, StateError):
        return None
    if not has_plan:
        return None
    return ConfigError(
        f"link {link}",
        [f"its state is on its source, cluster {source.name}, and not on its destination, cluster {destination.name}"],
        hint=f"exchange `bootstrap.servers` of {source.name} and {destination.name} in the links file; if the link is to "
        f"replicate from {source.name} to {destination.name} beside the one that replicates back, give it another name",
    )
