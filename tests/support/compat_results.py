"""What the last run of each pair of releases has shown, for the table in docs/reference/compatibility.md."""

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.kafka.releases import RELEASES

KEPT = Path(__file__).parents[1] / "compat" / "results.json"


class Results:
    """Outcomes of tests, pair by pair. ``keep`` replaces those of the pairs that were run."""

    def __init__(self, kept: Path = KEPT) -> None:
        self._kept = kept
        self._outcomes: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def add(self, pair: str, test: str, outcome: str) -> None:
        """Each test has several: its set-up, itself, and its end. One that did not pass decides."""
        if self._outcomes[pair].get(test, "passed") == "passed":
            self._outcomes[pair][test] = outcome

    def keep(self) -> None:
        if not self._outcomes:
            return
        pairs: dict[str, Any] = json.loads(self._kept.read_text(encoding="utf-8"))["pairs"]
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        for pair, tests in self._outcomes.items():
            pairs[pair] = {"day": day} | Counter(tests.values())
        kept = {"releases": [release.name for release in RELEASES], "pairs": pairs}
        self._kept.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
