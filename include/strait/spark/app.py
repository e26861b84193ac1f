"""The application: one Structured Streaming query whose tasks are the slots, until it is stopped or cannot continue.

It exits with 0 if it is asked to end (SIGTERM, SIGINT, a stopped plan, the end of the process it is tied to), and
otherwise with one of strait.launch.base's exit codes and the cause as the last line of its log.
"""

import logging
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from strait.config.app_spec import AppSpec, read_spec
from strait.errors import ClusterUnavailable, ConfigError, NotAuthorized, SetupError, StateError, StraitError
from strait.launch import supervised
from strait.launch.base import EXIT_CONFIG, EXIT_FAILED, EXIT_NEEDS_MORE_CORES
from strait.launch.cause import LAST_WORDS
from strait.launch.parent_watch import tie_broken
from strait.launch.submission import announce_start
from strait.spark import folder, yarn
from strait.spark.audit import audit
from strait.spark.cores import TooFewCores, require_cores
from strait.spark.deaths import SlotDeaths
from strait.spark.failure import cause_of, is_failure_to_start
from strait.spark.micro_batches import MicroBatches
from strait.spark.plan import wanted
from strait.spark.services import served
from strait.spark.session import beside
from strait.spark.source import FORMAT, StraitDataSource
from strait.wire.joining import COMPILED

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
FAREWELL_SECONDS = 10.0
"""How long slots may take to end. Two or three seconds are usual; slots on another machine may not see the request and
use up all of it."""
START_ATTEMPTS = 5


class _Final(Exception):
    """An error of an audit that another attempt would repeat. Unlike with slots, an operator waits for it."""


def run(spec_path: Path, session: "Future[SparkSession]") -> int:
    """Run the application of this spec in this session to its end. Return its exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    asked_to_stop = threading.Event()
    _on_signals(lambda *_: asked_to_stop.set())
    try:
        return supervised.end(_run(spec_path, session, asked_to_stop))
    finally:
        # Python restores the default handlers while it exits; a repeated signal would then end it with 143, not 0.
        _on_signals(signal.SIG_IGN)


def _run(spec_path: Path, session: "Future[SparkSession]", asked_to_stop: threading.Event) -> int:
    try:
        if supervised.begin():
            _work(spec_path, session, asked_to_stop)
    except TooFewCores as error:
        return _last_words(str(error), EXIT_NEEDS_MORE_CORES)
    except ConfigError as error:
        return _last_words(error.in_one_line, EXIT_CONFIG)
    except _Final as error:
        return _last_words(str(error), EXIT_CONFIG)
    except (StraitError, OSError) as error:
        return _last_words(str(error), EXIT_FAILED)
    except (PySparkException, Py4JError) as error:
        return _last_words(cause_of(str(error)), EXIT_FAILED)
    except Exception as error:  # a defect; a cluster would restart a driver without limit if it just died
        log.exception("the application ends because of a defect")
        return _last_words(f"{type(error).__name__}: {error}", EXIT_FAILED)
    return 0


def _work(spec_path: Path, starting: "Future[SparkSession]", asked_to_stop: threading.Event) -> None:
    spec = read_spec(spec_path)
    spec.require_version()
    if not COMPILED:
        log.warning(
            "small batches take several times the CPU: strait.wire.moving was not compiled when Strait was installed"
        )
    tied_away = tie_broken()
    session = starting.result()
    application = yarn.copy_of(session)
    stop_asked = yarn.stop_asked(session) if yarn.on_yarn() else supervised.stop_asked
    if isinstance(spec, AppSpec) and spec.audit is not None:
        try:
            audit(session, spec, spec_path, lambda: asked_to_stop.is_set() or tied_away() or stop_asked())
        except (ClusterUnavailable, NotAuthorized, SetupError, StateError) as error:
            raise _Final(str(error)) from error
        return
    plan = wanted(spec)
    if asked_to_stop.is_set() or stop_asked() or (plan is not None and plan.stopped):
        return
    slots = spec.slots if plan is None else plan.slots
    batches = MicroBatches(spec, application, require_cores(session, slots), plan)
    folder.make(spec, application)

    def is_over() -> bool:
        return asked_to_stop.is_set() or tied_away() or batches.over.is_set() or stop_asked()

    try:
        with served(session, spec_path, spec, application):
            _run_slots(session, spec_path, batches, slots, is_over)
    finally:
        folder.remove(spec, application)


def _run_slots(
    session: SparkSession, spec_path: Path, batches: MicroBatches, slots: int, is_over: Callable[[], bool]
) -> None:
    """Run the slots until the application is over. Processes that Spark starts before the slots have ten seconds to
    start, which no setting changes and which may be too short on a host under load, so the start is retried."""
    for attempts_left in reversed(range(START_ATTEMPTS)):
        try:
            _run_query(session, spec_path, batches, slots, is_over)
        except (PySparkException, Py4JError) as error:
            if not attempts_left or is_over() or not is_failure_to_start(str(error)):
                raise
            log.warning("starting again: %s", cause_of(str(error)))
            folder.forget_checkpoint(batches.spec, batches.application)
        else:
            return


def _run_query(
    session: SparkSession, spec_path: Path, batches: MicroBatches, slots: int, is_over: Callable[[], bool]
) -> None:
    deaths = SlotDeaths(session)
    query = _start(session, spec_path, batches, slots)
    announce_start()
    ended = _ending_of(query)
    try:
        while not (ended.done() or is_over()):
            wait([ended], POLL_SECONDS)
            deaths.look()
    finally:
        if not (has_ended := ended.done()):
            _stop(query, batches)
    if has_ended:
        ended.result()  # raises the error that ended the query


def _start(session: SparkSession, spec_path: Path, batches: MicroBatches, slots: int) -> StreamingQuery:
    session.dataSource.register(StraitDataSource)
    rows = (
        session.readStream.format(FORMAT)
        .option("spec", str(spec_path))  # a relative path is in each process's working directory
        .option("application", batches.application)
        .option("cores", str(batches.cores))
        .option("slots", str(slots))
        .option("transforms", batches.transforms)
        .load()
    )
    # No trigger is given: the next micro-batch starts when the last one has ended.
    return (
        rows.writeStream.foreachBatch(batches.take)
        .option("checkpointLocation", folder.checkpoint_location(batches.spec, batches.application))
        .start()
    )


def _ending_of(query: StreamingQuery) -> "Future[bool | None]":
    """Return a future that is done once the query has ended, with the error if one ended it. The wait is in the JVM:
    polling would disturb the slots beside it."""
    return beside("query", query.awaitTermination)


def _stop(query: StreamingQuery, batches: MicroBatches) -> None:
    """End the slots so that they report the records they have copied, then the query."""
    if not batches.over.is_set() and folder.slots_may_see(batches.spec):
        batches.end_now()
        batches.ended.wait(FAREWELL_SECONDS)
    query.stop()
    if batches.refusal is not None:
        raise batches.refusal


def _on_signals(handler: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def _last_words(cause: str, exit_code: int) -> int:
    sys.stderr.write(f"{LAST_WORDS}{' '.join(cause.split())}\n")
    if yarn.on_yarn():
        yarn.take_leave(exit_code, cause)
    return exit_code
