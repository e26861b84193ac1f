"""The result of an audit for one topic, with nothing remarkable in it."""

from strait.state.audit_records import AuditVerdict, TopicResult


def result_of(
    at: int,
    verdict: AuditVerdict,
    until: int | None,
    *,
    topic: str = "t",
    differences: int = 0,
    ids: tuple[str, str] = ("", ""),
) -> TopicResult:
    """Ended ``at``; ``until``: when the newest verified record was written; ``ids``: of the topics on both sides."""
    return TopicResult(
        topic=topic,
        source_id=ids[0],
        destination_id=ids[1],
        kind="partial" if until is None and verdict != "different" else "conclusive",
        audit=str(at),
        verdict=verdict,
        partitions=1,
        records=5,
        differences=differences,
        verified_until_ms=until,
        ended_at_ms=at,
    )
