"""The record of an audit of one topic, with nothing remarkable in it."""

from strait.state.audit_records import Audit, AuditTopic, AuditVerdict


def audit_of(
    at: int, verdict: AuditVerdict, until: int | None, *, link: str = "l", topic: str = "t", differences: int = 0
) -> Audit:
    """Begun and ended ``at``; ``until``: when the newest verified record was written."""
    result = AuditTopic(
        topic=topic, verdict=verdict, partitions=1, records=5, differences=differences, verified_until_ms=until
    )
    return Audit(
        id=str(at),
        link=link,
        verdict=verdict,
        sha256="",
        relation="map",
        strong=False,
        sample=1.0,
        records=5,
        bytes=5,
        topics=(result,),
        planned_at_ms=at,
        ended_at_ms=at,
        strait_version="x",
    )
