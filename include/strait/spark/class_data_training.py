"""A driver's work in a few seconds: `strait.launch.class_data` has its JVM archive the classes that it loads."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

_BATCHES = 2
_SECONDS = 120.0


class Training(DataSource):  # type: ignore[misc]  # pyspark is not typed
    """A stream of one row per batch."""

    @classmethod
    def name(cls) -> str:
        return "training"

    def schema(self) -> str:
        return "number bigint, text string"

    def streamReader(self, schema: Any) -> "Reader":
        return Reader()


class Reader(DataSourceStreamReader):  # type: ignore[misc]
    """Always has another batch."""

    def initialOffset(self) -> dict[str, int]:
        return {"batch": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"batch": start["batch"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(start["batch"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
        yield 1, "row"


def main(folder: Path) -> None:
    session = SparkSession.builder.getOrCreate()
    session.dataSource.register(Training)

    enough = threading.Event()

    def take(batch: DataFrame, number: int) -> None:
        batch.write.mode("append").parquet(str(folder / "rows"))
        if number == _BATCHES:
            enough.set()

    stream = session.readStream.format("training").load()
    query = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(folder / "checkpoint")).start()
    if not enough.wait(_SECONDS):
        raise SystemExit(f"not {_BATCHES} batches within {_SECONDS:.0f} s")
    query.stop()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
