"""Links for code that reads or writes their state alone."""

from collections.abc import Mapping

from strait.config.cluster import Cluster
from strait.state.link_handle import LinkHandle


def handle_into(properties: Mapping[str, str], cluster: str, name: str) -> LinkHandle:
    """Return a link whose state is on this cluster; its source does not exist."""
    return LinkHandle(name, Cluster({"bootstrap.servers": "localhost:1"}, "no-source"), Cluster(properties, cluster))
