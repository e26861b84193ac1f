"""Log segments and cleaning of the state topics, so that they stay as small as their live records. Pure.

A broker neither compacts nor deletes the active segment, which by default is rolled after a week or 1 GiB. A link
writes far less in a week, and every reader would read all of it.
"""

from collections.abc import Mapping

from strait.config import naming
from strait.model import TopicFacts

_MINUTE_MS = 60 * 1000
_HOUR_MS = 60 * _MINUTE_MS
_SEGMENT_BYTES = 64 << 20  # the least that some hosted clusters accept is 50 MiB

DELETE_RETENTION_MS = _HOUR_MS
"""How long a tombstone stays in a compacted topic after the record under its key is removed. A reader that polls again
later than that would keep the record, so it starts from scratch (`strait.state.reader`)."""

COMPACTED: Mapping[str, str] = {
    "segment.ms": str(10 * _MINUTE_MS),
    "segment.bytes": str(_SEGMENT_BYTES),
    "min.cleanable.dirty.ratio": "0.1",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": str(6 * _HOUR_MS),  # even if little is superseded; hosted clusters accept no less
    "delete.retention.ms": str(DELETE_RETENTION_MS),
}
"""Configurations of a compacted topic: superseded records stay in it for some minutes."""

RETENTION_BYTES = "retention.bytes"

EXPIRING: Mapping[str, str] = {"segment.ms": str(_HOUR_MS), "segment.bytes": str(_SEGMENT_BYTES)}
"""Configurations of a topic whose records expire: they stay for one hour longer at most."""

REPORTS: Mapping[str, str] = {**EXPIRING, RETENTION_BYTES: str(_SEGMENT_BYTES)}
"""Configurations of the reports topic: at a high write rate reports are deleted earlier, since later ones repeat them.
A slot's last report is not deleted for its size while nothing else is written."""

SEGMENT_CONFIGS = (*COMPACTED, RETENTION_BYTES)


def segments_of(link: str) -> Mapping[str, Mapping[str, str]]:
    """Return state topic -> the configurations that keep it small."""
    return {
        naming.plan_topic(link): COMPACTED,
        naming.map_topic(link): COMPACTED,
        naming.history_topic(link): COMPACTED,
        naming.verified_topic(link): COMPACTED,
        naming.PRODUCERS_TOPIC: COMPACTED,
        naming.reports_topic(link): REPORTS,
        naming.ledger_topic(link): EXPIRING,
    }


def smaller_configs(link: str, topic: TopicFacts) -> Mapping[str, str]:
    """Return the configurations that a state topic lacks. ``topic.configs`` holds `SEGMENT_CONFIGS`: of each, a lower
    value is better, and -1 means unlimited."""
    wanted = segments_of(link).get(topic.topic, {})
    return {
        name: value
        for name, value in wanted.items()
        if topic.configs.get(name) and not 0 <= float(topic.configs[name]) <= float(value)
    }
