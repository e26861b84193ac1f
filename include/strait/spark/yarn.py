"""The driver's side of YARN: how it receives a request to end, and how it reports why it ends.

The submitting host and the driver's share no files but those of the cluster, so a request to end is a file in the
directory that Spark created for the submission there. YARN starts a driver again that exits with a code other than 0,
so one whose end is final unregisters from the ResourceManager first.
"""

import logging
import os
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strait.launch.base import EXIT_FAILED
from strait.launch.yarn.files import STOP
from strait.launch.yarn.replies import last_words

log = logging.getLogger(__name__)

_STAGING = "SPARK_YARN_STAGING_DIR"  # Spark sets it for a driver on YARN, and for nothing else
_LOOK_SECONDS = 2.0
_MASTER = "org$apache$spark$deploy$yarn$ApplicationMaster$$master"


def on_yarn() -> bool:
    """Return whether this is a driver in a container of YARN."""
    return _STAGING in os.environ


def copy_of(session: SparkSession) -> str:
    """Return an id that distinguishes this driver from every other one: the application's id, and on YARN also the
    attempt's number, since there all drivers of one submission have the same id."""
    context = session.sparkContext
    attempt = context._jsc.sc().applicationAttemptId()  # noqa: SLF001  no Python API has it
    return f"{context.applicationId}_{attempt.get()}" if attempt.isDefined() else str(context.applicationId)


def stop_asked(session: SparkSession) -> Callable[[], bool]:
    """Return a function for the application to poll: whether the launcher wants it to end. While the cluster's file
    system does not respond, no request is seen."""
    path = _path(session, f"{os.environ[_STAGING]}/{STOP}")
    next_look = 0.0
    answer = False

    def ask() -> bool:
        nonlocal next_look, answer
        if not answer and time.monotonic() >= next_look:
            try:
                answer = bool(_file_system(session, path).exists(path))
            except Py4JError as error:
                log.warning("looking for %s: %s", STOP, str(error).splitlines()[0])
            next_look = time.monotonic() + _LOOK_SECONDS
        return answer

    return ask


def take_leave(exit_code: int, cause: str) -> None:
    """Report to YARN why this driver ends. After EXIT_FAILED YARN starts another one, as often as its limit allows;
    after any other code it starts none, and the files of the submission in the file system are removed."""
    words = last_words(exit_code, cause)
    try:
        session = SparkSession.builder.getOrCreate()  # there may be none yet, and reporting to YARN needs one
        jvm: Any = session._jvm  # noqa: SLF001
        master = getattr(getattr(jvm.org.apache.spark.deploy.yarn, "ApplicationMaster$"), "MODULE$")
        master = getattr(master, _MASTER)()
        failed = jvm.org.apache.hadoop.yarn.api.records.FinalApplicationStatus.FAILED
        if exit_code != EXIT_FAILED:
            staging = _path(session, os.environ[_STAGING])
            _file_system(session, staging).delete(staging, True)
            master.unregister(failed, words)
        master.finish(failed, exit_code, words)
    except (Py4JError, PySparkException, TypeError) as error:
        log.warning("telling YARN: %s: %s", words, str(error).splitlines()[0])


def _path(session: SparkSession, text: str) -> Any:
    jvm: Any = session._jvm  # noqa: SLF001
    return jvm.org.apache.hadoop.fs.Path(text)


def _file_system(session: SparkSession, path: Any) -> Any:
    return path.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
