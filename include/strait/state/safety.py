"""Durability settings of the state topics that must not lose a record. Pure."""

from collections.abc import Mapping

from strait.config import naming
from strait.model import TopicFacts

UNCLEAN = "unclean.leader.election.enable"
MIN_IN_SYNC = "min.insync.replicas"
SAFETY_CONFIGS = (MIN_IN_SYNC, UNCLEAN)


def min_in_sync(replicas: int) -> int:
    """Return the `min.insync.replicas` of a topic that must not lose a record.

    With three replicas a write that two of them have survives the loss of any broker, and one broker may be down. With
    two replicas a minimum of two would stop every partition that has a gap whenever one broker restarts, so it is one:
    if the only in-sync replica fails, the partition stays offline until it returns, since unclean elections are off.
    """
    return 2 if replicas >= 3 else 1


def durable_topics(link: str) -> tuple[str, ...]:
    """Return the topics that must not lose a record, such as the plan and the map. All links into the cluster share the
    producers topic."""
    own = (naming.plan_topic, naming.map_topic, naming.ledger_topic, naming.losses_topic, naming.quarantine_topic)
    return (*(name(link) for name in own), naming.PRODUCERS_TOPIC)


def safer_configs(topic: TopicFacts) -> Mapping[str, str]:
    """Return the durability configurations that a topic lacks. ``topic.configs`` holds `SAFETY_CONFIGS`."""
    lacking = {}
    wanted = min_in_sync(topic.replicas)
    in_force = topic.configs.get(MIN_IN_SYNC, "")
    if in_force.isdecimal() and int(in_force) < wanted:
        lacking[MIN_IN_SYNC] = str(wanted)
    if topic.configs.get(UNCLEAN) == "true":
        lacking[UNCLEAN] = "false"
    return lacking
