"""Why a partition cannot be copied, as far as the clusters' metadata shows."""

from strait.engine.partition.partition import Partition
from strait.model import NO_TOPIC_ID, topic_id_text
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.reasons import Reason
from strait.text import plural
from strait.wire import error_codes

Problem = tuple[Reason, str]


def source_problem(source: ClusterClient, partition: Partition) -> Problem | None:
    topic = partition.source_topic
    error = source.topic_errors.get(topic, 0)
    if error == error_codes.TOPIC_AUTHORIZATION_FAILED:
        return Reason.SOURCE_DENIED, f"metadata of {topic}: {error_policy.name(error)}"
    if error == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
        return Reason.SOURCE_MISSING, f"topic {topic} no longer exists on the source"
    if _is_another(source, topic, partition.source_id):
        return Reason.SOURCE_RECREATED, _recreated(source, topic, partition.source_id)
    if source.leader(topic, partition.number).node < 0:
        return Reason.SOURCE_LEADERLESS, f"partition {partition.number} has no leader"
    return None


def destination_problem(destination: ClusterClient, partition: Partition) -> Problem | None:
    topic = partition.destination
    error = destination.topic_errors.get(topic, 0)
    if error == error_codes.TOPIC_AUTHORIZATION_FAILED:
        return Reason.DESTINATION_DENIED, f"metadata of {topic}: {error_policy.name(error)}"
    if error == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
        return Reason.DESTINATION_MISSING, f"topic {topic} does not exist on the destination"
    if destination_recreated(destination, partition):
        return Reason.DESTINATION_RECREATED, _recreated(destination, topic, partition.destination_id)
    count = destination.partition_counts.get(topic)
    if count is not None and partition.number >= count:
        detail = f"topic {topic} has {plural(count, 'partition')} on the destination, so partition {partition.number} has none"
        return Reason.DESTINATION_HAS_FEWER_PARTITIONS, detail
    if partition.queue.node < 0 and (topic, partition.number) in destination.leaders:
        return Reason.DESTINATION_LEADERLESS, f"partition {partition.number} has no leader"
    return None


def destination_recreated(destination: ClusterClient, partition: Partition) -> bool:
    return _is_another(destination, partition.destination, partition.destination_id)


def _is_another(cluster: ClusterClient, topic: str, planned_id: bytes) -> bool:
    """Return whether the topic was recreated. One that was planned without an ID may have got one since: the next plan
    has it."""
    return planned_id not in (NO_TOPIC_ID, cluster.topic_ids.get(topic, planned_id))


def _recreated(cluster: ClusterClient, topic: str, planned_id: bytes) -> str:
    now, planned = topic_id_text(cluster.topic_ids[topic]), topic_id_text(planned_id)
    return f"topic {topic} is not the one that was planned: its id is {now}, that of the plan {planned}"
