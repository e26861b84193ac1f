"""The state topics of a link: creating them, and refusing ones that would lose state."""

from collections.abc import Sequence

from strait import naming
from strait.errors import StateError
from strait.kafka.admin import Admin, NewTopic
from strait.state.writer import QUARANTINED_BYTES, RECORD_BYTES

_DAY_MS = 24 * 60 * 60 * 1000
_STAMPED = {"message.timestamp.type": "LogAppendTime"}  # by a host's clock an hour ahead every record would be refused
_COMPACTED = {"cleanup.policy": "compact", "max.message.bytes": str(RECORD_BYTES)} | _STAMPED
_CHECKED = ("cleanup.policy", "max.message.bytes")


def ensure_state_topics(admin: Admin, link: str, replication_factor: int | None) -> list[str]:
    """Create what is missing on the destination; return the names created here.

    Raises:
        StateError: one of them exists in a form that would lose state: not compacted, or with several partitions.
    """
    return _ensure(admin, _state_topics(link, replication_factor))


def ensure_producers_topic(admin: Admin, replication_factor: int | None) -> None:
    """Create the topic that all links into the cluster share, where it is missing. Raises StateError, as above."""
    _ensure(admin, [NewTopic(naming.PRODUCERS_TOPIC, 1, replication_factor, _COMPACTED)])


def _ensure(admin: Admin, topics: Sequence[NewTopic]) -> list[str]:
    wanted = {topic.topic: topic for topic in topics}
    created = admin.create(wanted.values())
    facts = admin.observe(wanted.__contains__, _CHECKED).topics
    for name, topic in wanted.items():
        if name not in facts or not facts[name].configs:
            continue  # created a moment ago, and one of the brokers asked has not heard of it yet
        if facts[name].partitions != topic.partitions:
            raise _unfit(admin.cluster, name, f"it has {facts[name].partitions} partitions instead of 1")
        policy = facts[name].configs.get("cleanup.policy", "")
        if policy != topic.configs["cleanup.policy"]:
            raise _unfit(
                admin.cluster, name, f"its cleanup.policy is {policy!r} instead of {topic.configs['cleanup.policy']!r}"
            )
    return created


def _state_topics(link: str, replication_factor: int | None) -> list[NewTopic]:
    deleted = {"cleanup.policy": "delete"} | _STAMPED
    kept_a_day = deleted | {"retention.ms": str(_DAY_MS), "max.message.bytes": str(RECORD_BYTES)}
    kept_for_ever = deleted | {"retention.ms": "-1", "retention.bytes": "-1"}
    set_aside = kept_for_ever | {"max.message.bytes": str(QUARANTINED_BYTES)}
    return [
        NewTopic(naming.plan_topic(link), 1, replication_factor, _COMPACTED),
        NewTopic(naming.map_topic(link), 1, replication_factor, _COMPACTED),
        NewTopic(naming.reports_topic(link), 1, replication_factor, kept_a_day),
        NewTopic(naming.losses_topic(link), 1, replication_factor, kept_for_ever),
        NewTopic(naming.quarantine_topic(link), 1, replication_factor, set_aside),
    ]


def _unfit(cluster: str, topic: str, what: str) -> StateError:
    return StateError(
        f"cluster {cluster}: checking state topic {topic}: {what}, so it would lose what the link needs to go on",
        hint="correct the topic; Strait creates it rightly where it does not exist",
    )
