"""Records the results of a link's audits in its state topics, and reads them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strait.audit.findings import NEUTRAL
from strait.config import naming
from strait.config.cluster import Cluster
from strait.errors import StateError
from strait.kafka.admin import Admin
from strait.kafka.reading import read_topic
from strait.kafka.writing import write_record, write_records
from strait.state.audit_records import Audit, AuditVerdict, ResultKind, TopicResult
from strait.state.codec import Unreadable, Value, decode, encode
from strait.state.topics import ensure_compacted_topic, ensure_kept_topic
from strait.state.verified import Results

_WORST: Sequence[AuditVerdict] = ("equal", "explained", "incomplete", "different")
_AT_ONCE = 10_000


def require_topics(cluster: Cluster, link: str) -> None:
    """Create the topics for results if they are missing, before hours of work. Raises as `publish`."""
    admin = Admin(*cluster)
    ensure_compacted_topic(admin, link, naming.verified_topic(link))
    ensure_kept_topic(admin, link, naming.audits_topic(link))


def publish(cluster: Cluster, link: str, whole: Mapping[str, Any]) -> None:
    """Record a certificate's results. Raises ClusterUnavailable, NotAuthorized, StateError."""
    admin, record, topic = Admin(*cluster), record_of(link, whole), naming.audits_topic(link)
    publish_results(admin, cluster, link, results_of(whole))
    ensure_kept_topic(admin, link, topic)
    write_record(*cluster, topic, *encode(record), f"recording audit {record.id}")


def publish_results(admin: Admin, cluster: Cluster, link: str, results: Sequence[TopicResult]) -> None:
    """Record the results of topics. Raises as `publish`."""
    topic = naming.verified_topic(link)
    ensure_compacted_topic(admin, link, topic)
    for at in range(0, len(results), _AT_ONCE):
        records = [encode(one) for one in results[at : at + _AT_ONCE]]
        write_records(*cluster, topic, records, f"recording results of audits of link {link}")


def record_of(link: str, whole: Mapping[str, Any]) -> Audit:
    """Return the record of a certificate."""
    body, times = whole["body"], whole["times"]
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
        topics=len({one["topic"] for one in body["partitions"]}),
        planned_at_ms=times["planned_at_ms"],
        ended_at_ms=times["ended_at_ms"],
        strait_version=body["strait"],
    )


def results_of(whole: Mapping[str, Any]) -> list[TopicResult]:
    """Return the result of each topic of a certificate that is replicated."""
    body = whole["body"]
    ids = {one["topic"]: (one["source_id"], one["copy_id"]) for one in body["topics"]}
    of_topic: dict[str, list[Mapping[str, Any]]] = {}
    for one in body["partitions"]:
        if not one["copy_topic"]:
            continue
        of_topic.setdefault(one["topic"], []).append(one)
    return [_result(name, ids[name], parts, whole) for name, parts in sorted(of_topic.items())]


def _result(
    name: str, ids: tuple[str, str], parts: Sequence[Mapping[str, Any]], whole: Mapping[str, Any]
) -> TopicResult:
    method, times = whole["body"]["method"], whole["times"]
    verdict = max((_verdict(one["verdict"]) for one in parts), key=_WORST.index)
    until = None
    if (
        method["sample"] == 1
        and method["since_ms"] is None
        and method["until_ms"] is None
        and verdict in ("equal", "explained")
    ):
        until = _verified_until(parts, method["relation"], times["planned_at_ms"])
    kind: ResultKind = "conclusive" if until is not None or verdict == "different" else "partial"
    if kind == "conclusive" and verdict != "different" and method["relation"] == "ledger":
        kind = "ledger"
    return TopicResult(
        topic=name,
        source_id=ids[0],
        destination_id=ids[1],
        kind=kind,
        audit=times["id"],
        verdict=verdict,
        partitions=len(parts),
        records=sum(one["records"] for one in parts),
        differences=sum(
            it["records"]
            for one in parts
            for it in one["differences_by_kind"]
            if not it["explained"] and it["kind"] not in NEUTRAL
        ),
        verified_until_ms=until,
        verified_to=tuple(one["end"] for one in parts) if kind == "conclusive" and until is not None else (),
        ended_at_ms=times["ended_at_ms"],
    )


def _verified_until(parts: Sequence[Mapping[str, Any]], relation: str, planned_at_ms: int) -> int | None:
    """Return the time up to which all records were compared; None: unknown. Timestamps may be of the future."""
    if (
        relation == "ledger"
    ):  # the source was not asked, so it may have older records than the newest one that was checked
        times = [one["newest_ms"] for one in parts if one["records"]]
    else:
        times = [one["newest_ms"] if one["tail"] else planned_at_ms for one in parts]
    until = min([planned_at_ms, *times]) if times else -1
    return until if until >= 0 else None


def _verdict(text: str) -> AuditVerdict:
    return next((one for one in _WORST if one == text), "incomplete")


def audits(cluster: Cluster, link: str) -> list[Audit]:
    """Return the audits of a link, in the order in which they ended. Raises ClusterUnavailable, NotAuthorized, StateError."""
    found = {one.id: one for one, _ in _read(Audit, cluster, link, naming.audits_topic(link), 0)}
    return list(found.values())  # one whose driver died after recording it was recorded twice


class ResultLog:
    """The newest results of a link's topics, read as they are recorded: each call reads only new ones.

    Raises (every method): ClusterUnavailable, NotAuthorized, StateError.
    """

    def __init__(self, cluster: Cluster, link: str) -> None:
        self._cluster = cluster
        self._link = link
        self._next = 0
        self._newest: dict[tuple[str, ResultKind], TopicResult] = {}

    def newest(self) -> Results:
        """Return the newest result of each topic and kind."""
        topic = naming.verified_topic(self._link)
        for result, offset in _read(TopicResult, self._cluster, self._link, topic, self._next):
            self._newest[result.topic, result.kind] = result
            self._next = offset + 1
        return self._newest


def _read(kind: type[Value], cluster: Cluster, link: str, topic: str, first: int) -> Iterator[tuple[Value, int]]:
    """Yield the topic's records from this offset on, with their offsets."""
    for message in read_topic(*cluster, topic, first=first):
        offset = message.offset() or 0
        try:
            record = decode(kind, message.key(), message.value() or b"")
        except Unreadable as error:
            raise StateError(
                f"link {link}: reading {topic}: the record at offset {offset}: {error}",
                hint="a newer version of Strait may have written it",
            ) from None
        yield record, offset
