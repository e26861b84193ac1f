"""A source topic and its copy, as both clusters describe them. Pure."""

from dataclasses import dataclass

from strait.model import TopicFacts
from strait.planning.topics.policies import stamps


@dataclass(frozen=True, slots=True)
class Pair:
    """A source topic and its destination, both there."""

    source: TopicFacts
    destination: TopicFacts

    @property
    def fit(self) -> int:
        """So many partitions, the first ones, can be copied."""
        if self.source.unknown or self.destination.unknown or self.destination_stamps:
            return 0
        return min(self.source.partitions, self.destination.partitions)

    @property
    def usable(self) -> bool:
        """Both clusters tell all that has to be known to change anything about it."""
        return not self.source.denied and not self.destination.denied

    @property
    def destination_stamps(self) -> bool:
        """The destination would put its own timestamps on records."""
        return stamps(self.destination)
