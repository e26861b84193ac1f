"""Write the ledger, in the driver, from the rows that the slots write to the ledger topic.

The topic keeps the rows for three days, so a driver that is killed loses none: the next driver of the task group writes
those that are missing. A record in the topic marks how far the files are written. Rows without an acknowledged mark are
written again before any others, by this driver or the next one, under the same file name, and every column of such a
row is the same.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from confluent_kafka import Message
from pyspark.sql import SparkSession

from strait.config import naming
from strait.config.app_spec import AppSpec
from strait.errors import ClusterUnavailable, StateError, StraitError
from strait.kafka.reading import read_topic
from strait.spark import folder
from strait.spark.ledger_book import UNREPORTED, LedgerBook, Pending
from strait.spark.ledger_files import LedgerFiles
from strait.state.codec import Unreadable, decode, kind_of_ledger
from strait.state.ledger_records import LedgerMark, LedgerPart
from strait.state.writer import StateWriter
from strait.waiting import unix_ms

log = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS = 20.0  # the slots have written their first rows by then
_AGAIN_SECONDS = 60.0
_MARK_SECONDS = 5.0
_RECORDS_AT_ONCE = 500
_FAREWELL_SECONDS = 10.0  # a destination that does not respond must not delay the end
_WRITING_SECONDS = 20.0


@contextmanager
def ledger_kept(session: SparkSession, spec: AppSpec, application: str, head_start: str) -> Iterator[None]:
    """Write the ledger while the block runs, on a separate thread; at its end, write the rows that the slots have
    reported by then. ``head_start``: see `LedgerBook`.

    Raises:
        SetupError: the ledger's directory cannot be created.
    """
    ledger = Ledger(session, spec, application, head_start)
    ledger.files.prepare()
    stopped = threading.Event()
    thread = threading.Thread(target=ledger.run, args=(stopped,), name="ledger", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(_FAREWELL_SECONDS)
        if ledger.writing:
            thread.join(_WRITING_SECONDS)
        if thread.is_alive():
            log.warning("the last rows of the ledger are not written yet; the next application writes them")


class Ledger:
    """The ledger writer of one driver. ``writing``: whether it is writing files now."""

    def __init__(self, session: SparkSession, spec: AppSpec, application: str, head_start: str) -> None:
        self.files = LedgerFiles(session, spec.ledger_dir, spec.link)
        self._spec = spec
        self._application = application
        self._topic = naming.ledger_topic(spec.link)
        patience_ms = round(1000 * (2 * spec.ledger_seconds + _AGAIN_SECONDS))
        self._book = LedgerBook(spec.group, application, patience_ms, head_start)
        self.writing = False
        self._next = 0  # offset of the first record in the topic not read yet

    def run(self, stopped: threading.Event) -> None:
        """Write the ledger once per interval, and at the end."""
        wait_seconds = min(_FIRST_LOOK_SECONDS, self._spec.ledger_seconds)
        while not stopped.wait(wait_seconds):
            folder.touch(self._spec, self._application)
            done = self.look()
            wait_seconds = self._spec.ledger_seconds if done else min(_AGAIN_SECONDS, self._spec.ledger_seconds)
        self.look(last=True)

    def look(self, *, last: bool = False) -> bool:
        """Write the rows that are due; return whether that was possible. The rest is retried next time, by the next
        driver if need be."""
        spec = self._spec
        try:
            messages = read_topic(spec.destination, spec.destination_name, self._topic, first=self._next)
            # However long the topic is, only this many messages are held at a time.
            while some := list(islice(messages, _RECORDS_AT_ONCE)):
                for message in some:
                    self._take(message)
                self._write_due(last=False)
            self._write_due(last=last)
        except StraitError as error:
            log.warning("the ledger is behind, copying goes on: %s", error)
            return False
        except Exception:  # a defect; otherwise the end of the thread would not be noticed
            log.exception("the ledger is behind, copying goes on")
            return False
        return True

    def _take(self, message: Message) -> None:
        offset, key, value = message.offset() or 0, message.key(), message.value() or b""
        try:
            self._book.take(offset, message.timestamp()[1], _decoded(key, value))
        except Unreadable as error:
            log.warning("%s", StateError(f"ledger topic {self._topic}: the record at offset {offset}: {error}"))
        self._next = offset + 1

    def _write_due(self, *, last: bool) -> None:
        self.writing = True
        try:
            for application, pending in self._book.due(unix_ms(), last=last).items():
                self._write(application, pending)
        finally:
            self.writing = False

    def _write(self, application: str, pending: list[Pending]) -> None:
        parts = [part for one in pending for part in one.parts()]
        self.files.append(application, parts, pending[0].offset)
        self._mark(application, pending[-1].offset + 1)
        entries = [entry for part in parts for entry in part.entries]
        records = sum(entry.records for entry in entries)
        log.info("ledger: %d records copied, in %d rows of application %s", records, len(entries), application)
        if unreported := [entry for entry in entries if entry.state == UNREPORTED]:
            log.info("ledger: of these %d rows are of slots that ended without a word", len(unreported))

    def _mark(self, application: str, below: int) -> None:
        """Mark the rows before this offset as written. Raises StraitError if the mark is not acknowledged: the rows
        then stay due, since the next driver would write them too."""
        spec = self._spec
        mark = LedgerMark(link=spec.link, group=spec.group, application=application, below=below, at_ms=unix_ms())
        writer = StateWriter(spec.destination, spec.destination_name, spec.link)
        outcome: list[StraitError | None] = []
        writer.write_ledger(mark, outcome.append)
        writer.flush(_MARK_SECONDS)
        if not outcome:
            raise ClusterUnavailable(spec.destination_name, f"writing to {self._topic}: timed out")
        if outcome[0] is not None:
            raise outcome[0]
        self._book.written(spec.group, application, below)


def _decoded(key: bytes | None, value: bytes) -> LedgerPart | LedgerMark:
    if kind_of_ledger(key) is LedgerMark:
        return decode(LedgerMark, key, value)
    return decode(LedgerPart, key, value)
