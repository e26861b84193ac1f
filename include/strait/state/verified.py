"""The verification of each topic of a link by audits. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from strait.state.audit_records import AuditVerdict, ResultKind, TopicResult
from strait.state.schema import PlannedTopic

_KINDS: tuple[ResultKind, ...] = get_args(ResultKind)

Results = Mapping[tuple[str, ResultKind], TopicResult]
"""The newest result of each source topic and kind."""


@dataclass(frozen=True)
class Verified:
    """The verification of one topic by audits.

    Attributes:
        verdict: of the newest audit.
        differences: records that differed in the newest audit that found some, unless a later one of all records found none.
        until_ms: all older records were compared, and none differs; None: not known.
    """

    verdict: AuditVerdict
    differences: int = 0
    until_ms: int | None = None

    @property
    def differs(self) -> bool:
        """Whether records differ that nothing on record explains."""
        return self.differences > 0 or self.verdict == "different"


def verified(planned: Iterable[PlannedTopic], results: Results) -> dict[str, Verified]:
    """Return source topic -> its verification; none for topics without an audit. Results of a topic that was deleted and
    recreated since, on either side, are ignored."""
    found = {}
    for topic in planned:
        known = [one for kind in _KINDS if (one := _of(topic, results.get((topic.source, kind))))]
        if not known:
            continue
        newest = max(known, key=lambda one: one.ended_at_ms)
        conclusive = conclusion(topic, results)
        differences = conclusive.differences if conclusive else 0
        until = [one.verified_until_ms for one in known if one.verified_until_ms is not None and not differences]
        found[topic.source] = Verified(newest.verdict, differences, max(until, default=None))
    return found


def conclusion(topic: PlannedTopic, results: Results) -> TopicResult | None:
    """Return the newest result that all records were compared, or that some differ."""
    return _of(topic, results.get((topic.source, "conclusive")))


def _of(topic: PlannedTopic, result: TopicResult | None) -> TopicResult | None:
    """Return a result if it is of the topics that the link replicates now."""
    if result is None:
        return None
    pairs = (topic.source_id, result.source_id), (topic.destination_id, result.destination_id)
    return result if all(now == then or not now or not then for now, then in pairs) else None
