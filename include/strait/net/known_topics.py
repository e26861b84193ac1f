"""The topics of a cluster, as the metadata of its brokers describes them."""

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from strait.net import served

METADATA = (3, served.METADATA)
"""The API key, and the versions that Strait supports."""
_NO_ID = UUID(int=0)


class Leader(NamedTuple):
    """The leader of a partition. ``node`` is -1 while there is none."""

    node: int
    epoch: int


LAGGING_SECONDS = 10.0
"""A broker's metadata may lag that of the others. If brokers report an earlier leader for this long, and no later one,
the epochs of a partition of a topic without an ID have restarted: the topic was deleted and recreated."""
LOST_SECONDS = 60.0
"""The same for a topic with an ID, after other brokers were queried too: the controller has lost its last decisions.
Following a leader forever that no broker reports would leave the partition stuck."""


class EarlierLeaders:
    """Since when only earlier leaders are reported, for each partition of one cluster."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def seconds(self, key: tuple[str, int], now: float, *, is_earlier: bool) -> float:
        """Record that a broker reports a leader for this partition. Returns for how many seconds all reports have named
        earlier ones; 0 if this one does not."""
        if not is_earlier:
            self._since.pop(key, None)
            return 0.0
        return now - self._since.setdefault(key, now)

    def doubted(self, now: float) -> bool:
        """Whether a broker has reported earlier leaders for long enough that another broker should be queried."""
        return any(LAGGING_SECONDS <= now - since < LOST_SECONDS for since in self._since.values())

    def believed(self, key: tuple[str, int]) -> None:
        """Accept the earlier leader from now on."""
        self._since.pop(key, None)


class KnownTopics:
    """Names, IDs, partition counts and leaders, as last learned."""

    def __init__(self) -> None:
        self.leaders: dict[tuple[str, int], Leader] = {}
        self.ids: dict[str, bytes] = {}
        self.errors: dict[str, int] = {}
        self.partition_counts: dict[str, int] = {}
        self._earlier_leaders = EarlierLeaders()

    def doubted(self, now: float) -> bool:
        """Return whether brokers name earlier leaders than others did; see `EarlierLeaders`."""
        return self._earlier_leaders.doubted(now)

    def learn(self, topic: Any, now: float) -> bool:
        """Store a topic's metadata. Returns whether anything has changed."""
        new: bool = self.errors.get(topic.name) != topic.error_code
        self.errors[topic.name] = topic.error_code
        recreated = False
        if topic.topic_id not in (None, _NO_ID):  # a topic that does not exist has none
            topic_id = topic.topic_id.bytes
            recreated = topic_id != self.ids.get(topic.name, topic_id)
            new = new or topic_id != self.ids.get(topic.name)
            self.ids[topic.name] = topic_id
        if not topic.error_code:
            count = len(topic.partitions)
            for number in range(count, self.partition_counts.get(topic.name, count)):
                new = self.leaders.pop((topic.name, number), None) is not None or new
            new = new or self.partition_counts.get(topic.name) != count
            self.partition_counts[topic.name] = count
        for item in topic.partitions:
            key, leader = (topic.name, item.partition_index), Leader(item.leader_id, item.leader_epoch)
            known = self.leaders.get(key)
            is_earlier = known is not None and leader.epoch < known.epoch and not recreated
            seconds = self._earlier_leaders.seconds(key, now, is_earlier=is_earlier)
            if not is_earlier or seconds >= (LOST_SECONDS if topic.name in self.ids else LAGGING_SECONDS):
                self._earlier_leaders.believed(key)
                new = new or leader != known
                self.leaders[key] = leader
        return new


def metadata_request(version: int, topics: Iterable[str]) -> Any:
    """Return a request for the brokers and for these topics by name. It creates no topic."""
    return MetadataRequest(
        version=version,
        topics=[MetadataRequest.MetadataRequestTopic(topic_id=_NO_ID, name=topic) for topic in topics],
        allow_auto_topic_creation=False,
    )
