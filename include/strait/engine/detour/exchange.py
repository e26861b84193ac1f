"""The slot's end of the detour. Three threads use it: the engine's, which submits work; Spark's, which takes rows from a
generator and may block in it; and one that reads results from a socket.
"""

import contextlib
import itertools
import logging
import queue
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from strait.engine.detour import frames
from strait.engine.detour.collector import OUTDATED
from strait.engine.detour.frames import Failure, Returned
from strait.engine.detour.layout import HANDED_ON
from strait.engine.detour.merging import Taken, made_of, taken
from strait.engine.detour.rows import address_row, filler_rows
from strait.engine.evaluation import Evaluator, Made, MadeBatch, Malformed, Refusal, Work
from strait.errors import ConfigError, CorruptBatch, SetupError
from strait.net.event_loop import Loop
from strait.reasons import Reason

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 1.0


class _Submitted(NamedTuple):
    chunk: int
    work: Work


class _Waiting(NamedTuple):
    """Work whose result is not there yet. ``taken``: its records, whose other parts are unchanged. ``before``: the results of
    records before them."""

    loop: Loop
    done: Callable[[Made], None]
    taken: Taken | None = None
    before: Sequence[MadeBatch | Malformed] = ()


class Exchange:
    """Passes work to Spark and results to the engine. ``transforms``: those for which the JVM's query was built."""

    def __init__(self, transforms: frozenset[int]) -> None:
        self._transforms = transforms
        self._failure = ""
        self._outdated = False  # the JVM's query lacks a transformation of the plan
        self._submitted: queue.SimpleQueue[_Submitted | None] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._waiting: dict[int, _Waiting] = {}  # dict operations are atomic
        self._folder = Path(tempfile.mkdtemp(prefix="strait-"))  # of mode 0700
        self._where = str(self._folder / "number")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._where)
        self._listener.listen()
        threading.Thread(target=self._listen, name="number", daemon=True).start()

    def of(self, loop: Loop) -> Evaluator:
        return _OfLoop(self, loop)

    def serves(self, transforms: frozenset[int]) -> bool:
        return transforms == self._transforms and not self._outdated

    def submit(self, loop: Loop, work: Work, done: Callable[[Made], None]) -> None:
        self._put(work, _Waiting(loop, done))

    def _put(self, work: Work, waiting: _Waiting) -> None:
        chunk = next(self._numbers)
        self._waiting[chunk] = waiting
        self._submitted.put(_Submitted(chunk, work))

    def end(self) -> None:
        """End `rows`. May be called more than once, by any thread."""
        self._submitted.put(None)

    def close(self) -> None:
        self.end()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # which ends its thread
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def rows(self, is_over: Callable[[], bool]) -> Iterator[Any]:
        """Yield the rows of all submitted work, until `end` is called or ``is_over()`` returns True. Filler rows are yielded
        only if no more work is waiting.

        Raises:
            SetupError: the second process cannot continue.
        """
        yield address_row(self._where)
        while not is_over():
            try:
                one = self._submitted.get(timeout=_PATIENCE_SECONDS)
            except queue.Empty:
                continue
            if self._failure:
                raise SetupError(f"transforming records: the second process of the task: {self._failure}")
            if one is None:
                return
            try:
                records = taken(one.work)
            except (CorruptBatch, ConfigError) as error:
                is_damaged = isinstance(error, CorruptBatch)
                reason = Reason.CORRUPT_BATCH if is_damaged else Reason.TRANSFORM_SECRET_MISSING
                self._finish(one.chunk, Refusal(reason, error.message))
            else:
                self._waiting[one.chunk] = self._waiting[one.chunk]._replace(taken=records)
                yield from records.rows(one.chunk)
            if self._submitted.empty():
                yield filler_rows(HANDED_ON)
                yield filler_rows(1)
                yield filler_rows(1)

    def _listen(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return  # closed
            with line:
                self._fail(self._read(line))

    def _read(self, line: socket.socket) -> str:
        """Take results until the second process ends. Return why it did."""
        try:
            while (frame := frames.read(partial(_read, line))) is not None:
                if isinstance(frame, Failure):
                    return frame.cause
                self._take(frame)
        except Exception as error:  # a defect; nothing would be copied any more
            log.exception("results of transformed records")
            return f"its results: {type(error).__name__}: {error}"
        return "it has ended"

    def _take(self, returned: Returned) -> None:
        waiting = self._waiting[returned.chunk]
        assert waiting.taken is not None
        rows = returned.rows
        if isinstance(rows, Refusal):
            self._finish(returned.chunk, rows)
            return
        made = [*waiting.before, *made_of(waiting.taken, rows, returned.evaluated)]
        if waiting.taken.later is None:
            self._finish(returned.chunk, made)
        else:
            del self._waiting[returned.chunk]
            self._put(waiting.taken.later, waiting._replace(taken=None, before=made))

    def _fail(self, cause: str) -> None:
        self._failure = self._failure or cause
        self.end()

    def _finish(self, chunk: int, made: Made) -> None:
        waiting = self._waiting.pop(chunk)
        if isinstance(made, Refusal) and made.detail == OUTDATED:
            self._outdated = True
        waiting.loop.call_from_thread(partial(waiting.done, made))


class _OfLoop:
    """The evaluator of one slot."""

    def __init__(self, exchange: Exchange, loop: Loop) -> None:
        self._exchange = exchange
        self._loop = loop

    def submit(self, work: Work, done: Callable[[Made], None]) -> None:
        self._exchange.submit(self._loop, work, done)


def _read(line: socket.socket, size: int) -> bytearray | None:
    found = bytearray(size)
    view, at = memoryview(found), 0
    while at < size:
        try:
            got = line.recv_into(view[at:])
        except OSError:
            return None
        if not got:
            return None
        at += got
    return found
