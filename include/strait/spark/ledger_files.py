"""The ledger's files: Parquet, a few a day for each application.

    <ledger_dir>/link=<link>/date=<UTC day on which the interval ended>/application=<id>/part-<n>.parquet

The driver creates them itself instead of a Spark job: slots hold every core that a cluster gives the application, so
that a job would wait forever. They are written through Hadoop's file systems, like those of Spark's own writer.
"""

import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, get_type_hints

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from strait.errors import SetupError
from strait.spark.failure import root_cause
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
        self._session = session
        self._folder = f"{ledger_dir}/link={link}"

    def prepare(self) -> None:
        """Create the directory. Raises SetupError if that fails."""
        try:
            system = self._file_system()
            made = system.mkdirs(self._path(self._folder))
        except Py4JError as error:
            raise self._failed(error) from error
        if not made:
            raise SetupError(f"ledger {self._folder}: cannot be made", hint=_HINT)

    def append(self, application: str, parts: Sequence[LedgerPart], number: int) -> None:
        """Write the rows, as file number ``number``; an earlier file with this number is replaced.

        Raises:
            SetupError: they could not be written.
        """
        days: dict[str, list[LedgerPart]] = {}
        for part in parts:
            days.setdefault(datetime.fromtimestamp(part.ended_at_ms / 1000, UTC).date().isoformat(), []).append(part)
        for day, of_day in days.items():
            self._write(
                f"{self._folder}/date={day}/application={application}", f"part-{number:012d}.parquet", parquet(of_day)
            )

    def _write(self, folder: str, name: str, data: bytes) -> None:
        try:
            system = self._file_system()
            hidden, final = self._path(f"{folder}/.{name}"), self._path(f"{folder}/{name}")
            stream = system.create(hidden, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            system.delete(final, False)
            if not system.rename(hidden, final):
                raise SetupError(f"ledger {folder}: {name} could not be renamed", hint=_HINT)
        except Py4JError as error:
            raise self._failed(error) from error

    def _file_system(self) -> Any:
        context: Any = self._session.sparkContext
        system = self._path(self._folder).getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        system.setWriteChecksum(False)  # a local file system would add a checksum file to each
        return system

    def _path(self, text: str) -> Any:
        jvm: Any = self._session._jvm  # noqa: SLF001
        return jvm.org.apache.hadoop.fs.Path(text)

    def _failed(self, error: Py4JError) -> SetupError:
        return SetupError(f"ledger {self._folder}: {root_cause(str(error))}", hint=_HINT)


def parquet(parts: Iterable[LedgerPart]) -> bytes:
    """Return a Parquet file with a row for each entry, by topic and partition."""
    import pyarrow as pa
    from pyarrow import parquet as pq

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
