"""Columns and kinds of the rows in which records go through Spark. Pure, and without Arrow, which every application would
load otherwise."""

from enum import IntEnum

HANDED_ON = 512
"""Number of rows that the JVM forwards at a time: `spark.sql.execution.arrow.maxRecordsPerBatch`."""

TO_SPARK = "__kind INT, __number BIGINT, partition INT, offset BIGINT, __ms BIGINT, key BINARY, value BINARY, __secrets ARRAY<STRING>, __fields BINARY"
"""Columns of the rows as Spark gets them, in its notation. Expressions see those without ``__``."""
FROM_SPARK = ("__out_kind", "offset", "__out_key", "__out_value", "__out_fields")
"""Columns as they come back. Keys and values that a transformation does not change are null. ``fields``: of values in Avro as JSON, all of
them to Spark, those that the rule sets back."""
HEADERS = "__headers BINARY"
"""Column that an audit sends to Spark in addition."""
AUDITED = (*FROM_SPARK, "__ms", "key", "value", "__headers")
"""Columns of an audit as they come back: no process of it holds the records in the meantime, so they go along."""


class Kind(IntEnum):
    """Kind of a row. Spark changes RECORD to MALFORMED if its value cannot be parsed, to LEFT_OUT if it is filtered out, and
    to UNKNOWN if its transformation is not evaluated there.

    ADDRESS is the first row; its value is the path of the slot's socket. The records of one piece of work are between two
    control rows; the offset is the number of the transformation in the first, and of the work in the second. In an audit, the
    values of control rows describe the chunk; HOLE: offsets that it could not read.
    """

    RECORD = 0
    BEGIN = 1
    END = 2
    FILLER = 3
    MALFORMED = 4
    UNKNOWN = 5
    LEFT_OUT = 6
    HOLE = 7
    ADDRESS = 8
