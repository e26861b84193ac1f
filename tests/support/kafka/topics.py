"""Topics as their owners change them: made, grown, altered, deleted, looked at."""

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicFacts
from support.fixtures.waiting import eventually


def create(cluster: Cluster, topic: str, partitions: int = 1, **configs: str) -> None:
    Admin(cluster.client_properties, "x").create([NewTopic(topic, partitions, 1, _dotted(configs))])
    client = AdminClient(cluster.client_properties)
    eventually(lambda: topic in client.list_topics(timeout=10).topics, what=f"the brokers know {topic}")


def delete(cluster: Cluster, topic: str) -> None:
    admin = AdminClient(cluster.client_properties)
    admin.delete_topics([topic])[topic].result(30)
    eventually(lambda: topic not in admin.list_topics(timeout=10).topics, what=f"the end of {topic}")


def grow(cluster: Cluster, topic: str, partitions: int) -> None:
    client = AdminClient(cluster.client_properties)  # kept until the answer is there: without it that never comes
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
    eventually(lambda: look(cluster, topic).partitions == partitions, what=f"{partitions} partitions of {topic}")


def alter(cluster: Cluster, topic: str, **configs: str) -> None:
    put = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in _dotted(configs).items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=put)
    client = AdminClient(cluster.client_properties)
    client.incremental_alter_configs([resource])[resource].result(30)
    eventually(lambda: _dotted(configs).items() <= look(cluster, topic).topic_configs.items(), what=f"{configs}")


def look(cluster: Cluster, topic: str) -> TopicFacts:
    return Admin(cluster.client_properties, "x").observe(topic.__eq__, ("retention.ms",)).topics[topic]


def exists(cluster: Cluster, topic: str) -> bool:
    return topic in AdminClient(cluster.client_properties).list_topics(timeout=10).topics


def produce(cluster: Cluster, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer(cluster.client_properties)
    for number in range(count):
        producer.produce(topic, value=str(number), partition=partition)
    assert producer.flush(30) == 0


def delete_before(cluster: Cluster, topic: str, offsets: dict[int, int]) -> None:
    """Delete the records of each partition before an offset; -1: all of them."""
    client = AdminClient(cluster.client_properties)
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    for future in client.delete_records(places).values():
        future.result(30)


def _dotted(configs: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in configs.items()}
