"""The control cycle of `strait run`, on a thread of its own: copying and Ctrl-C never wait for a slow cluster."""

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
    """Runs a cycle, pauses, runs the next, until `stop`. ``results`` has what came of each, in order; before the first one,
    what it is going to do.

    An error does not end it: the plan in force stays in force, and the next cycle looks again. As for `strait apply`, the
    topics are those in force where an Airflow Variable replaces them; ``topics_from`` then says which one.
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
        """Begin with a cycle that also starts a stopped link, if that is asked for."""
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Wait for the running cycle, but not for long: what it would publish is published by the next `strait run`."""
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
