"""The producers of partitions, as known to the partitions' leaders: DescribeProducers (KIP-664)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse

from strait.config.route_names import place_of
from strait.errors import ClusterUnavailable, NotAuthorized
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.brokers import Address, broker_at, leaders, until_answered
from strait.pieces import pieces
from strait.wire import error_codes

_DESCRIBE_PRODUCERS = (61, 0, 0)
_REPLY_BYTES = 64 << 20
_PARTITIONS_AT_ONCE = 500
"""There may be thousands of short-lived producers; each takes 40 bytes of the reply."""
_PATIENCE_SECONDS = 15.0


class ActiveProducer(NamedTuple):
    """An idempotent or transactional producer whose state a partition's leader holds.

    Attributes:
        last_ms: newest timestamp in its last batch.
        open_since: offset of the first record of its open transaction; -1 if it has none.
        last_sequence: of its last record there, as on the wire; -1 if unknown.
    """

    producer_id: int
    last_ms: int
    open_since: int
    last_sequence: int = -1


def active_producers(
    properties: Mapping[str, str], cluster: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ActiveProducer]]:
    """Return the producers whose state each partition's leader holds: only idempotent and transactional ones.

    Raises:
        ClusterUnavailable: a partition has no leader, or a broker does not answer; NotAuthorized: no READ on a topic.
    """
    names = set(partitions)
    wanted = sorted(set(map(place_of, names)))

    def ask() -> dict[TopicPartition, list[ActiveProducer]]:
        found: dict[TopicPartition, list[ActiveProducer]] = {}
        for address, of_leader in _by_leader(properties, cluster, wanted).items():
            with broker_at(properties, cluster, address) as connection:
                for piece in pieces(of_leader, _PARTITIONS_AT_ONCE):
                    request = describe_request(connection.version(*_DESCRIBE_PRODUCERS), piece)
                    found |= _described(cluster, connection.ask(request, DescribeProducersResponse, _REPLY_BYTES))
        return found

    found = until_answered(ask, _PATIENCE_SECONDS) if wanted else {}
    return {name: found[place_of(name)] for name in names if place_of(name) in found}


def _described(cluster: str, reply: Any) -> dict[TopicPartition, list[ActiveProducer]]:
    found = {}
    for topic in reply.topics:
        for item in topic.partitions:
            place = TopicPartition(topic.name, item.partition_index)
            _check(cluster, place, item.error_code)
            found[place] = [
                ActiveProducer(
                    producer.producer_id,
                    producer.last_timestamp,
                    producer.current_txn_start_offset,
                    producer.last_sequence,
                )
                for producer in item.active_producers
            ]
    return found


def _by_leader(
    properties: Mapping[str, str], cluster: str, wanted: Collection[TopicPartition]
) -> dict[Address, list[TopicPartition]]:
    known = leaders(properties, cluster, sorted({place.topic for place in wanted}))
    found: dict[Address, list[TopicPartition]] = defaultdict(list)
    for place in wanted:
        if place not in known:
            raise ClusterUnavailable(cluster, f"looking for the leader of {place}: there is no such partition now")
        address, code = known[place]
        _check(cluster, place, code)
        if address is None:
            raise ClusterUnavailable(cluster, f"looking for the leader of {place}: there is none now")
        found[address].append(place)
    return found


def describe_request(version: int, places: Iterable[tuple[str, int]]) -> DescribeProducersRequest:
    """Return a request to a leader for the producers of these partitions."""
    topic_class = DescribeProducersRequest.TopicRequest
    topics = [topic_class(name=topic, partition_indexes=numbers) for topic, numbers in by_topic(places).items()]
    return DescribeProducersRequest(version=version, topics=topics)


def by_topic(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return topic -> its partitions among these."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in places:
        topics[topic].append(number)
    return topics


def _check(cluster: str, place: TopicPartition, code: int) -> None:
    if code == error_codes.TOPIC_AUTHORIZATION_FAILED:
        raise NotAuthorized(
            cluster, f"describing the producers of {place}: {error_policy.name(code)}", hint="grant READ on the topic"
        )
    if code:
        raise ClusterUnavailable(cluster, f"describing the producers of {place}: {error_policy.name(code)}")
