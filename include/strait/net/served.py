"""The requests that each end of a link must serve, and the features that are unavailable if one is missing.

Apache Kafka serves all of them since 2.8, DescribeTransactions since 3.0 (KIP-664), except those that an
administrator does not allow. Other implementations of its protocol serve fewer.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from strait.wire import fetch, produce

End = Literal["source", "destination"]
Versions = tuple[int, int]
"""Lowest and highest."""

LIST_OFFSETS: Versions = (6, 7)
LOG_END: Versions = (2, 4)
METADATA: Versions = (9, 12)
_ANY: Versions = (0, 1 << 15)  # librdkafka chooses the version


class Need(NamedTuple):
    """A request that Strait sends to one or both ends.

    Attributes:
        versions: those that Strait supports.
        without: the consequence if the request is missing; "" if nothing can be copied.
    """

    request: str
    key: int
    versions: Versions
    ends: tuple[End, ...]
    without: str = ""

    @property
    def is_required(self) -> bool:
        """Whether nothing can be copied without it."""
        return not self.without

    @property
    def cost(self) -> str:
        """The consequence if the request is missing, human-readable."""
        return self.without or "nothing can be copied"

    def is_met(self, served: Mapping[int, Versions]) -> bool:
        """Whether a broker that serves these versions (API key -> versions) serves this request."""
        low, high = served.get(self.key, (0, -1))
        return low <= high and low <= self.versions[1] and high >= self.versions[0]

    def named(self, served: Mapping[int, Versions]) -> str:
        """Return the request with the versions that a broker serves, if it serves others than Strait sends."""
        low, high = served.get(self.key, (0, -1))
        if low > high:
            return self.request
        return f"{self.request} in versions {self.versions[0]} to {self.versions[1]} (serves {low} to {high})"


_SOURCE: tuple[End, ...] = ("source",)
_DESTINATION: tuple[End, ...] = ("destination",)
_BOTH: tuple[End, ...] = ("source", "destination")
_PLANS = "plans and the offset map cannot be written"

NEEDS: Sequence[Need] = (
    Need("Produce", 0, produce.VERSIONS, _DESTINATION),
    Need("Fetch", 1, fetch.VERSIONS, _BOTH),
    Need("ListOffsets", 2, LIST_OFFSETS, _BOTH),
    Need("Metadata", 3, METADATA, _BOTH),
    Need("OffsetForLeaderEpoch", 23, LOG_END, _BOTH),
    Need("InitProducerId", 22, _ANY, _DESTINATION),
    Need("FindCoordinator", 10, _ANY, _DESTINATION),
    Need("AddPartitionsToTxn", 24, _ANY, _DESTINATION),
    Need("EndTxn", 26, _ANY, _DESTINATION),
    Need("CreateTopics", 19, _ANY, _DESTINATION, "missing topics, and the link's state topics, are not created"),
    Need("CreatePartitions", 37, _ANY, _DESTINATION, "destination topics do not get more partitions"),
    Need("DescribeConfigs", 32, _ANY, _BOTH, "topics are not compared by their configurations"),
    Need("IncrementalAlterConfigs", 44, _ANY, _DESTINATION, "`configs.sync` is impossible"),
    Need("DescribeProducers", 61, (0, 0), _DESTINATION, "each start reads the end of each destination log"),
    Need("DescribeLogDirs", 35, (1, 4), _SOURCE, "`strait plan` does not know the size of a backfill"),
    Need("DescribeAcls", 29, _ANY, _SOURCE, "`acls.sync` is impossible"),
    Need("CreateAcls", 30, _ANY, _DESTINATION, "`acls.sync` is impossible"),
    Need("OffsetFetch", 9, _ANY, _BOTH, "consumer groups are not translated"),
    Need("OffsetCommit", 8, _ANY, _DESTINATION, "consumer groups are not moved"),
    Need("ListGroups", 16, _ANY, _SOURCE, "consumer groups are moved only if they are named"),
    Need("DescribeTransactions", 65, _ANY, _SOURCE, "the transaction that holds back records is not shown"),
    Need("DescribeClientQuotas", 48, (0, 1), _BOTH, "`strait plan` does not see quotas"),
)

NAMES: Mapping[int, str] = {need.key: need.request for need in NEEDS}
"""API key -> name of the request."""


def missing(served: Mapping[int, Versions], end: End) -> list[Need]:
    """Return the requests that a broker at this end of a link lacks. ``served``: API key -> the versions that it
    serves."""
    return [need for need in NEEDS if end in need.ends and not need.is_met(served)]
