"""What differs between two plans, for people and programs. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from strait.model import TopicPartition
from strait.planning.plan import Draft, slots_by_partition
from strait.state.schema import Waiting


@dataclass(frozen=True, slots=True)
class Changes:
    """Partitions by what becomes of them, in order; ``waiting``: all that wait afterwards, not only what is new."""

    added: tuple[TopicPartition, ...]
    removed: tuple[TopicPartition, ...]
    moved: tuple[TopicPartition, ...]
    waiting: tuple[Waiting, ...]


def changes(before: Draft | None, after: Draft) -> Changes:
    """Compare by partition and slot."""
    old = {} if before is None else slots_by_partition(before.topics)
    new = slots_by_partition(after.topics)
    return Changes(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        moved=tuple(sorted(partition for partition in old.keys() & new.keys() if old[partition] != new[partition])),
        waiting=after.waiting,
    )


def spans(partitions: Iterable[TopicPartition]) -> Iterator[str]:
    """Partitions in few words, by topic: ``orders 0-5, 8``. ``partitions`` are in order."""
    for topic, of_topic in groupby(partitions, key=lambda partition: partition.topic):
        yield f"{topic} {ranges(partition.partition for partition in of_topic)}"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in few words: ``0-5, 8``. They are in order."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
