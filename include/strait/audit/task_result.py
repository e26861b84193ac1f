"""The result of comparing one chunk, as rows of Parquet files. Pure."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from strait.audit.findings import Difference, Kind


class Key(NamedTuple):
    """Identifies a chunk of an audit."""

    topic: str
    partition: int
    first: int
    source_from: int


@dataclass(frozen=True)
class ChunkResult:
    """The result of one chunk.

    Attributes:
        counts: (kind, explanation, records), in a fixed order.
        tail: records of the source after the last one that the destination has; only for records that are paired by order.
        error: why it could not be compared; empty: it was.
        newest_ms: the newest timestamp of the source's batches; -1: unknown.
        replica_bytes: read of the followers, if these were to be checked.
        unread: the replicas that could not be checked, with the reasons.
        seconds, cpu_seconds: of the comparison.
    """

    topic: str
    partition: int
    first: int
    end: int
    source_from: int
    source_to: int
    copy_from: int
    copy_to: int
    verdict: str
    records: int = 0
    by_batch: int = 0
    by_record: int = 0
    source_bytes: int = 0
    copy_bytes: int = 0
    source_batches: int = 0
    copy_batches: int = 0
    source_digest: str = ""
    copy_digest: str = ""
    counts: tuple[tuple[Kind, str, int], ...] = ()
    differences: tuple[Difference, ...] = ()
    tail: int = 0
    newest_ms: int = -1
    error: str = ""
    replica_bytes: int = 0
    unread: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def key(self) -> Key:
        return Key(self.topic, self.partition, self.first, self.source_from)

    def as_row(self) -> dict[str, Any]:
        """Return plain values; counts and differences as JSON."""
        row = {one.name: getattr(self, one.name) for one in fields(self)}
        differences = [one._asdict() for one in self.differences]
        return row | {"counts": json.dumps(self.counts), "differences": json.dumps(differences)}

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "ChunkResult":
        """Return the result of a row that `as_row` made."""
        counts = tuple((kind, explained, records) for kind, explained, records in json.loads(row["counts"]))
        differences = tuple(Difference(**one) for one in json.loads(row["differences"]))
        return cls(**row | {"counts": counts, "differences": differences})


def parquet(results: Sequence[ChunkResult]) -> bytes:
    """Return a Parquet file with a row for each chunk."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    kinds: dict[object, pa.DataType] = {int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(one.name, kinds.get(one.type, pa.string())) for one in fields(ChunkResult)])
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([one.as_row() for one in results], schema), file, compression="zstd")
    return file.getvalue()


def of_parquet(data: bytes) -> list[ChunkResult]:
    """Return the results of such a file."""
    from pyarrow import parquet as pq

    return [ChunkResult.of_row(row) for row in pq.read_table(io.BytesIO(data)).to_pylist()]
