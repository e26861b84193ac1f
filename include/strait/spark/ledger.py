"""The ledger: a Parquet file for each epoch, telling what was copied from where to where.

    <ledger_dir>/link=<link>/date=<UTC day on which the epoch ended>/application=<id>/part-*.parquet

Spark's file sink is not used: it lists its files in `_spark_metadata` by epoch number, and readers believe that list.
The checkpoint is disposable and epochs count from 0 without it, so the sink would take new epochs for ones that it has
already written, and skip them in silence.

A row is written after its records were copied. An application killed in between leaves out the rows of that epoch: the
next row's range begins where the records are, so the gap shows, and nothing else depends on the ledger.
"""

from datetime import UTC, datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from strait.config.app_spec import AppSpec
from strait.errors import SetupError
from strait.spark.failure import root_cause


def append_epoch(epoch: DataFrame, spec: AppSpec, application: str) -> int:
    """Run the epoch, which takes as long as the epoch is, and append its rows. Returns the number of records copied.

    An epoch without rows makes no file.
    """
    # Held where they are: so whatever reads them next neither runs the epoch again nor, to make one file, all its slots
    # one after the other in one task.
    rows = epoch.localCheckpoint(eager=True)
    records = [row["records"] for row in rows.select("records").collect()]
    if records:
        day = datetime.now(UTC).date().isoformat()
        # A folder for each application, since Spark's writer does not share its temporary folder with another one's.
        folder = f"{spec.ledger_dir}/link={spec.link}/date={day}/application={application}"
        _write(rows.drop("link", "application").coalesce(1), folder)
    return sum(records)


def _write(rows: DataFrame, folder: str) -> None:
    try:
        rows.write.mode("append").parquet(folder)
    except (PySparkException, Py4JError) as error:
        raise SetupError(
            f"ledger {folder}: appending the rows of an epoch: {root_cause(str(error))}",
            hint="give it space and rights to write; what was copied is copied, and only these rows are missing",
        ) from error
