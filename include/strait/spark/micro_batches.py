"""Check between two micro-batches whether the driver runs another one. A micro-batch is a set of slots; it lasts until
the plan has another number of them."""

import logging
import threading

from pyspark.sql import DataFrame

from strait.config.app_spec import Spec
from strait.spark import folder
from strait.spark.cores import TooFewCores
from strait.spark.plan import Wanted, wanted

log = logging.getLogger(__name__)


class MicroBatches:
    """The micro-batches of one application. Spark's thread calls `take`; the main thread waits for the events.

    Attributes:
        over: set when this application must end, since the plan is stopped or has more slots than this application has
            cores; ``refusal`` is the error in the second case.
        ended: set when the slots have ended after `end_now` was called.
    """

    def __init__(self, spec: Spec, application: str, cores: int, plan: Wanted | None) -> None:
        """``plan``: as it was read last; None: unknown."""
        self._plan = plan
        self.spec = spec
        self.application = application
        self.cores = cores
        self.over = threading.Event()
        self.ended = threading.Event()
        self.refusal: TooFewCores | None = None
        self._ending = threading.Event()

    @property
    def transforms(self) -> str:
        """The numbers of the next micro-batch's transformations, as text."""
        return "" if self._plan is None else " ".join(map(str, sorted(self._plan.transforms)))

    def end_now(self) -> None:
        """Make the slots end now, if they can see this machine's files."""
        self._ending.set()
        folder.stop_file(self.spec, self.application).touch()

    def take(self, slots: DataFrame, number: int) -> None:
        """Run slots until all have ended. Spark calls this for each micro-batch."""
        log.info("micro-batch %d: slots start", number)
        planned = None if self._plan is None else self._plan.plan
        if planned is not None and planned.transformed:
            from strait.spark.evaluating import evaluated, transformed_topics  # most applications need no Arrow

            slots = evaluated(slots, transformed_topics(planned))
        slots.collect()
        if self._ending.is_set():
            self.ended.set()
            return
        plan = self._plan = wanted(self.spec)
        if plan is None:
            return
        if plan.slots > self.cores:
            self.refusal = TooFewCores(plan.slots, self.cores)
        if plan.stopped or plan.slots > self.cores:
            self.over.set()
