"""Routes of a topic without Spark: which records of a topic or route are copied is a function in Python."""

from collections.abc import Callable, Mapping

import numpy as np

from strait.engine.evaluation import Evaluator, Made, MadeBatch, Work
from strait.net.event_loop import Loop
from strait.wire.columns import decode, encode, opened
from strait.wire.records import Record, read_records

Keeps = Mapping[str, Callable[[Record], bool]]
"""Name in plans -> whether a record is copied; it stays as it is."""


class ByHand:
    """The evaluation of one task."""

    def __init__(self, keeps: Keeps) -> None:
        self._keeps = keeps

    def of(self, loop: Loop) -> Evaluator:
        return _OfLoop(loop, self._keeps)

    def serves(self, _: frozenset[int]) -> bool:
        return True


class _OfLoop:
    def __init__(self, loop: Loop, keeps: Keeps) -> None:
        self._loop = loop
        self._keeps = keeps

    def submit(self, work: Work, done: Callable[[Made], None]) -> None:
        keeps = self._keeps[work.topic]
        columns = decode([opened(batch) for batch in work.batches])
        offsets = [one.source + number for one in work.stretches for number in range(one.records)]
        records = [record for batch in work.batches for record in read_records(batch)]
        made = [
            MadeBatch(encode(columns, row, row + 1, work.codec), np.array([offset], np.int64))
            for row, (offset, record) in enumerate(zip(offsets, records, strict=True))
            if keeps(record)
        ]
        self._loop.call_from_thread(lambda: done(made))
