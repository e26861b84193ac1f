"""Generated histories of a source partition: its batches, and what a reader of committed records sees of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from strait.wire.batch import LOG_APPEND_TIME, TRANSACTIONAL
from strait.wire.records import Record
from support.model.batches import marker, source_batch

MAX_BYTES = 4_000  # so that some batches are larger than the destination takes
KINDS = ("plain", "small", "holes", "emptied", "append_time", "large", "transactional", "end", "missing")


@dataclass
class History:
    """``ends[n]``: the offset behind batch n. ``aborted``: producer id, first offset, and that of the marker.
    ``producers``: of each record's offset."""

    batches: list[bytearray] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    committed: list[Record] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    end: int = 0
    producers: dict[int, int] = field(default_factory=dict)

    def bytes_from(self, offset: int, batches: int | None = None) -> memoryview:
        """What a broker serves: whole batches, the first of them with ``offset`` in it."""
        first = next((at for at, end in enumerate(self.ends) if end > offset), len(self.batches))
        behind = len(self.batches) if batches is None else first + batches
        return memoryview(bytearray().join(self.batches[first:behind]))

    def aborted_from(self, offset: int) -> list[tuple[int, int]]:
        """As a fetch reply tells them: those that end at or behind its first offset."""
        return [(producer_id, first) for producer_id, first, end in self.aborted if end >= offset]


@st.composite
def histories(draw: st.DrawFn, kinds: Sequence[str] = KINDS, fewest: int = 1) -> History:
    made, open_transactions = History(), dict[int, tuple[int, list[Record]]]()
    for kind in [*draw(st.lists(st.sampled_from(kinds), min_size=fewest, max_size=fewest + 30)), *["end"] * 3]:
        _add(draw, made, open_transactions, kind)
    made.committed.sort(key=lambda record: record.offset)
    return made


def _add(draw: st.DrawFn, made: History, transactions: dict[int, tuple[int, list[Record]]], kind: str) -> None:
    if kind == "missing":
        made.end += draw(st.integers(1, 50))  # compaction took whole batches
    elif kind == "end":
        if transactions:
            _finish(draw, made, transactions)
    else:
        codec, count = draw(st.integers(0, 4)), 1 if kind == "small" else draw(st.integers(1, 30))
        records = [_record(made.end + n, kind) for n in range(count)]
        behind = made.end + count
        if kind in ("holes", "emptied"):
            left = draw(st.sets(st.sampled_from(records), max_size=count)) if kind == "holes" else set()
            records = [record for record in records if record in left]
        if kind == "append_time":
            records = [record._replace(timestamp_ms=records[-1].timestamp_ms) for record in records]
        producer_id = draw(st.integers(1, 3) if kind == "transactional" else st.sampled_from((-1, 4, 5)))
        attributes = {"append_time": LOG_APPEND_TIME, "transactional": TRANSACTIONAL}.get(kind, 0)
        raw = source_batch(records, made.end, behind, codec=codec, attributes=attributes, producer_id=producer_id)
        if kind == "transactional":
            _, written = transactions.setdefault(producer_id, (made.end, []))
            written += records
        else:
            made.committed += records
        made.producers |= dict.fromkeys((record.offset for record in records), producer_id)
        _put(made, raw, behind)


def _finish(draw: st.DrawFn, made: History, transactions: dict[int, tuple[int, list[Record]]]) -> None:
    producer_id = draw(st.sampled_from(sorted(transactions)))
    first, written = transactions.pop(producer_id)
    commit = draw(st.booleans())
    if commit:
        made.committed += written
    else:
        made.aborted.append((producer_id, first, made.end))
    _put(made, marker(made.end, producer_id, commit=commit), made.end + 1)


def _put(made: History, raw: bytearray, behind: int) -> None:
    made.batches.append(raw)
    made.ends.append(behind)
    made.end = behind


def _record(offset: int, kind: str) -> Record:
    value = (b"%d " % offset) * (400 if kind == "large" else 1)
    return Record(offset, 1_700_000_000_000 + offset, b"k", value, (("n", b"%d" % offset),) if offset % 5 == 0 else ())
