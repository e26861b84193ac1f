"""Reads the rows of the replication ledger that an audit needs: from its files by Spark, and the newest from the ledger
topic."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_type_hints

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType, StringType, StructField, StructType

from strait.audit.ledger_rows import NUMBERS, LedgerRow, row_of
from strait.audit.ledger_topic import Wanted, rows_in_topic
from strait.config.cluster import Cluster
from strait.model import TopicPartition
from strait.spark.hadoop_files import HadoopFiles
from strait.state.ledger_records import LedgerEntry

_PLACES = ("topic", "partition", "destination", "destination_id")


def read_rows(
    session: SparkSession, root: str, cluster: Cluster, link: str, wanted: Sequence[Wanted]
) -> Mapping[TopicPartition, Sequence[LedgerRow]]:
    """Return the rows of each source partition that describe records which the destination still has.

    Args:
        root: directory or Hadoop URI of the ledger.

    Raises:
        ClusterUnavailable, NotAuthorized
        SetupError: the directory cannot be read.
    """
    found = rows_in_topic(cluster, link, wanted)
    for frame in _frames(session, root, link):
        for place, row in _of_files(session, frame, wanted):
            if row is not None:
                found[place].append(row)
    return found


def _frames(session: SparkSession, root: str, link: str) -> Iterator[DataFrame]:
    """Yield the files of the link: those of Airflow's applications, and those of `strait run`, which have a directory for
    each task group."""
    files = HadoopFiles(session, root, "ledger", "give the audit permission to read it")
    kinds = get_type_hints(LedgerEntry) | {"ended_at_ms": int}
    schema = StructType(
        [StructField(name, LongType() if kinds[name] is int else StringType()) for name in (*_PLACES, *NUMBERS)]
    )
    for pattern in (f"link={link}", f"{link}/*/link={link}"):
        for path in files.matching(pattern):
            yield session.read.schema(schema).parquet(path)


def _of_files(
    session: SparkSession, frame: DataFrame, wanted: Sequence[Wanted]
) -> Iterator[tuple[TopicPartition, LedgerRow | None]]:
    names = ("topic", "partition", "destination", "wanted_id", "copy_start")
    starts = [(*one.place, one.destination, one.destination_id, one.copy_start) for one in wanted]
    if not starts:
        return
    known = session.createDataFrame(
        starts, "topic string, partition long, destination string, wanted_id string, copy_start long"
    )
    rows = (
        frame.where("copy_digest >= 0")
        .join(sql.broadcast(known), list(names[:3]))
        .where("destination_to > copy_start and destination_id = wanted_id")
    )
    for row in rows.select("topic", "partition", *NUMBERS).toLocalIterator():
        yield TopicPartition(row["topic"], row["partition"]), row_of({name: row[name] for name in NUMBERS})
