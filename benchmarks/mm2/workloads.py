"""What is copied in a benchmark: records of which size, in batches of which size, how many of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from strait.config.validation import did_you_mean
from strait.errors import ConfigError

PARTITIONS = 6
KEY_BYTES = 8
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Drain:
    """A topic that is full before the copier starts; what counts is how fast it is emptied into the destination.

    ``batch_bytes`` is a batch's size on the wire, after compression: what Kafka's Java producer makes of `batch.size`.
    librdkafka counts before compression, so ``buffer_bytes`` is what it must gather to get there. ``batch_bytes`` None:
    each record is a batch of its own. ``slots`` are how many Strait is given.
    """

    name: str
    description: str
    records: int
    value_bytes: int
    batch_bytes: int | None
    buffer_bytes: int
    compression: Literal["none", "lz4"]
    slots: int = 1

    def scaled(self, scale: float) -> "Drain":
        """The same with ``scale`` times as many records."""
        return replace(self, records=max(PARTITIONS, round(self.records * scale)))


@dataclass(frozen=True, slots=True)
class Trickle:
    """A steady trickle through an idle copier; what counts is how long each record is under way."""

    name: str
    description: str
    records_per_second: int
    value_bytes: int
    warm_up_seconds: float
    seconds: float

    def scaled(self, scale: float) -> "Trickle":
        """The same for ``scale`` times as long, at least a second."""
        return replace(
            self,
            warm_up_seconds=max(1.0, self.warm_up_seconds * scale),
            seconds=max(1.0, self.seconds * scale),
        )


Workload = Drain | Trickle

# Sized so that MirrorMaker 2 takes 20 to 60 seconds on two cores, and Strait a few: of less, its start would be
# measured.
WORKLOADS: tuple[Workload, ...] = (
    Drain("1kib-lz4", "1 KiB records, 128 KiB lz4 batches", 4_800_000, 1024, 128 * _KIB, 420 * _KIB, "lz4"),
    Drain("100b-lz4", "100 B records, 128 KiB lz4 batches", 24_000_000, 100, 128 * _KIB, 320 * _KIB, "lz4"),
    Drain("1kib-defaults", "1 KiB records, 16 KiB batches", 1_600_000, 1024, 16 * _KIB, 16 * _KIB, "none"),
    Drain("100b-defaults", "100 B records, 16 KiB batches", 8_000_000, 100, 16 * _KIB, 16 * _KIB, "none"),
    Drain("single", "200 B records, one batch each", 1_200_000, 200, None, 1, "none", slots=2),
    Trickle("latency", "200 B records, 1,000 a second", 1000, 200, 30.0, 30.0),
)


def choose(names: Sequence[str], latency_seconds: float | None = None) -> tuple[Workload, ...]:
    """The workloads of these names in their usual order; all of them when no name is given. ``latency_seconds``: how
    long latency is measured, if not as long as usual. Raises ConfigError."""
    known = [workload.name for workload in WORKLOADS]
    problems = [f"no workload is called {name!r}{did_you_mean(name, known)}" for name in names if name not in known]
    if problems:
        raise ConfigError("make bench", problems, hint=f"workloads: {', '.join(known)}")
    chosen = (workload for workload in WORKLOADS if not names or workload.name in names)
    if latency_seconds is None:
        return tuple(chosen)
    return tuple(replace(each, seconds=latency_seconds) if isinstance(each, Trickle) else each for each in chosen)
