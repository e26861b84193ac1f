"""The streaming data source `strait`: one input partition is one slot, and one micro-batch runs all slots until it
ends.

Format: ``strait``. Options: ``spec``, path of the application's spec; ``application``, id of this running instance;
``cores``, how many slots can run at the same time; ``slots``, how many the first micro-batch has; ``transforms``, the numbers
of its transformations. Options are visible in Spark's pages, so secrets stay in the spec file. Schema: of the rows of
transformed topics; there are none without such a topic. Offset: ``{"batch": n}``, n micro-batches have been started.

Reading a slot *is* the copying: records are copied from cluster to cluster inside ``read()``, and only those of
transformed topics pass through Spark, there and back. So ``read()`` is not a function of its offsets, and need not be: a slot that Spark runs again resumes at the end
of the destination's log, and copies nothing twice. It returns only when the application ends or the plan has another
number of slots.

Before copying starts, Spark loads this module in five processes, one after the other. So the methods that plan and copy
import the code that they need.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

FORMAT = "strait"


@dataclass(frozen=True)
class SlotPartition(InputPartition):  # type: ignore[misc]  # pyspark is not typed
    """One slot out of ``slots``. ``transforms``: numbers of the transformations."""

    slot: int
    slots: int
    transforms: frozenset[int] = frozenset()


class StraitDataSource(DataSource):  # type: ignore[misc]
    """Registered under its format name; see the module."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        from strait.engine.detour.layout import TO_SPARK

        return TO_SPARK

    def streamReader(self, schema: Any) -> "SlotReader":
        cores, slots = int(self.options["cores"]), int(self.options["slots"])
        transforms = frozenset(map(int, self.options["transforms"].split()))
        return SlotReader(Path(self.options["spec"]), self.options["application"], cores, slots, transforms)


class SlotReader(DataSourceStreamReader):  # type: ignore[misc]
    """Plans micro-batches in a process next to the driver, and runs slots in Spark's Python workers.

    It is pickled on the way there, so it contains only plain values and opens everything else inside the call that
    needs it.
    """

    def __init__(
        self, spec_path: Path, application: str, cores: int, first_slots: int, first_transforms: frozenset[int]
    ) -> None:
        self._spec_path = spec_path
        self._application = application
        self._cores = cores
        self._first_slots = first_slots
        self._first_transforms = first_transforms

    def initialOffset(self) -> dict[str, int]:
        return {"batch": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the next offset: there is always one more micro-batch, which starts as soon as the last one has
        ended."""
        return {"batch": start["batch"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[SlotPartition]:
        """Return the slots of the current plan; in the first micro-batch, as the driver has just read it. Return none
        if the application must end: the driver ends it after the empty micro-batch, and slots without a core would wait
        forever for the others."""
        if end["batch"] == 1:
            return [SlotPartition(slot, self._first_slots, self._first_transforms) for slot in range(self._first_slots)]
        from strait.config.app_spec import read_spec
        from strait.spark.folder import stop_file
        from strait.spark.plan import wanted

        spec = read_spec(self._spec_path)
        if stop_file(spec, self._application).exists():
            return []
        plan = wanted(spec)
        slots = spec.slots if plan is None else plan.slots
        if slots > self._cores or (plan is not None and plan.stopped):
            return []
        transforms = frozenset() if plan is None else plan.transforms
        return [SlotPartition(slot, slots, transforms) for slot in range(slots)]

    def read(self, partition: SlotPartition) -> Iterator[Any]:
        """Run the slot, or all slots of a pool's task, until it ends. Yields the records of transformed topics."""
        from strait.config.app_spec import read_spec
        from strait.engine import task
        from strait.engine.evaluation import NOTHING
        from strait.errors import SetupError
        from strait.spark.folder import stop_file
        from strait.spark.head_start import take_over

        spec = read_spec(self._spec_path)
        spec.require_version()  # its host may have another version than the driver's
        asked, daemon = stop_file(spec, self._application), os.getppid()

        def ends() -> bool:
            return os.getppid() != daemon or asked.exists()

        def begin() -> None:
            take_over(self._spec_path, partition.slot)

        spec = spec.model_copy(update={"slots": partition.slots})

        def copy(evaluators: Any, is_over: Callable[[], bool]) -> None:
            task.run(
                spec,
                self._spec_path,
                partition.slot,
                self._application,
                is_over,
                begin=begin,
                evaluators=evaluators,
            )
            if os.getppid() != daemon:
                # Spark would run the next slot in this process, which would never be stopped.
                raise SetupError("the process that Spark forks its workers from has ended", hint="it is run again")

        if not partition.transforms:
            copy(NOTHING, ends)
            return iter(())
        from strait.engine.detour.beside import copied_beside

        return copied_beside(partition.transforms, copy, ends)
