"""The parts of a record that its copy has unchanged, by the policy of its topic. Pure."""

from typing import NamedTuple, Self

from strait.state.schema import TopicPolicy
from strait.wire.records import Record


class UnchangedParts(NamedTuple):
    """Whether the replicated record has the same part."""

    time: bool
    key: bool = True
    value: bool = True
    headers: bool = True

    @classmethod
    def of(cls, policy: TopicPolicy) -> Self:
        """Return the parts that the copies of a topic's records have unchanged."""
        time, transform = not policy.destination_append_time, policy.transform
        if transform is None:
            return cls(time)
        return cls(time, not transform.key, transform.keeps_value, transform.headers == "keep")

    def content(self, record: Record) -> tuple[object, ...]:
        """Return these parts of a record."""
        parts = (record.timestamp_ms, record.key, record.value, tuple(record.headers))
        return tuple(part for part, is_unchanged in zip(parts, self, strict=True) if is_unchanged)
