"""If the configurations of a topic can no longer be read, planning uses the values in the current plans. Pure.

A permission that is revoked from the control plane is no reason to stop slots that may still read and write. Only the
values that a plan needs are retained: such a topic is neither grown nor altered until its cluster reports its
configurations again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from strait.model import ClusterFacts, TopicFacts
from strait.state.schema import Plan, PlannedTopic


def retained(
    source: ClusterFacts, destination: ClusterFacts, plans: Iterable[Plan]
) -> tuple[ClusterFacts, ClusterFacts]:
    """Return the facts, with the plans' values for those topics, by ID, that are denied now."""
    if not (_denied(source) or _denied(destination)):
        return source, destination
    planned = [topic for plan in plans for topic in plan.topics]
    of_source = {topic.source_id: _of_source(topic) for topic in planned}
    of_destination = {topic.destination_id: _of_destination(topic) for topic in planned}
    return _with(source, of_source), _with(destination, of_destination)


def _denied(cluster: ClusterFacts) -> list[TopicFacts]:
    return [topic for topic in cluster.topics.values() if topic.denied and topic.topic_id]


def _with(cluster: ClusterFacts, known: Mapping[str, Mapping[str, str]]) -> ClusterFacts:
    found = {
        topic.topic: replace(topic, configs=known[topic.topic_id])
        for topic in _denied(cluster)
        if topic.topic_id in known
    }
    return replace(cluster, topics={**cluster.topics, **found})


def _of_source(topic: PlannedTopic) -> Mapping[str, str]:
    policy = topic.policy
    return {
        "cleanup.policy": "compact" if policy.source_compacted else "delete",
        "message.timestamp.type": "LogAppendTime" if policy.source_append_time else "CreateTime",
    }


def _of_destination(topic: PlannedTopic) -> Mapping[str, str]:
    policy = topic.policy
    return {
        "max.message.bytes": str(policy.max_message_bytes),
        "message.timestamp.type": "LogAppendTime" if policy.destination_append_time else "CreateTime",
    }
