"""Columns and kinds of the rows in which records go through Spark. Pure, and without Arrow, which every application would
load otherwise."""

from enum import IntEnum

HANDED_ON = 512
"""Number of rows that the JVM forwards at a time: `spark.sql.execution.arrow.maxRecordsPerBatch`."""

TO_SPARK = (
    "__chunk BIGINT, __kind INT, __number BIGINT, partition INT, offset BIGINT, __ms BIGINT, key BINARY, value BINARY, "
    "__headers BINARY, __secrets ARRAY<STRING>, __fields BINARY"
)
"""Columns of the rows as Spark gets them, in its notation. Expressions see those without ``__``."""
FROM_SPARK = ("__chunk", "__out_kind", "offset", "__ms", "__out_key", "__out_value", "__out_headers", "__out_fields")
"""Columns as they come back. ``fields``: of values in Avro as JSON, all of them to Spark, those that the rule sets back."""


class Kind(IntEnum):
    """Kind of a row. Spark changes RECORD to MALFORMED if its value cannot be parsed, to LEFT_OUT if it is filtered out, and
    to UNKNOWN if its transformation is not evaluated there. The value of the first row describes the work. HOLE: offsets that an
    audit could not read."""

    RECORD = 0
    BEGIN = 1
    END = 2
    FILLER = 3
    MALFORMED = 4
    UNKNOWN = 5
    LEFT_OUT = 6
    HOLE = 7
