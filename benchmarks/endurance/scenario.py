"""What a scenario is, and what it finds: measured values, each with the bound that it is held to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a run is. Each scenario has sizes of its own; options replace them.

    Attributes:
        weeks: how long the link has been copying, in compressed time.
        partitions: of the link, or of each broker or topic where a scenario says so.
        per_topic: partitions of one topic.
        slots: of the link.
        report_minutes: how long slots have been reporting, in compressed time.
        seconds: how long something is observed, in real time.
        megabytes: how much is written.
        round_trip_ms: to the far cluster.
        turns: how often a command is measured, or an audit made.
        seed: of all that is drawn.
    """

    weeks: float = 0.0
    partitions: int = 100
    per_topic: int = 50
    slots: int = 1
    report_minutes: int = 0
    seconds: float = 30.0
    megabytes: float = 100
    round_trip_ms: float = 100.0
    turns: int = 3
    seed: int = 1

    @property
    def minutes(self) -> int:
        """The weeks, in minutes."""
        return round(self.weeks * 7 * 24 * 60)

    def topics(self, prefix: str) -> dict[str, int]:
        """Topic -> partitions; all partitions of the link in topics of equal size, the last one smaller."""
        count, rest = divmod(self.partitions, self.per_topic)
        found = {f"{prefix}.{number:04}": self.per_topic for number in range(count)}
        return found | ({f"{prefix}.{count:04}": rest} if rest else {})


class Finding(NamedTuple):
    """One measured value. ``bound``: "at most" (or with ``at_least``) this; None: shown, and held to nothing."""

    what: str
    value: float
    unit: str
    bound: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool:
        if self.bound is None:
            return True
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def row(self) -> tuple[str, str, str, str]:
        """For a table: what, bound, measured value, verdict."""
        if self.bound is None:
            return self.what, "", _shown(self.value, self.unit), ""
        bound = f"{'≥' if self.at_least else '≤'} {_shown(self.bound, self.unit)}"
        return self.what, bound, _shown(self.value, self.unit), "yes" if self.holds else "**no**"


class Scenario(NamedTuple):
    """``run`` gets an empty directory, and says what it is doing as it goes. ``matters``: the sizes that it looks at."""

    about: str
    sizes: Sizes
    run: Callable[[Sizes, Path, "Say"], list[Finding]]
    matters: tuple[str, ...]


Say = Callable[[str], None]


def _shown(value: float, unit: str) -> str:
    digits = 0 if unit in ("", "records") or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()
