"""The control cycle of `strait run`, in a separate thread: copying and Ctrl-C never wait for a slow cluster."""

import queue
import threading
from collections.abc import Callable

from strait.config.links import LinksFile, with_known
from strait.control.outcome import Outcome
from strait.control.plane import Control
from strait.errors import StraitError
from strait.kafka.connection import silent
from strait.planning.plan.planner import Proposal

_RETRY_SECONDS = 5.0  # at most, after an error


class Cycles:
    """Runs cycles with a pause between them, until `stop`. ``results`` receives the outcome or error of each cycle, in
    order, and before the first outcome the proposal that is being applied.

    An error does not stop the cycles: the current plan stays valid, and the next cycle tries again. As in `strait
    apply`, the topics are those of the current plan if an Airflow Variable replaces those of the links file;
    ``topics_from`` then names that Variable.
    """

    def __init__(
        self,
        file: LinksFile,
        link: str,
        interval_seconds: float,
        progress: Callable[[str], None] = silent,
        *,
        start: bool = False,
    ) -> None:
        self.results: queue.SimpleQueue[Proposal | Outcome | StraitError] = queue.SimpleQueue()
        self.topics_from = ""
        self._file = file
        self._link = link
        self._interval_seconds = interval_seconds
        self._progress = progress
        self._start = start
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control cycles", daemon=True)

    def start(self) -> None:
        """Start the thread. If ``start`` was given, its first cycle also starts a stopped link."""
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Stop after the running cycle, but wait for it no longer than the timeout: the next `strait run` publishes any
        plan that this cycle does not."""
        self._stopped.set()
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        first, stopped = True, False if self._start else None
        while not self._stopped.is_set():
            with Control(self._file, self._link, self._progress) as control:
                try:
                    while not self._stopped.is_set():
                        self.topics_from = control.settings_in_force(adopt=True).elsewhere
                        proposal = control.propose(stopped=stopped)
                        if first:
                            self.results.put(proposal)
                        self.results.put(control.apply(proposal, stopped=stopped))
                        first, stopped = False, None
                        self._file = with_known(self._file, control.known_clusters)
                        self._stopped.wait(self._interval_seconds)
                except StraitError as error:
                    self.results.put(error)
            self._stopped.wait(min(self._interval_seconds, _RETRY_SECONDS))
