"""Segments and cleaning of the state topics, so that they stay as small as what they hold. Pure.

A broker compacts or deletes no segment that is still written to, which by default takes a week or a GiB. A link writes
far less in a week, and every reader would read all of it.
"""

from collections.abc import Mapping

from strait.config import naming
from strait.model import TopicFacts

_MINUTE_MS = 60 * 1000
_HOUR_MS = 60 * _MINUTE_MS
_SEGMENT_BYTES = 64 << 20  # the least that some hosted clusters accept is 50 MiB

DELETE_RETENTION_MS = _HOUR_MS
"""How long a tombstone stays in a compacted topic after the record under its key is removed. A reader that looks again
later than that would keep the record, so it begins again (`strait.state.reader`)."""

COMPACTED: Mapping[str, str] = {
    "segment.ms": str(10 * _MINUTE_MS),
    "segment.bytes": str(_SEGMENT_BYTES),
    "min.cleanable.dirty.ratio": "0.1",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": str(6 * _HOUR_MS),  # however little is superseded; hosted clusters accept no less
    "delete.retention.ms": str(DELETE_RETENTION_MS),
}
"""Of a compacted topic: superseded records last some minutes in it."""

RETENTION_BYTES = "retention.bytes"

EXPIRING: Mapping[str, str] = {"segment.ms": str(_HOUR_MS), "segment.bytes": str(_SEGMENT_BYTES)}
"""Of a topic whose records expire: they stay for an hour longer at most."""

REPORTS: Mapping[str, str] = {**EXPIRING, RETENTION_BYTES: str(_SEGMENT_BYTES)}
"""Of the reports: while much is written they do not stay so long, since it repeats them. What a slot has said last stays
for as long as nothing else is said."""

SEGMENT_CONFIGS = (*COMPACTED, RETENTION_BYTES)


def segments_of(link: str) -> Mapping[str, Mapping[str, str]]:
    """State topic -> the configurations that keep it small."""
    return {
        naming.plan_topic(link): COMPACTED,
        naming.map_topic(link): COMPACTED,
        naming.history_topic(link): COMPACTED,
        naming.PRODUCERS_TOPIC: COMPACTED,
        naming.reports_topic(link): REPORTS,
        naming.ledger_topic(link): EXPIRING,
    }


def smaller_configs(link: str, topic: TopicFacts) -> Mapping[str, str]:
    """Configurations that a state topic lacks. ``topic.configs`` holds `SEGMENT_CONFIGS`: of each, less is better, and -1
    is no limit."""
    wanted = segments_of(link).get(topic.topic, {})
    return {
        name: value
        for name, value in wanted.items()
        if topic.configs.get(name) and not 0 <= float(topic.configs[name]) <= float(value)
    }
