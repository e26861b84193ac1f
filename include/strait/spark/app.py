"""The application: one Structured Streaming query that runs epoch after epoch until it is stopped or cannot go on.

It ends with 0 when it is asked to (SIGTERM, SIGINT, a plan that says stopped, the end of the process it is tied to),
and otherwise with one of strait.launch.base's exit codes and the cause as the last line of its log.
"""

import logging
import signal
import sys
import threading
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from strait.config.app_spec import AppSpec
from strait.errors import ConfigError, StraitError
from strait.launch import supervised
from strait.launch.base import EXIT_CONFIG, EXIT_FAILED, EXIT_NEEDS_MORE_CORES
from strait.launch.cause import LAST_WORDS
from strait.launch.parent_watch import tie_broken
from strait.launch.submission import announce_start
from strait.spark import folder, yarn
from strait.spark.cores import TooFewCores, require_cores
from strait.spark.epochs import Epochs
from strait.spark.failure import root_cause
from strait.spark.group_sync import consumer_groups_in_sync
from strait.spark.plan import plan_in_force
from strait.spark.session import beside
from strait.spark.source import FORMAT, StraitDataSource
from strait.wire.joining import COMPILED

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
LAST_EPOCH_SECONDS = 10.0
"""How long the last epoch may take to end and to get its rows into the ledger. Two or three are usual; slots on another
machine may not hear of it and use up all."""


def run(spec_path: Path, session: "Future[SparkSession]") -> int:
    """Run the application of this spec in this session to its end. Returns its exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    asked_to_stop = threading.Event()
    _on_signals(lambda *_: asked_to_stop.set())
    try:
        return supervised.end(_run(spec_path, session, asked_to_stop))
    finally:
        # Python gives the default handlers back while it ends; a repeated request would then end it with 143, not 0.
        _on_signals(signal.SIG_IGN)


def _run(spec_path: Path, session: "Future[SparkSession]", asked_to_stop: threading.Event) -> int:
    try:
        if supervised.begin():
            _copy(spec_path, session, asked_to_stop)
    except TooFewCores as error:
        return _last_words(str(error), EXIT_NEEDS_MORE_CORES)
    except ConfigError as error:
        return _last_words(str(error), EXIT_CONFIG)
    except (StraitError, OSError) as error:
        return _last_words(str(error), EXIT_FAILED)
    except (PySparkException, Py4JError) as error:
        return _last_words(root_cause(str(error)), EXIT_FAILED)
    except Exception as error:  # a defect; a cluster would start what just dies again without limit
        log.exception("the application ends because of a defect")
        return _last_words(f"{type(error).__name__}: {error}", EXIT_FAILED)
    return 0


def _copy(spec_path: Path, starting: "Future[SparkSession]", asked_to_stop: threading.Event) -> None:
    spec = AppSpec.read(spec_path)
    spec.require_version()
    if not COMPILED:
        log.warning(
            "small batches take several times the CPU: strait.wire.moving was not compiled when Strait was installed"
        )
    tied_away = tie_broken()
    session = starting.result()
    application = yarn.copy_of(session)
    stop_asked = yarn.stop_asked(session) if yarn.on_yarn() else supervised.stop_asked
    plan = plan_in_force(spec)
    if asked_to_stop.is_set() or stop_asked() or (plan is not None and plan.stopped):
        return
    slots = spec.slots if plan is None else plan.slots
    epochs = Epochs(spec, application, require_cores(session, slots))
    folder.make(spec, application)
    try:
        query = _start(session, spec_path, epochs, slots)
        announce_start()
        ended = _ending_of(query)
        with consumer_groups_in_sync(spec, application):
            while not (ended.done() or asked_to_stop.is_set() or tied_away() or epochs.over.is_set() or stop_asked()):
                wait([ended], POLL_SECONDS)
        if ended.done():
            ended.result()  # raises what ended the query
        else:
            _stop(query, epochs)
    finally:
        folder.remove(spec, application)


def _start(session: SparkSession, spec_path: Path, epochs: Epochs, slots: int) -> StreamingQuery:
    session.dataSource.register(StraitDataSource)
    rows = (
        session.readStream.format(FORMAT)
        .option("spec", str(spec_path))  # a relative one is in every process's working directory
        .option("application", epochs.application)
        .option("cores", str(epochs.cores))
        .option("slots", str(slots))
        .load()
    )
    # No trigger is given: the next epoch starts when the last one has ended.
    return (
        rows.writeStream.foreachBatch(epochs.take)
        .option("checkpointLocation", folder.checkpoint(epochs.spec, epochs.application).resolve().as_uri())
        .start()
    )


def _ending_of(query: StreamingQuery) -> "Future[bool | None]":
    """Done once the query has ended, with what ended it. It is waited for in the JVM: asking that again and again would
    disturb the slots beside it."""
    return beside("query", query.awaitTermination)


def _stop(query: StreamingQuery, epochs: Epochs) -> None:
    """End the running epoch so that its rows are kept, then the query."""
    if not epochs.over.is_set() and folder.slots_may_see(epochs.spec):
        epochs.end_now()
        epochs.ended.wait(LAST_EPOCH_SECONDS)
    query.stop()
    if epochs.refusal is not None:
        raise epochs.refusal


def _on_signals(handler: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def _last_words(cause: str, exit_code: int) -> int:
    sys.stderr.write(f"{LAST_WORDS}{' '.join(cause.split())}\n")
    if yarn.on_yarn():
        yarn.take_leave(exit_code, cause)
    return exit_code
