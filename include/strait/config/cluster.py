"""A Kafka cluster as the links file names it: for code that connects to it."""

from collections.abc import Mapping
from typing import NamedTuple

from strait.config.cluster_identity import expected_id, expecting


class Cluster(NamedTuple):
    """A cluster: librdkafka's properties of its block, and its name. Functions that connect take these two in this
    order, so ``*cluster`` passes both."""

    properties: Mapping[str, str]
    name: str

    @property
    def id(self) -> str:
        """Kafka's ID of the cluster that the properties expect; "" if it is unknown."""
        return expected_id(self.properties)

    def expecting(self, cluster_id: str) -> "Cluster":
        """Return the cluster with this expected ID, unless it has one already or it is unknown ("")."""
        return self._replace(properties=expecting(self.properties, cluster_id))

    def __repr__(self) -> str:
        return f"Cluster({self.name!r})"  # the properties may hold passwords
