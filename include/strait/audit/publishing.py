"""Records the results of a link's audits in its audits topic, and reads them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strait.audit.findings import NEUTRAL
from strait.config import naming
from strait.errors import StateError
from strait.kafka.admin import Admin
from strait.kafka.reading import read_topic
from strait.kafka.writing import write_record
from strait.state.audit_records import Audit, AuditTopic, AuditVerdict
from strait.state.codec import Unreadable, decode, encode
from strait.state.topics import ensure_kept_topic

_WORST: Sequence[AuditVerdict] = ("equal", "explained", "incomplete", "different")


def publish(properties: Mapping[str, str], cluster: str, link: str, whole: Mapping[str, Any]) -> None:
    """Record a certificate's result. Raises ClusterUnavailable, NotAuthorized, StateError."""
    topic = naming.audits_topic(link)
    ensure_kept_topic(Admin(properties, cluster), link, topic)
    record = record_of(link, whole)
    write_record(properties, cluster, topic, *encode(record), f"recording audit {record.id}")


def record_of(link: str, whole: Mapping[str, Any]) -> Audit:
    """Return the record of a certificate."""
    body, times = whole["body"], whole["times"]
    of_topic: dict[str, list[Mapping[str, Any]]] = {}
    for one in body["partitions"]:
        of_topic.setdefault(one["topic"], []).append(one)
    return Audit(
        id=times["id"],
        link=link,
        verdict=body["verdict"],
        sha256=whole["sha256"],
        relation=body["method"]["relation"],
        strong=body["method"]["strong"],
        sample=float(body["method"]["sample"]),
        records=body["records"],
        bytes=body["source_bytes"] + body["copy_bytes"],
        topics=tuple(_topic(name, parts, body["method"], times) for name, parts in sorted(of_topic.items())),
        planned_at_ms=times["planned_at_ms"],
        ended_at_ms=times["ended_at_ms"],
        strait_version=body["strait"],
    )


def _topic(
    name: str, parts: Sequence[Mapping[str, Any]], method: Mapping[str, Any], times: Mapping[str, Any]
) -> AuditTopic:
    verdict = max((_verdict(one["verdict"]) for one in parts), key=_WORST.index)
    whole = method["sample"] == 1 and method["since_ms"] is None and method["until_ms"] is None
    until = None
    if whole and verdict in ("equal", "explained"):
        until = min(one["newest_ms"] if one["tail"] else times["planned_at_ms"] for one in parts)
    return AuditTopic(
        topic=name,
        verdict=verdict,
        partitions=len(parts),
        records=sum(one["records"] for one in parts),
        differences=sum(
            it["records"]
            for one in parts
            for it in one["differences_by_kind"]
            if not it["explained"] and it["kind"] not in NEUTRAL
        ),
        verified_until_ms=until if until is not None and until >= 0 else None,
    )


def _verdict(text: str) -> AuditVerdict:
    return next((one for one in _WORST if one == text), "incomplete")


class AuditLog:
    """The audits of one link, read as they are recorded: each call reads only new ones.

    Raises (every method): ClusterUnavailable, NotAuthorized, StateError.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str, link: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._link = link
        self._topic = naming.audits_topic(link)
        self._next = 0
        self._newest: dict[str, AuditTopic] = {}

    def newest(self) -> Mapping[str, AuditTopic]:
        """Return the result of each topic after all its audits, as `with_results` combines them."""
        for audit in self.new():
            self._newest = with_results(self._newest, audit)
        return self._newest

    def new(self) -> Iterator[Audit]:
        """Yield the audits since the last call, in the order in which they ended. One that was recorded twice, since its
        driver died after that, occurs twice."""
        for message in read_topic(self._properties, self._cluster, self._topic, first=self._next):
            try:
                record = decode(Audit, message.key(), message.value() or b"")
            except Unreadable as error:
                raise StateError(
                    f"link {self._link}: reading {self._topic}: the record at offset {message.offset()}: {error}",
                    hint="a newer version of Strait may have written it",
                ) from None
            self._next = (message.offset() or 0) + 1
            yield record


def with_results(newest: Mapping[str, AuditTopic], audit: Audit) -> dict[str, AuditTopic]:
    """Return the result of each topic with those of a later audit. An audit that finds nothing in a sample replaces neither
    the differences nor ``verified_until_ms`` of earlier ones."""
    found = dict(newest)
    for topic in audit.topics:
        before = found.get(topic.topic)
        if before is None or topic.verified_until_ms is not None or topic.verdict == "different":
            found[topic.topic] = topic
        else:
            kept = {"verified_until_ms": before.verified_until_ms, "differences": before.differences}
            found[topic.topic] = topic.model_copy(update=kept)
    return found
