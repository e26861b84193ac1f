"""Which Kafka cluster a cluster's block means: an address may have come to belong to another one. Pure.

The ID travels in the cluster's properties, so that every client of it knows which answers to refuse: from the links file
if a person has set it there, else from the link's plan.
"""

from collections.abc import Mapping

from strait.config.client_properties import CLUSTER_ID
from strait.errors import OtherCluster


def expected_id(properties: Mapping[str, str]) -> str:
    """Kafka's ID of the cluster that these properties mean; "" if it is unknown."""
    return properties.get(CLUSTER_ID, "")


def expecting(properties: Mapping[str, str], cluster_id: str) -> Mapping[str, str]:
    """The properties, for this cluster alone unless they are for one already. "": unknown."""
    return properties if not cluster_id or expected_id(properties) else {**properties, CLUSTER_ID: cluster_id}


def for_client(properties: Mapping[str, str]) -> dict[str, str]:
    """Without what is Strait's own."""
    return {key: value for key, value in properties.items() if key != CLUSTER_ID}


def require_expected(cluster: str, properties: Mapping[str, str], told: str | None, who: str = "") -> None:
    """Raises OtherCluster if the ID that a broker has ``told`` is not the expected one. One that tells none is believed.

    Args:
        who: the broker, as errors have it.
    """
    expected = expected_id(properties)
    if expected and told and told != expected:
        raise other_cluster(cluster, expected, told, who)


def other_cluster(cluster: str, expected: str, told: str, who: str = "") -> OtherCluster:
    """The error for a cluster that is not the expected one."""
    return OtherCluster(
        cluster,
        f"{who or 'bootstrap.servers'} belongs to Kafka cluster {told}, but the link's is {expected}; nothing is read "
        "or written there",
        hint=f"correct `bootstrap.servers` or DNS; if the change is meant, set `{CLUSTER_ID}: {told}` for cluster "
        f"{cluster}; a second link needs another name",
    )
