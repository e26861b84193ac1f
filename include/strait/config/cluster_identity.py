"""The expected Kafka cluster of a cluster's block: its address may since belong to another cluster. Pure.

The ID is part of the cluster's properties, so that every client can reject responses of another cluster. It comes from
the links file if an operator has set it there, else from the link's plan.
"""

from collections.abc import Mapping

from strait.config.client_properties import CLUSTER_ID, OWN, RACK
from strait.errors import OtherCluster


def expected_id(properties: Mapping[str, str]) -> str:
    """Return the Kafka cluster ID that these properties expect; "" if it is unknown."""
    return properties.get(CLUSTER_ID, "")


def expecting(properties: Mapping[str, str], cluster_id: str) -> Mapping[str, str]:
    """Return the properties with this expected ID, unless they have one already or it is unknown ("")."""
    return properties if not cluster_id or expected_id(properties) else {**properties, CLUSTER_ID: cluster_id}


def for_client(properties: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's properties: without Strait's own, and without the rack, since state topics are read from
    leaders."""
    return {key: value for key, value in properties.items() if key not in OWN | {RACK}}


def require_expected(cluster: str, properties: Mapping[str, str], told: str | None, who: str = "") -> None:
    """Raise OtherCluster if the ID that a broker reports is not the expected one.

    A broker that reports none (``told`` is None) is accepted. ``who`` names the broker in the error.
    """
    expected = expected_id(properties)
    if expected and told and told != expected:
        raise other_cluster(cluster, expected, told, who)


def other_cluster(cluster: str, expected: str, told: str, who: str = "") -> OtherCluster:
    """Return the error for a cluster that is not the expected one."""
    return OtherCluster(
        cluster,
        f"{who or 'bootstrap.servers'} belongs to Kafka cluster {told}, but the link's is {expected}; nothing is read "
        "or written there",
        hint=f"correct `bootstrap.servers` or DNS; if the change is meant, set `{CLUSTER_ID}: {told}` for cluster "
        f"{cluster}; a second link needs another name",
    )
