"""A source topic and its destination topic, as both clusters describe them. Pure."""

from dataclasses import dataclass

from strait.model import TopicFacts
from strait.planning.topics.policies import stamps


@dataclass(frozen=True, slots=True)
class Pair:
    """A source topic and its destination topic; both exist."""

    source: TopicFacts
    destination: TopicFacts

    @property
    def fit(self) -> int:
        """Number of partitions, counted from partition 0, that can be replicated."""
        if self.source.unknown or self.destination.unknown or self.destination_stamps:
            return 0
        return min(self.source.partitions, self.destination.partitions)

    @property
    def usable(self) -> bool:
        """Whether both clusters report everything that a change to the topic depends on."""
        return not self.source.denied and not self.destination.denied

    @property
    def destination_stamps(self) -> bool:
        """Whether the destination would replace the timestamps of records with its own."""
        return stamps(self.destination)
