"""Brokers that forget producers within a second instead of a day."""

from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse

from strait.net.addresses import parse_addresses
from strait.net.handshake import dial
from strait.net.security import Security
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink

FORGETFUL = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "200"}


def until_forgotten(link: EngineLink, topic: str, broker: int = 0) -> None:
    """The leader knows no producer any more."""
    request = DescribeProducersRequest(
        version=0, topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[0])]
    )

    def known() -> int:
        address = parse_addresses("it", link.destination.bootstrap)[broker]
        connection = dial("it", address, Security("it", link.destination.client_properties))
        try:
            (item,) = connection.ask(request, DescribeProducersResponse).topics[0].partitions
            return len(item.active_producers)
        finally:
            connection.close()

    eventually(lambda: known() == 0, what="the broker forgets every producer")
