"""The ledger's files: Parquet, a few a day for each application.

    <ledger_dir>/link=<link>/date=<UTC day on which the interval ended>/application=<id>/part-<n>.parquet

The driver creates them itself instead of a Spark job: slots hold every core that a cluster gives the application, so
that a job would wait forever.
"""

import io
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import get_type_hints

from pyspark.sql import SparkSession

from strait.spark.hadoop_files import HadoopFiles
from strait.state.ledger_records import LedgerEntry, LedgerPart

_HINT = "give it space and rights to write; the rows stay in the ledger topic for three days"
_OF_PART = ("group", "slot")
_TIMES = ("started_at_ms", "ended_at_ms")
COLUMNS = {
    name: kind
    for names, model in ((_OF_PART, LedgerPart), (LedgerEntry.model_fields, LedgerEntry), (_TIMES, LedgerPart))
    for name, kind in get_type_hints(model).items()
    if name in names
}
"""Name -> type of each column except those in the path: ``link``, ``date`` and ``application``."""


class LedgerFiles:
    """The ledger's files of one link."""

    def __init__(self, session: SparkSession, ledger_dir: str, link: str) -> None:
        self._files = HadoopFiles(session, f"{ledger_dir}/link={link}", "ledger", _HINT)

    def prepare(self) -> None:
        """Create the directory. Raises SetupError if that fails."""
        self._files.prepare()

    def append(self, application: str, parts: Sequence[LedgerPart], number: int) -> None:
        """Write the rows, as file number ``number``; an earlier file with this number is replaced.

        Raises:
            SetupError: they could not be written.
        """
        days: dict[str, list[LedgerPart]] = {}
        for part in parts:
            days.setdefault(datetime.fromtimestamp(part.ended_at_ms / 1000, UTC).date().isoformat(), []).append(part)
        for day, of_day in days.items():
            self._files.write(f"date={day}/application={application}", f"part-{number:012d}.parquet", parquet(of_day))


def parquet(parts: Iterable[LedgerPart]) -> bytes:
    """Return a Parquet file with a row for each entry, by topic and partition."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    _keep_pandas_out()
    rows = [
        {**{name: getattr(part, name) for name in (*_OF_PART, *_TIMES)}, **entry.__dict__}
        for part in parts
        for entry in part.entries
    ]
    rows.sort(key=lambda row: (row["topic"], row["partition"], row["started_at_ms"]))
    schema = pa.schema([(name, pa.int64() if kind is int else pa.string()) for name, kind in COLUMNS.items()])
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), file, compression="zstd")
    return file.getvalue()


class _NoPandas:
    """Finder of modules that finds no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _keep_pandas_out() -> None:
    """Have pyarrow find no pandas. It would import it with the first list, which takes a second and 45 MB of memory."""
    import pyarrow as pa

    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas)
        try:
            pa.array([])  # it searches once
        finally:
            sys.meta_path.remove(_NoPandas)
