"""What a run of `make bench` found, in the form of its JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any, Literal

from mm2.drain import DrainFigures
from mm2.latency import LatencyFigures
from mm2.machine import Machine
from mm2.rounds import middle

Content = Literal["equal", "not compared"]

NO_COPIER = "none"
"""The consumer reads the source itself: the floor under every copier's latency."""


@dataclass(frozen=True, slots=True)
class RelayResult:
    """The limit: processes that only move bytes."""

    bytes: int
    seconds: float
    cpu_seconds: float

    @property
    def cpu_seconds_per_gb(self) -> float:
        return self.cpu_seconds / self.bytes * 1e9

    def __add__(self, other: "RelayResult") -> "RelayResult":
        return RelayResult(self.bytes + other.bytes, self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


@dataclass(frozen=True, slots=True)
class DrainResult:
    """One copier, one full topic. Batch sizes are means on the wire: what it read, what it wrote. ``relays``: what as
    many relays as it has slots needed, half of it just before and half just after; None where that was not asked for.

    ``rounds``: where it was done several times, each of them; then every figure here is the median of theirs, and
    peaks of memory are the highest.
    """

    workload: str
    copier: str
    figures: DrainFigures
    source_batch_bytes: float
    destination_batch_bytes: float
    content: Content
    tree_peak_pss_bytes: int
    slot_peak_pss_bytes: int | None
    relays: RelayResult | None = None
    rounds: tuple["DrainResult", ...] = ()

    @classmethod
    def middle(cls, rounds: Sequence["DrainResult"]) -> "DrainResult":
        """One result for several rounds of the same."""
        costs = sorted((found.relays for found in rounds if found.relays), key=lambda relay: relay.cpu_seconds_per_gb)
        peaks = [found.slot_peak_pss_bytes for found in rounds if found.slot_peak_pss_bytes is not None]
        return replace(
            rounds[0],
            figures=middle([found.figures for found in rounds]),
            destination_batch_bytes=median(found.destination_batch_bytes for found in rounds),
            tree_peak_pss_bytes=max(found.tree_peak_pss_bytes for found in rounds),
            slot_peak_pss_bytes=max(peaks, default=None),
            relays=costs[len(costs) // 2] if costs else None,
            rounds=tuple(rounds),
        )

    @property
    def slot_cpu_against_relays(self) -> float | None:
        """The slots' CPU for each byte against that of the relays beside them: the median of the rounds' ratios. Not
        the application's: copying begins before Spark, whose start is one price for a topic of any size."""
        ratios = [
            found.figures.slot_cpu_seconds_per_gb / found.relays.cpu_seconds_per_gb
            for found in self.rounds or (self,)
            if found.relays
        ]
        return median(ratios) if ratios else None


@dataclass(frozen=True, slots=True)
class LatencyResult:
    """One copier, or NO_COPIER, and one trickle. ``rounds``: see `DrainResult`."""

    workload: str
    copier: str
    figures: LatencyFigures
    cpu_cores: float | None
    rounds: tuple["LatencyResult", ...] = ()

    @classmethod
    def middle(cls, rounds: Sequence["LatencyResult"]) -> "LatencyResult":
        """One result for several rounds of the same."""
        cores = [found.cpu_cores for found in rounds if found.cpu_cores is not None]
        return replace(
            rounds[0],
            figures=middle([found.figures for found in rounds]),
            cpu_cores=median(cores) if cores else None,
            rounds=tuple(rounds),
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """A number to hold. ``met`` None: this run did not measure it, or it is only shown."""

    name: str
    limit: str
    measured: float | None
    met: bool | None


@dataclass(slots=True)
class Results:
    """A whole run."""

    date: str
    commit: str
    machine: Machine
    versions: dict[str, str]
    parameters: dict[str, Any]
    relay: RelayResult | None = None
    drains: list[DrainResult] = field(default_factory=list)
    latencies: list[LatencyResult] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)

    def drain(self, workload: str, copier: str) -> DrainResult | None:
        return next((r for r in self.drains if (r.workload, r.copier) == (workload, copier)), None)

    def latency(self, workload: str, copier: str) -> LatencyResult | None:
        return next((r for r in self.latencies if (r.workload, r.copier) == (workload, copier)), None)

    def as_json(self) -> dict[str, Any]:
        """Names are those of the fields; ``v`` grows when one changes its meaning."""
        document = {"v": 2, **asdict(self)}
        if self.relay is not None:
            document["relay"]["cpu_seconds_per_gb"] = self.relay.cpu_seconds_per_gb
        for drain, made in zip(self.drains, document["drains"], strict=True):
            if drain.relays is not None:
                made["relays"]["cpu_seconds_per_gb"] = drain.relays.cpu_seconds_per_gb
        return document
