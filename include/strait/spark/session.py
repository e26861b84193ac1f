"""Start Spark's session early: without the parts that no application of Strait needs, and while the rest of the
application is imported. The JVM takes two seconds for its part, and Python's imports take one, so this module imports
hardly more than pyspark."""

import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from py4j import protocol
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from strait.errors import ConfigError

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


def begin_session(properties: Path | None = None) -> "Future[SparkSession]":
    """Start the session and return a future of it.

    Args:
        properties: JSON object of Spark properties, besides those that spark-submit was given.

    Raises (the result): ConfigError if they cannot be read.
    """
    # At its first call into the JVM each of these imports pandas, which takes a second. No NumPy value is ever passed.
    unused = NumpyScalarConverter, NumpyArrayConverter
    protocol.INPUT_CONVERTER[:] = [one for one in protocol.INPUT_CONVERTER if not isinstance(one, unused)]
    return beside("session", lambda: _session(properties))


def _session(properties: Path | None) -> SparkSession:
    session = SparkSession.builder.config(map=_read(properties)).getOrCreate()
    # Otherwise Spark starts two interpreters that search for modules named `pyspark_*` with data sources.
    sources, jvm = session._jvm.org.apache.spark.sql.execution.datasources, session._jvm  # noqa: SLF001
    none = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    try:
        found = getattr(getattr(sources, "DataSourceManager$"), "MODULE$")
        getattr(found, "dataSourceBuilders_$eq")(jvm.scala.Option.apply(none))
    except Py4JError as error:  # another version of Spark, which then searches for them
        log.info("data sources of other modules are looked for: %s", error)
    return session


def _read(properties: Path | None) -> dict[str, str]:
    if properties is None:
        return {}
    try:
        return dict(json.loads(properties.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"Spark properties {properties}", [f"cannot be read: {error}"]) from error


def beside(name: str, work: Callable[[], _Result]) -> "Future[_Result]":
    """Run the work on a separate thread, which ends with the process at the latest."""
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits
            done.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done
