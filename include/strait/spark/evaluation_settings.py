"""Spark properties on which the results of expressions depend, or the delay of rows."""

from pyspark.sql import SparkSession

from strait.errors import SetupError
from strait.launch.properties import own_properties

SETTINGS = (
    "spark.buffer.size",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.session.timeZone",
    "spark.sql.variable.substitute",
)
"""Spark properties that must be Strait's own (strait/launch/spark.properties): results, the delay of each row and
the data that expressions can read depend on them."""
HARMLESS = tuple(
    f"spark.sql.{name}"
    for name in (
        "adaptive.", "artifact.", "catalog.", "catalogImplementation", "event.", "execution.pyspark.", "hive.", "queryExecutionListeners",
        "session.localRelation", "shuffle.", "streaming.", "ui.", "warehouse.dir",
    )
)  # fmt: skip
"""Beginnings of the names of Spark properties of SQL that change no result. All others may: expressions would give other
records under the same digest."""


def require_settings(session: SparkSession) -> None:
    """Raise SetupError if the application has another value of one of `SETTINGS`, or sets a property of SQL that is not `HARMLESS`."""
    ours, context = own_properties(""), session.sparkContext.getConf()
    names = [name for name, _ in context.getAll() if name.startswith("spark.sql.") and not name.startswith(HARMLESS)]
    for name in (*SETTINGS, *sorted(names)):
        if (found := context.get(name)) != (wanted := ours.get(name)):
            raise SetupError(
                f"transforming records: {name} is {found}, and must be {wanted or 'left to Spark'}",
                hint="remove it from the link's `spark.conf`, or from the defaults of the Spark cluster",
            )
