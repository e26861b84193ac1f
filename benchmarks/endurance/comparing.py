"""Whether a copy of thousands of partitions lost or doubled a record."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from strait.embedded.kafka import Cluster
from strait.pieces import pieces
from support.fixtures.waiting import eventually

_AT_ONCE = 10_000
_PARTITIONS_AT_ONCE = 2_000  # a consumer of 15,000 asks one broker for all of them in each request, and gets no further
_PATIENCE_SECONDS = 600.0

Values = dict[tuple[str, int], list[bytes]]


class Difference(NamedTuple):
    """Records of all partitions: of the source, not in the copy, more than once there, and partitions whose order is
    another."""

    records: int
    lost: int
    twice: int
    disordered: int


def compare(source: Cluster, destination: Cluster, topics: Mapping[str, int]) -> Difference:
    """Values must be unlike within a partition."""
    places = [(topic, number) for topic, count in topics.items() for number in range(count)]
    found = [
        _difference(_values(source, some), _values(destination, some)) for some in pieces(places, _PARTITIONS_AT_ONCE)
    ]
    return Difference(*map(sum, zip(*found, strict=True)))


def _difference(ours: Values, theirs: Values) -> Difference:
    lost = sum(len(set(ours[place]) - set(theirs[place])) for place in ours)
    twice = sum(len(values) - len(set(values)) for values in theirs.values())
    disordered = sum(ours[place] != list(dict.fromkeys(theirs[place])) for place in ours) if not lost else 0
    return Difference(sum(map(len, ours.values())), lost, twice, disordered)


def _values(cluster: Cluster, places: Sequence[tuple[str, int]]) -> Values:
    """Every record of these partitions, by one consumer."""
    found: Values = {place: [] for place in places}
    properties = {"group.id": "comparison", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(cluster.client_properties | properties)
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in found])
    left = set(found)

    def take() -> bool:
        for message in consumer.consume(_AT_ONCE, timeout=0.2):
            place = message.topic(), message.partition()
            if message.error() is None:
                found[place].append(message.value())
            else:
                left.discard(place)
        return not left

    eventually(take, what=lambda: f"the ends of {len(left)} partitions", within_seconds=_PATIENCE_SECONDS)
    consumer.close()
    return found
