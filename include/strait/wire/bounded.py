"""Shapes of the records before an end offset. Pure."""

from collections.abc import Iterator

from strait.wire.batch import check
from strait.wire.rebatch import rebuilt
from strait.wire.records import read_records
from strait.wire.shapes import Built, Piece, Quarantined, Rules, Shape, Skipped, Stop


def before(shapes: Iterator[Shape], end: int, rules: Rules) -> Iterator[Shape]:
    """Yield the shapes of the records before source offset ``end``. The first shape beyond it ends the data there: only a
    batch that the end divides is taken apart.

    Raises:
        CorruptBatch: as the shapes do, if it is before the end.
    """
    for shaped in shapes:
        if isinstance(shaped, Piece):
            last = shaped.stretches[-1]
            if last.source + last.records <= end:
                yield shaped._replace(position=min(shaped.position, end))
                if shaped.position >= end:
                    return  # the following data may be damaged
                continue
            if shaped.stretches[0].source < end:
                yield from _divided(shaped, end, rules)
            yield Skipped(end, shaped.epoch)
            return
        if isinstance(shaped, Skipped):
            yield shaped._replace(position=min(shaped.position, end))
        elif (isinstance(shaped, Quarantined) and shaped.record.offset >= end) or (
            isinstance(shaped, Stop) and shaped.offset >= end
        ):
            yield Skipped(end, -1)
            return
        else:
            yield shaped


def _divided(piece: Piece, end: int, rules: Rules) -> Iterator[Shape]:
    if piece.memory is None:
        check(piece.batch)
    offsets = (
        offset for stretch in piece.stretches for offset in range(stretch.source, stretch.source + stretch.records)
    )
    records = [
        record._replace(offset=offset)
        for record, offset in zip(read_records(piece.batch), offsets, strict=True)
        if offset < end
    ]
    ending = piece.batch._replace(leader_epoch=piece.epoch)
    yield from rebuilt(records, ending, None, rules, Built.INCOMPLETE)
