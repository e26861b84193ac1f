"""Names and parts that the tasks of a link's DAG share: the run, first and last log lines, and steps that fail separately."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from strait_airflow.errors import failure_of
from strait_airflow.page_address import page_address
from strait_airflow.verdict import Failure

if TYPE_CHECKING:
    from strait.errors import StraitError

log = logging.getLogger(__name__)

MONITOR, SUBMIT, HEALTHY, METRICS, VERDICT = "monitor", "submit", "healthy", "metrics", "verdict"
OUTCOME, FAILED, NEEDS, NOTE = "outcome", "failed", "needs", "note"
"""Keys of XComs: of `monitor`; of a failed task; of `metrics`; of `verdict`, for the run's note."""

ASK = "ask"
"""Value of `Acted.failed`: the settings may be older than the current plan, so an operator must confirm them."""


class Run(NamedTuple):
    """The DAG run of a task.

    Attributes:
        after_ms: when it was requested, in ms since 1970. It stays the same if the run is cleared.
        cleared: how often tasks of it were cleared.
        by: user that triggered it; "Airflow" if none did.
        manual: a user triggered it.
    """

    id: str
    after_ms: int
    cleared: int = 0
    by: str = "Airflow"
    manual: bool = False


class Steps:
    """Runs steps of which a failed one affects no other. A cause that several steps report is one failure.

    Attributes:
        planning: the failures of planning.
        failures: those of all steps.
    """

    def __init__(self, link: str) -> None:
        self._link = link
        self._failed: list[StraitError] = []
        self.planning: list[Failure] = []
        self.failures: list[Failure] = []

    def run(self, step: Callable[[], Any], *, plans: bool = False) -> Any:
        """Return the result of the step; None if it failed."""
        from strait.errors import StraitError

        try:
            return step()
        except StraitError as error:
            failure = failure_of(error, self._link)
            if failure.cause not in {known.cause for known in self.failures}:
                log.error("%s", failure.text)  # noqa: TRY400  messages are complete
                self.failures.append(failure)
                self.planning += [failure] if plans else []
            self._failed.append(error)
            return None

    @property
    def kind(self) -> str:
        """The kind of the first failure: invalid settings are tried again once they change; any other failure may be fixed
        from outside."""
        from strait.errors import ConfigError, OutdatedSettings

        if not self._failed:
            return ""
        if isinstance(self._failed[0], OutdatedSettings):
            return ASK
        return "final" if isinstance(self._failed[0], ConfigError) else "retriable"

    @property
    def destination_is_away(self) -> bool:
        from strait.errors import ClusterError, StraitError
        from strait_airflow.settings import clusters_of

        clusters = {error.cluster for error in self._failed if isinstance(error, ClusterError)}
        try:
            return bool(clusters) and clusters_of(self._link).links[self._link].destination in clusters
        except StraitError:
            return False


def begin(link: str) -> None:
    """Log the first line of a task."""
    log.info("on the page: %s", page_address(link))
    quiet()


def quiet() -> None:
    """Keep librdkafka's log lines out of this process's logs: errors have its messages as their cause, once."""
    logging.getLogger("strait.librdkafka").propagate = False


def last(line: str) -> str:
    """Log the result of a task as its last line, and return it."""
    log.info("done: %s", line)
    return line


def utc_text(at_ms: int) -> str:
    """Return a time in ms since 1970 as human-readable text."""
    from strait.text import utc

    return f"{utc(at_ms)} UTC"
