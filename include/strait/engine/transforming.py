"""Submits the fetched records of transformed topics for evaluation, and passes the results to the stamper.

Everything else is the same as for other topics. Batches are shaped first: markers, aborted records and batches of other
links are removed, and old formats are rebuilt. A record that the transformation leaves out is a gap in the offset map,
like one that compaction has removed; so positions, recovery and the translation of offsets need no more than that.

A partition has one piece of work at a time, since only its result determines the next record's number.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np

from strait.engine.evaluation import Evaluator, Made, MadeBatch, Malformed, Offsets, Refusal, Work
from strait.engine.partition.partition import Partition, Ticket
from strait.errors import CorruptBatch
from strait.net.buffers import Buffer
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from strait.state.transform import TopicTransform
from strait.wire.batch import CODEC_MASK, parse
from strait.wire.bounded import before
from strait.wire.fetch import Fetched
from strait.wire.rebatch import rebuilt, shape
from strait.wire.records import Record, read_records
from strait.wire.shapes import Built, Paused, Piece, Quarantined, Rules, Shape, Skipped, Stretch

_NO_LIMIT = 1 << 62
WORK_BYTES = 1 << 20
"""Of batches in one piece of work, as they are fetched: other partitions wait for no more than that."""
WORK_RECORDS = 50_000
SMALLEST_BATCH_BYTES = 1 << 10


class Unfinished(NamedTuple):
    """Fetched data of a partition of which a part is taken later: rebuilt turn by turn, or evaluated. It is dropped if the
    partition continues at another offset, or under another policy."""

    shapes: Iterator[Shape]
    ticket: Ticket
    policy: TopicPolicy
    offset: int
    frame: Buffer
    tailing: bool

    @classmethod
    def of(cls, partition: Partition, shapes: Iterator[Shape], frame: Buffer, tailing: bool) -> "Unfinished":
        """Return the rest of a partition's data, as the partition is now."""
        return cls(shapes, partition.ticket(), partition.policy, partition.cursor.offset, frame, tailing)

    @property
    def is_current(self) -> bool:
        partition = self.ticket.partition
        return self.ticket.is_current and partition.cursor.offset == self.offset and partition.policy is self.policy


class Transforming:
    """Transforms the records of a slot's partitions.

    Args:
        stamp: takes the shapes of a partition's records; returns False if it was stopped partway, or is held.
        stop: called with a partition that cannot continue.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        stamp: Callable[[Partition, Iterator[Shape], Buffer, bool], bool],
        stop: Callable[[Partition, Reason, str], None],
    ) -> None:
        self._evaluator = evaluator
        self._stamp = stamp
        self._stop = stop

    def take(self, partition: Partition, item: Fetched, frame: Buffer, rules: Rules, *, tailing: bool) -> bool:
        """Take the data that a reply holds for a partition. Return False if the partition was stopped or is held, or if
        only the result of an evaluation will show that nothing is wrong."""
        as_they_are = Rules(_NO_LIMIT, _NO_LIMIT, left_out=rules.left_out)
        shapes = shape(item.records, partition.cursor.offset, item.aborted, as_they_are)
        if partition.cursor.until >= 0:
            shapes = before(shapes, partition.cursor.until, as_they_are)
        return self._go_on(Unfinished.of(partition, shapes, frame, tailing), rules)

    def _go_on(self, pending: Unfinished, rules: Rules) -> bool:
        """Submit the next part; shapes that need no evaluation are stamped immediately."""
        partition, transform = pending.ticket.partition, pending.policy.transform
        assert transform is not None
        part = _next_part(pending.shapes)
        if not part.pieces:
            return self._stamp(partition, _then(part), pending.frame, pending.tailing)
        codec = part.pieces[0].batch.attributes & CODEC_MASK if rules.codec is None else rules.codec
        work = Work(
            partition.topic,
            partition.number,
            transform,
            [piece.batch for piece in part.pieces],
            [stretch for piece in part.pieces for stretch in piece.stretches],
            codec,
            max(SMALLEST_BATCH_BYTES, rules.max_batch_bytes),
        )
        pending.frame.hold()
        partition.cursor.finish(finished=False)

        def done(made: Made) -> None:
            try:
                partition.cursor.finish(finished=True)  # nothing else was submitted for it meanwhile
                if pending.is_current:
                    self._done(pending, rules, part, transform, made)
            finally:
                pending.frame.release()

        self._evaluator.submit(work, done)
        return False

    def _done(self, pending: Unfinished, rules: Rules, part: "_Part", transform: TopicTransform, made: Made) -> None:
        partition = pending.ticket.partition
        if isinstance(made, Refusal):
            self._stop(partition, made.reason, made.detail)
            return
        if transform.malformed == "omit":  # another route notes those that no route keeps
            made = [one for one in made if isinstance(one, MadeBatch) or one.kept or one.unknown]
        stops = transform.malformed == "stop"
        malformed = next((one for one in made if isinstance(one, Malformed) and (stops or one.unknown)), None)
        if malformed is not None:
            at = malformed.offset
            before = list(takewhile(lambda one: one is not malformed, made))
            ended = _Part(part.pieces, [Skipped(at, _epoch_of(part.pieces, at))], None, whole=False)
            if self._stamp(partition, _shapes(before, ended, rules), pending.frame, pending.tailing):
                why = malformed.unknown or "it is not as the rule's `transform.format` says"
                self._stop(partition, Reason.MALFORMED_RECORD, f"the value of the record at offset {at}: {why}")
            return
        whole = self._stamp(partition, _shapes(made, part, rules), pending.frame, pending.tailing)
        if not whole:
            return
        if partition.position.failures == 0 or (partition.caught_up and not partition.queue.in_flight):
            partition.clear()
        if not part.whole and pending.ticket.is_current:
            self._go_on(pending._replace(offset=partition.cursor.offset), rules)


class _Part(NamedTuple):
    """Pieces to evaluate, the shapes after them, and the error that ends the data. ``whole``: nothing else follows."""

    pieces: Sequence[Piece]
    after: Sequence[Shape]
    error: CorruptBatch | None
    whole: bool


def _next_part(shapes: Iterator[Shape]) -> _Part:
    pieces: list[Piece] = []
    size = records = 0
    try:
        for shaped in shapes:
            if isinstance(shaped, Piece):
                pieces.append(shaped)
                size, records = size + len(shaped.batch.view), records + shaped.batch.records
                if size >= WORK_BYTES or records >= WORK_RECORDS:
                    return _Part(pieces, [_behind(pieces)], None, whole=False)
            elif isinstance(shaped, Paused):
                if pieces:
                    return _Part(pieces, [_behind(pieces)], None, whole=False)
            else:
                before = [_behind(pieces)] if pieces and not isinstance(shaped, Skipped) else []
                return _Part(pieces, [*before, shaped, *shapes], None, whole=True)
    except CorruptBatch as error:
        return _Part(pieces, [_behind(pieces)] if pieces else [], error, whole=True)
    return _Part(pieces, [_behind(pieces)] if pieces else [], None, whole=True)


def _behind(pieces: Sequence[Piece]) -> Skipped:
    return Skipped(pieces[-1].position, pieces[-1].epoch)


def _then(part: _Part) -> Iterator[Shape]:
    yield from part.after
    if part.error is not None:
        raise part.error


def _shapes(made: Iterable[MadeBatch | Malformed], part: _Part, rules: Rules) -> Iterator[Shape]:
    for one in made:
        if isinstance(one, Malformed):
            detail = "its value is not as the rule's `transform.format` says; the record stays on the source alone"
            yield Quarantined(Record(one.offset, -1, None, None, ()), Reason.MALFORMED_RECORD, detail)
        else:
            yield from _as_pieces(one, _epoch_of(part.pieces, int(one.offsets[-1])), rules)
    yield from _then(part)


def _as_pieces(made: MadeBatch, epoch: int, rules: Rules) -> Iterator[Shape]:
    batch, behind = parse(memoryview(made.data)), int(made.offsets[-1]) + 1
    fits = len(made.data) <= (rules.max_record_bytes if batch.records == 1 else rules.max_batch_bytes)
    if fits and not _touched(made.offsets, rules):
        yield Piece(batch, made.data, _stretches(made.offsets), behind, b"", epoch, Built.TRANSFORMED)
        return
    records = [
        record._replace(offset=offset)
        for record, offset in zip(read_records(batch), made.offsets.tolist(), strict=True)
    ]
    ending = batch._replace(base_offset=behind - batch.records, leader_epoch=epoch)
    yield from rebuilt(records, ending, b"", rules, Built.TRANSFORMED)


def _touched(offsets: Offsets, rules: Rules) -> bool:
    first, behind = rules.apart
    return rules.picky and (
        bool(np.any((offsets >= first) & (offsets < behind))) or bool(np.isin(offsets, list(rules.quarantined)).any())
    )


def _stretches(offsets: Offsets) -> list[Stretch]:
    """Return the stretches of consecutive source offsets."""
    jumps = (np.flatnonzero(np.diff(offsets) != 1) + 1).tolist()
    return [Stretch(int(offsets[first]), behind - first) for first, behind in pairwise([0, *jumps, len(offsets)])]


def _epoch_of(pieces: Sequence[Piece], offset: int) -> int:
    """Return the source's leader epoch of the record at this offset."""
    return next((piece.epoch for piece in pieces if offset < piece.position), -1)
