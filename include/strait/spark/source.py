"""The streaming data source `strait`: one input partition is one slot, one micro-batch is one epoch.

Format: ``strait``. Options: ``spec``, path of the application's spec; ``application``, which running copy this is;
``cores``, how many slots can run at once; ``slots``, how many the first epoch has. Options show in Spark's pages, so secrets stay in the spec file.
Schema: LedgerRow. Offset: ``{"epoch": n}``, n epochs have been started.

Reading a slot *is* the copying: records go from cluster to cluster inside ``read()`` and never through Spark, which
gets one row for each partition when the epoch ends. So ``read()`` is not a function of its offsets, and need not be: an
epoch that Spark repeats goes on where the destination's log ends, and copies nothing twice.

Before anything is copied Spark loads this module in five processes, one after the other. So what plans and what copies
is imported by those that do it.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import LongType, StringType, StructField, StructType

from strait.engine.epoch_row import LedgerRow

FORMAT = "strait"

_TYPES = {int: LongType(), str: StringType()}
SCHEMA = StructType([StructField(name, _TYPES[kind], False) for name, kind in get_type_hints(LedgerRow).items()])


@dataclass(frozen=True)
class SlotPartition(InputPartition):  # type: ignore[misc]  # pyspark is not typed
    """One slot in one epoch that was started with so many slots."""

    slot: int
    epoch: int
    slots: int


class StraitDataSource(DataSource):  # type: ignore[misc]
    """Registered under its format name; see the module."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return SCHEMA

    def streamReader(self, schema: StructType) -> "EpochReader":
        cores, slots = int(self.options["cores"]), int(self.options["slots"])
        return EpochReader(Path(self.options["spec"]), self.options["application"], cores, slots)


class EpochReader(DataSourceStreamReader):  # type: ignore[misc]
    """Plans epochs in a process beside the driver, and runs slots in Spark's Python workers.

    Pickled on the way there, and a worker may serve many epochs: so it holds plain values only and opens what it needs
    inside the call that needs it.
    """

    def __init__(self, spec_path: Path, application: str, cores: int, first_slots: int) -> None:
        self._spec_path = spec_path
        self._application = application
        self._cores = cores
        self._first_slots = first_slots

    def initialOffset(self) -> dict[str, int]:
        return {"epoch": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """There is always one more epoch: the next one starts as soon as the last one has ended."""
        return {"epoch": start["epoch"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[SlotPartition]:
        """The slots of the plan in force; in the first epoch, as the driver has just read it. None where the application is
        to end: the driver sees to that after the empty epoch, and slots without a core of their own would wait behind the
        others for ever."""
        if end["epoch"] == 1:
            return [SlotPartition(slot, 1, self._first_slots) for slot in range(self._first_slots)]
        from strait.config.app_spec import AppSpec
        from strait.spark.folder import stop_file
        from strait.spark.plan import plan_in_force

        spec = AppSpec.read(self._spec_path)
        if stop_file(spec, self._application).exists():
            return []
        plan = plan_in_force(spec)
        slots = spec.slots if plan is None else plan.slots
        if slots > self._cores or (plan is not None and plan.stopped):
            return []
        return [SlotPartition(slot, end["epoch"], slots) for slot in range(slots)]

    def read(self, partition: SlotPartition) -> Iterator[tuple[Any, ...]]:
        """Copy for one epoch, then yield one row for each partition that the slot looked after."""
        from strait.config.app_spec import AppSpec
        from strait.engine.slot import run_epoch
        from strait.spark.folder import stop_file

        spec = AppSpec.read(self._spec_path).model_copy(update={"slots": partition.slots})
        spec.require_version()  # its host may have another than the driver's
        should_stop = _should_stop(stop_file(spec, self._application))
        yield from run_epoch(spec, partition.slot, partition.epoch, self._application, should_stop)


def _should_stop(stop_file: Path) -> Callable[[], bool]:
    """Whether a slot should end its epoch now: the driver asks for it, or Spark's side of this process is gone."""
    parent = os.getppid()
    return lambda: os.getppid() != parent or stop_file.exists()
