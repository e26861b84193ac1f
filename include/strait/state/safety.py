"""How the state topics that must lose no record are to be kept. Pure."""

from collections.abc import Mapping

from strait.config import naming
from strait.model import TopicFacts

UNCLEAN = "unclean.leader.election.enable"
MIN_IN_SYNC = "min.insync.replicas"
SAFETY_CONFIGS = (MIN_IN_SYNC, UNCLEAN)


def min_in_sync(replicas: int) -> int:
    """The `min.insync.replicas` of a topic that must not lose a record.

    With three replicas a write that two of them have survives the loss of any broker, and one broker may be down. With
    two replicas a minimum of two would stop every partition that has a gap whenever one broker restarts, so it is one
    there: a leader that is alone in sync and goes down is waited for, since unclean elections are off.
    """
    return 2 if replicas >= 3 else 1


def kept_safe(link: str) -> tuple[str, ...]:
    """The topics that lose no record: all but the reports. The producers topic is shared by all links into the
    cluster."""
    own = (naming.plan_topic, naming.map_topic, naming.ledger_topic, naming.losses_topic, naming.quarantine_topic)
    return (*(name(link) for name in own), naming.PRODUCERS_TOPIC)


def safer_configs(topic: TopicFacts) -> Mapping[str, str]:
    """Configurations that a topic kept safe lacks. ``topic.configs`` holds `SAFETY_CONFIGS`."""
    lacking = {}
    wanted = min_in_sync(topic.replicas)
    in_force = topic.configs.get(MIN_IN_SYNC, "")
    if in_force.isdecimal() and int(in_force) < wanted:
        lacking[MIN_IN_SYNC] = str(wanted)
    if topic.configs.get(UNCLEAN) == "true":
        lacking[UNCLEAN] = "false"
    return lacking
