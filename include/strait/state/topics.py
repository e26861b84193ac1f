"""The state topics of a link: creating them, and rejecting existing ones that would lose state."""

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from strait.config import naming
from strait.errors import ClusterError, ClusterUnavailable, NotAuthorized, StateError
from strait.kafka.admin import Admin, ConfigChange, NewTopic
from strait.model import TopicFacts, TopicPartition
from strait.state import segments
from strait.state.safety import MIN_IN_SYNC, UNCLEAN, min_in_sync
from strait.state.writer import QUARANTINED_BYTES, RECORD_BYTES
from strait.text import plural
from strait.waiting import tries

log = logging.getLogger(__name__)

_DAY_MS = 24 * 60 * 60 * 1000
_STAMPED = {"message.timestamp.type": "LogAppendTime"}  # else records of a host whose clock is 1 h ahead are rejected
_COMPACTED = {"cleanup.policy": "compact", "max.message.bytes": str(RECORD_BYTES)} | _STAMPED
_DELETED = {"cleanup.policy": "delete"} | _STAMPED
_REPORTS = _DELETED | {
    "retention.ms": str(_DAY_MS),
    segments.RETENTION_BYTES: segments.REPORTS[segments.RETENTION_BYTES],
    "max.message.bytes": str(RECORD_BYTES),
}
_FOREVER = "-1"
_KEPT_FOREVER = _DELETED | {"retention.ms": _FOREVER, "retention.bytes": _FOREVER}
_LEDGER = _DELETED | {
    "retention.ms": str(3 * _DAY_MS),
    "max.message.bytes": str(RECORD_BYTES),
}
_SHOWN_SECONDS = 10.0
_PAUSE_SECONDS = 0.1
_CHECKED = ("cleanup.policy", "max.message.bytes")


def ensure_state_topics(admin: Admin, link: str, replication_factor: int | None) -> list[str]:
    """Create missing state topics on the destination; return the names created here.

    Args:
        replication_factor: None: the brokers' default for a new link; that of the link's other state topics if some
            exist.

    Raises:
        StateError: one of them exists in a form that would lose state: not compacted, or with several partitions.
        ClusterUnavailable: one of them exists, and its brokers do not describe it.
    """
    reports = NewTopic(naming.reports_topic(link), 1, replication_factor, _REPORTS)
    created = _ensure(admin, [reports])
    replicas = replication_factor or _look_at(admin, {reports.topic})[reports.topic].replicas or None
    created += _ensure(admin, [_kept_safe(topic, replicas) for topic in _state_topics(link)])
    return sorted(created + _ensure_history(admin, NewTopic(naming.history_topic(link), 1, replicas, _COMPACTED)))


def ensure_producers_topic(admin: Admin, link: str, replication_factor: int | None) -> None:
    """Create the topic that all links into the cluster share, if it is missing. Raises StateError, as above.

    Args:
        link: its state topics' replication factor is the default.
    """
    replicas = replication_factor or _replicas_of(admin, link)
    _ensure(admin, [_kept_safe(NewTopic(naming.PRODUCERS_TOPIC, 1, None, _COMPACTED), replicas)])


def ensure_kept_topic(admin: Admin, link: str, name: str) -> None:
    """Create a topic that retains its records forever, such as that of the link's failovers or audits, if it is missing.
    Raises StateError, as above."""
    topic = NewTopic(name, 1, None, _KEPT_FOREVER | {"max.message.bytes": str(RECORD_BYTES)})
    _ensure(admin, [_kept_safe(topic, _replicas_of(admin, link))])


def ensure_compacted_topic(admin: Admin, link: str, name: str) -> None:
    """Create a compacted state topic that not every link has, if it is missing. Raises StateError, as above."""
    _ensure(admin, [NewTopic(name, 1, _replicas_of(admin, link), _COMPACTED)])


def _ensure_history(admin: Admin, topic: NewTopic) -> list[str]:
    """Create the history topic if permitted: only charts need it, and older versions' principals may not create it."""
    try:
        return _ensure(admin, [topic])
    except NotAuthorized as error:
        log.warning("charts of the link are not kept: %s", error)
        return []


def _replicas_of(admin: Admin, link: str) -> int | None:
    """Return the replication factor of the link's state topics; None: unknown."""
    like = naming.reports_topic(link)
    shown = admin.observe(like.__eq__).topics
    return shown[like].replicas or None if like in shown else None


def _kept_safe(topic: NewTopic, replicas: int | None) -> NewTopic:
    """Return the topic with the configurations that make it durable. `min.insync.replicas` depends on the replication
    factor: if that is unknown, the brokers' own minimum applies."""
    minimum = {} if replicas is None else {MIN_IN_SYNC: str(min_in_sync(replicas))}
    return replace(topic, replication_factor=replicas, configs={**topic.configs, UNCLEAN: "false", **minimum})


def _ensure(admin: Admin, topics: Sequence[NewTopic]) -> list[str]:
    wanted = {topic.topic: topic for topic in topics}
    created = _create(admin, topics)
    facts = _look_at(admin, wanted.keys() - set(created))
    for name, topic in wanted.items():
        if name not in facts or facts[name].denied or _mended(admin, topic, facts[name]):
            continue  # created or corrected here, or not permitted to be described
        if facts[name].partitions != topic.partitions:
            raise _unfit(
                admin.cluster,
                name,
                f"has {plural(facts[name].partitions, 'partition')}, expected 1",
                "recreate it with one partition if the link has never copied; otherwise use a new link name",
            )
        policy, wanted_policy = facts[name].configs.get("cleanup.policy", ""), topic.configs["cleanup.policy"]
        if policy != wanted_policy:
            raise _unfit(
                admin.cluster,
                name,
                f"has cleanup.policy={policy}, expected {wanted_policy}",
                f"set cleanup.policy={wanted_policy} on the topic; do not delete it, it holds the link's state",
            )
    return created


def _mended(admin: Admin, topic: NewTopic, found: TopicFacts) -> bool:
    """Correct the form of an empty topic, if needed and permitted; return whether it was corrected.

    A broker auto-creates a topic in its default form if a client requests a missing one. A topic that has ever held a
    record stays unchanged.
    """
    fits = found.configs.get("cleanup.policy") == topic.configs["cleanup.policy"]
    if fits and found.partitions == topic.partitions:
        return False
    try:
        if any(
            admin.offsets([TopicPartition(topic.topic, number) for number in range(found.partitions)], "end").values()
        ):
            return False
        if found.partitions == topic.partitions:
            admin.alter_each({topic.topic: ConfigChange(topic.configs)}).or_raise()
        else:
            admin.delete_each([topic.topic]).or_raise()
            _create_after(admin, topic)
    except NotAuthorized as error:
        log.warning("state topic %s is empty and of the wrong form: %s", topic.topic, error)
        return False
    log.warning("state topic %s was empty and of the wrong form: corrected", topic.topic)
    return True


def _create_after(admin: Admin, topic: NewTopic) -> None:
    """Create the topic again; retry for 10 s, since brokers remove a deleted topic with a delay."""
    for _ in tries(_SHOWN_SECONDS, _PAUSE_SECONDS):
        if _create(admin, [topic]):
            return
    raise ClusterUnavailable(admin.cluster, f"creating state topic {topic.topic} again: its predecessor remains")


def _create(admin: Admin, topics: Sequence[NewTopic]) -> list[str]:
    """Create topics with small segments; with the cluster's own if it does not permit topics to configure segments."""
    try:
        return admin.create([replace(topic, configs={**topic.configs, **_segments(topic)}) for topic in topics])
    except (ClusterUnavailable, NotAuthorized):
        raise
    except ClusterError:
        return admin.create(topics)


def _segments(topic: NewTopic) -> Mapping[str, str]:
    if topic.configs["cleanup.policy"] == "compact":
        return segments.COMPACTED
    return segments.EXPIRING if topic.configs["retention.ms"] != _FOREVER else {}


def _look_at(admin: Admin, names: Set[str]) -> dict[str, TopicFacts]:
    """Return the cluster's description of existing topics. Retries for 10 s, since a topic that was just created may
    not be listed yet."""
    for _ in tries(_SHOWN_SECONDS, _PAUSE_SECONDS):
        topics = admin.observe(names.__contains__, _CHECKED).topics if names else {}
        shown = {
            name: topics[name] for name in names if name in topics and (topics[name].configs or topics[name].denied)
        }
        missing = sorted(names - shown.keys())
        if not missing:
            return shown
    raise ClusterUnavailable(
        admin.cluster,
        f"checking state topic {missing[0]}: it exists, but was not shown within {_SHOWN_SECONDS:g} s",
        hint="a topic that was just made or deleted takes a moment, and brokers hide it from a principal without DESCRIBE on it; else "
        "see whether all brokers and the controller run",
    )


def _state_topics(link: str) -> list[NewTopic]:
    """Return the state topics that must not lose a record."""
    return [
        NewTopic(naming.plan_topic(link), 1, None, _COMPACTED),
        NewTopic(naming.map_topic(link), 1, None, _COMPACTED),
        NewTopic(naming.ledger_topic(link), 1, None, _LEDGER),
        NewTopic(naming.losses_topic(link), 1, None, _KEPT_FOREVER),
        NewTopic(naming.quarantine_topic(link), 1, None, _KEPT_FOREVER | {"max.message.bytes": str(QUARANTINED_BYTES)}),
    ]


def _unfit(cluster: str, topic: str, what: str, hint: str) -> StateError:
    return StateError(
        f"cluster {cluster}: state topic {topic} {what}; continuing could lose the link's state", hint=hint
    )
