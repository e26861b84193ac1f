"""The slot's end of the detour. Three threads use it: the engine's, which submits work; Spark's, which takes rows from a
generator and may block in it; and one that reads results from a socket.
"""

import contextlib
import itertools
import json
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

import numpy as np

from strait.config.credentials import resolve
from strait.engine.detour import frames
from strait.engine.detour.avro import Decoded, values_of
from strait.engine.detour.collector import OUTDATED
from strait.engine.detour.layout import HANDED_ON
from strait.engine.detour.rows import Place, begin_row, end_row, filler_rows, record_rows
from strait.engine.evaluation import Evaluator, Made, Malformed, Offsets, Refusal, Work
from strait.errors import ConfigError, CorruptBatch, SetupError
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.wire.columns import Opened, decode, opened
from strait.wire.shapes import Stretch

log = logging.getLogger(__name__)

ROW_BYTES = 4 << 20
"""Of records in one Arrow batch."""
_PATIENCE_SECONDS = 1.0


class _Submitted(NamedTuple):
    chunk: int
    work: Work


class Exchange:
    """Passes work to Spark and results to the engine. ``transforms``: those for which the JVM's query was built."""

    def __init__(self, transforms: frozenset[int]) -> None:
        self._transforms = transforms
        self._failure = ""
        self._outdated = False  # the JVM's query lacks a transformation of the plan
        self._submitted: queue.SimpleQueue[_Submitted | None] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._unknown: dict[int, dict[int, str]] = {}  # by piece of work, as `rows_of` fills it
        self._waiting: dict[int, tuple[Loop, Callable[[Made], None]]] = {}  # dict operations are atomic
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
        chunk = next(self._numbers)
        self._waiting[chunk] = loop, done
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
        while not is_over():
            try:
                one = self._submitted.get(timeout=_PATIENCE_SECONDS)
            except queue.Empty:
                continue
            if self._failure:
                raise SetupError(f"transforming records: the second process of the task: {self._failure}")
            if one is None:
                return
            unknown = self._unknown[one.chunk] = {}
            try:
                yield from rows_of(one.chunk, one.work, self._where, unknown)
            except (CorruptBatch, ConfigError) as error:
                reason = Reason.CORRUPT_BATCH if isinstance(error, CorruptBatch) else Reason.TRANSFORM_REFUSED
                self._finish(one.chunk, Refusal(reason, error.message))
            else:
                yield end_row(one.chunk)
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
                while (frame := _read_frame(line)) is not None:
                    failure = frames.failure_of(frame)
                    if failure is not None:
                        self._fail(failure)
                        break
                    self._finish(*frames.decode(frame))
                self._fail("it has ended")

    def _fail(self, cause: str) -> None:
        self._failure = self._failure or cause
        self.end()

    def _finish(self, chunk: int, made: Made) -> None:
        waiting, unknown = self._waiting.pop(chunk, None), self._unknown.pop(chunk, {})
        if waiting is None:
            return
        if unknown and not isinstance(made, Refusal):
            made = [
                Malformed(one.offset, unknown.get(one.offset, "")) if isinstance(one, Malformed) else one
                for one in made
            ]
        if isinstance(made, Refusal) and made.detail == OUTDATED:
            self._outdated = True
        loop, done = waiting
        loop.call_from_thread(partial(done, made))


class _OfLoop:
    """The evaluator of one slot."""

    def __init__(self, exchange: Exchange, loop: Loop) -> None:
        self._exchange = exchange
        self._loop = loop

    def submit(self, work: Work, done: Callable[[Made], None]) -> None:
        self._exchange.submit(self._loop, work, done)


def rows_of(chunk: int, work: Work, destination: str, unknown: dict[int, str]) -> Iterator[Any]:
    """Yield the rows of one piece of work, without its END.

    Args:
        destination: path of the socket for the result.
        unknown: gets the offset of the first value in Avro whose schema the rule does not have, and the reason to stop there.

    Raises:
        CorruptBatch: a batch is damaged; the work then has no result.
        ConfigError: a secret cannot be read; the work then has no result.
    """
    number, avro = work.transform.number(work.topic), work.transform.avro
    described = {"where": destination, "number": number, "codec": work.codec, "most_bytes": work.most_bytes}
    if avro is not None and work.transform.set_fields:
        described |= {"avro": avro.model_dump(mode="json"), "set": list(work.transform.set_fields)}
    secrets = tuple(resolve(f"transform of topic {work.topic}", work.transform.secrets).values())
    place = Place(chunk, number, work.partition, secrets)
    yield begin_row(chunk, json.dumps(described).encode())
    offsets, first = _offsets(work.stretches), 0
    decoded = None if avro is None else Decoded(values_of(avro))
    for group in _groups([opened(batch) for batch in work.batches]):
        rows = decode(group)
        if decoded is None:
            yield record_rows(place, rows, offsets[first : first + len(rows)])
        else:
            for begin, part, fields in decoded.parts(rows, first):
                unknown.update({int(offsets[row]): why for row, why in decoded.unknown.items()})
                yield record_rows(place, part, offsets[begin : begin + len(part)], fields)
        first += len(rows)


def _offsets(stretches: Sequence[Stretch]) -> Offsets:
    return np.concatenate([np.arange(one.source, one.source + one.records, dtype=np.int64) for one in stretches])


def _groups(found: Sequence[Opened]) -> Iterator[list[Opened]]:
    group: list[Opened] = []
    size = 0
    for one in found:
        if group and size + len(one.data) > ROW_BYTES:
            yield group
            group, size = [], 0
        group.append(one)
        size += len(one.data)
    yield group


def _read_frame(line: socket.socket) -> bytearray | None:
    """Return the next frame, without its length; None if the line was closed."""
    head = _read(line, frames.LENGTH.size)
    return None if head is None else _read(line, frames.LENGTH.unpack(head)[0])


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
