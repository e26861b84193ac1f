"""The state topics of a link: creating them, and refusing ones that would lose state."""

import time
from collections.abc import Sequence, Set

from strait import naming
from strait.errors import ClusterUnavailable, StateError
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicFacts
from strait.state.writer import QUARANTINED_BYTES, RECORD_BYTES

_DAY_MS = 24 * 60 * 60 * 1000
_STAMPED = {"message.timestamp.type": "LogAppendTime"}  # by a host's clock an hour ahead every record would be refused
_COMPACTED = {"cleanup.policy": "compact", "max.message.bytes": str(RECORD_BYTES)} | _STAMPED
_SHOWN_SECONDS = 10.0
_PAUSE_SECONDS = 0.1
_CHECKED = ("cleanup.policy", "max.message.bytes")


def ensure_state_topics(admin: Admin, link: str, replication_factor: int | None) -> list[str]:
    """Create what is missing on the destination; return the names created here.

    Raises:
        StateError: one of them exists in a form that would lose state: not compacted, or with several partitions.
        ClusterUnavailable: one of them exists, and its brokers do not tell its form.
    """
    return _ensure(admin, _state_topics(link, replication_factor))


def ensure_producers_topic(admin: Admin, replication_factor: int | None) -> None:
    """Create the topic that all links into the cluster share, where it is missing. Raises StateError, as above."""
    _ensure(admin, [NewTopic(naming.PRODUCERS_TOPIC, 1, replication_factor, _COMPACTED)])


def _ensure(admin: Admin, topics: Sequence[NewTopic]) -> list[str]:
    wanted = {topic.topic: topic for topic in topics}
    created = admin.create(wanted.values())
    facts = _look_at(admin, wanted.keys() - set(created))
    for name, topic in wanted.items():
        if name not in facts or facts[name].denied:
            continue  # it was created here, or may not be looked at
        if facts[name].partitions != topic.partitions:
            raise _unfit(admin.cluster, name, f"it has {facts[name].partitions} partitions instead of 1")
        policy = facts[name].configs.get("cleanup.policy", "")
        if policy != topic.configs["cleanup.policy"]:
            raise _unfit(
                admin.cluster, name, f"its cleanup.policy is {policy!r} instead of {topic.configs['cleanup.policy']!r}"
            )
    return created


def _look_at(admin: Admin, names: Set[str]) -> dict[str, TopicFacts]:
    """What the cluster tells of topics that exist. It may not have heard yet of one that somebody created a moment ago."""
    deadline = time.monotonic() + _SHOWN_SECONDS
    while True:
        topics = admin.observe(names.__contains__, _CHECKED).topics if names else {}
        shown = {
            name: topics[name] for name in names if name in topics and (topics[name].configs or topics[name].denied)
        }
        missing = sorted(names - shown.keys())
        if not missing:
            return shown
        if time.monotonic() > deadline:
            raise ClusterUnavailable(
                admin.cluster,
                f"checking state topic {missing[0]}: it exists, but was not shown within {_SHOWN_SECONDS:g} s",
                hint="a topic that was just made or deleted takes a moment; else see whether all brokers and the controller run",
            )
        time.sleep(_PAUSE_SECONDS)


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
