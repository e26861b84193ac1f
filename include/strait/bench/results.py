"""What a run of `strait bench` found, in the form of its JSON."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from strait.bench.drain import DrainFigures
from strait.bench.latency import LatencyFigures
from strait.bench.machine import Machine

Content = Literal["equal", "not compared"]


@dataclass(frozen=True, slots=True)
class DrainResult:
    """One copier, one full topic. Batch sizes are means on the wire: what it read, what it wrote."""

    workload: str
    copier: str
    figures: DrainFigures
    source_batch_bytes: float
    destination_batch_bytes: float
    content: Content
    tree_peak_pss_bytes: int
    slot_peak_pss_bytes: int | None


@dataclass(frozen=True, slots=True)
class LatencyResult:
    """One copier, one trickle. ``copier`` "none": the consumer reads the source itself, which is the floor."""

    workload: str
    copier: str
    figures: LatencyFigures
    cpu_cores: float | None


@dataclass(frozen=True, slots=True)
class RelayResult:
    """The limit: a process that only moves bytes."""

    bytes: int
    seconds: float
    cpu_seconds: float

    @property
    def cpu_seconds_per_gb(self) -> float:
        return self.cpu_seconds / self.bytes * 1e9


@dataclass(frozen=True, slots=True)
class Bound:
    """A number to hold. ``met`` None: this run did not measure it."""

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
        document = {"v": 1, **asdict(self)}
        if self.relay is not None:
            document["relay"]["cpu_seconds_per_gb"] = self.relay.cpu_seconds_per_gb
        return document
