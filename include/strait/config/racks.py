"""The rack of a slot, by which leaders choose the follower that it fetches from (KIP-392). Pure."""

from collections.abc import Mapping

from strait.config.client_properties import MAX_AGE, RACK

VARIABLE = "STRAIT_RACK"
"""Environment variable with the rack of a host, or the zone of a pod's node, for slots without another one."""
_EXPIRE_MS = 300_000
"""Default of `metadata.max.age.ms` in Kafka's consumers, whose choice of a follower expires after it."""


def rack_of(properties: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return the rack that a slot has in a cluster, by the cluster's properties or else by the slot's environment; "":
    unknown."""
    return properties.get(RACK, environment.get(VARIABLE, ""))


def in_rack(properties: Mapping[str, str], rack: str | None) -> Mapping[str, str]:
    """Return a cluster's properties for slots in this rack; None: in the rack that the properties name, if any."""
    return properties if rack is None else {**properties, RACK: rack}


def expire_seconds(properties: Mapping[str, str]) -> float:
    """Return the time after which the choice of a follower expires."""
    return int(properties.get(MAX_AGE, _EXPIRE_MS)) / 1000
