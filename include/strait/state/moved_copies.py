"""Records that another tool replicated into a topic before a link took over, as `strait.producers` records them. Pure.

Their producers are in no registry, so only their offsets show that they are copies. Every link that reads from the
cluster reads this topic, even after the link that took over was deleted.
"""

from collections.abc import Collection, Iterable
from itertools import zip_longest
from typing import Literal

from pydantic import Field

from strait.state.record import Offset, Record


class MovedCopies(Record):
    """The moved-in copies of one topic, written by `strait offsets import` before it publishes the link's start."""

    v: Literal[1] = 1
    moved_in: str = Field(description="The destination topic.")
    topic_id: str
    link: str
    source: str = Field(description="Kafka's id of the cluster that they were copied from.")
    ends: tuple[Offset, ...] = Field(description="By partition: all records before this offset are copies; 0: none.")

    def merged(self, others: Iterable["MovedCopies"]) -> "MovedCopies":
        """Return the entry together with earlier imports of this link: each partition has its highest end."""
        ends = self.ends
        for other in others:
            if other.model_copy(update={"ends": self.ends}) == self:
                ends = tuple(map(max, zip_longest(ends, other.ends, fillvalue=0)))
        return self.model_copy(update={"ends": ends})


def end_of_copies(
    known: Iterable[MovedCopies], topic: str, topic_id: str, partition: int, left_out: Collection[str] | None
) -> int:
    """Return the offset before which a partition holds moved-in copies that a link does not replicate; 0 if it holds
    none.

    Args:
        topic_id: as it is now; "" from brokers without IDs.
        left_out: Kafka's IDs of the clusters from which copied records are not replicated; None: those of every cluster.
    """
    return max(
        (
            one.ends[partition]
            for one in known
            if one.moved_in == topic
            and (not topic_id or one.topic_id in ("", topic_id))
            and partition < len(one.ends)
            and (left_out is None or one.source in left_out)
        ),
        default=0,
    )


def clusters_left_out(copies: str, source_id: str, destination_id: str) -> Collection[str] | None:
    """Return Kafka's IDs of the clusters from which copied records are not replicated; None: those of every cluster.

    Args:
        copies: the policy of the topic.
        source_id, destination_id: of the link's clusters. Within one cluster, every link has its source.
    """
    if copies == "skip":
        return None
    return frozenset() if copies == "all" else frozenset({destination_id}) - {source_id}
