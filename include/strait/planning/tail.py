"""The tail of a link: records of its source that its destination never got, and transactions that this cuts. Pure.

A transaction writes to several partitions together, but each partition is replicated at its own pace. If the source is
lost, a transaction may be on the destination in some of its partitions and not in others. The source's log does not
show which markers in different partitions end the same transaction. Its transaction log does: it names each
transaction's partitions, in order. The last marker of a producer in a partition belongs to its last transaction there,
and so on backward.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from strait.model import TopicPartition
from strait.text import printable


@dataclass(frozen=True, slots=True)
class TailPart:
    """The tail of one source partition.

    Attributes:
        from_offset: the next offset that the link would replicate; None: unknown, and ``detail`` has the reason.
        to_offset: the source's last stable offset: the records after it belong to open transactions, or are between
            them.
        exact: whether every record from ``from_offset`` on is missing on the destination. If not, some may exist there.
        written: number of records of the link in the destination partition.
        transformed: whether the topic's rule transforms its records, and may leave some of these out.
    """

    topic: str
    partition: int
    destination: str
    from_offset: int | None
    to_offset: int
    exact: bool
    detail: str = ""
    written: int = 0
    transformed: bool = False

    @property
    def place(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def range(self) -> tuple[int, int]:
        """Source offsets [from, to) to read."""
        return (self.to_offset, self.to_offset) if self.from_offset is None else (self.from_offset, self.to_offset)

    @property
    def has_offsets(self) -> bool:
        first, end = self.range
        return first < end


def tail_part(
    place: TopicPartition,
    destination: str,
    point: tuple[int | None, bool, str, int],
    log: tuple[int, int, int],
) -> TailPart:
    """Judge one partition.

    Args:
        point: next offset to replicate, whether it is exact, why not, and how many records were written.
        log: the source's first offset, its last stable offset, and its end.
    """
    offset, exact, detail, written = point
    start, stable, end = log
    notes = [detail] if detail else []
    if offset is not None and offset < start:
        notes.append(f"offsets {offset:,} to {start - 1:,} were deleted on the source")
        offset = start
    if offset is not None and offset > end:
        notes.append(f"the source ends at offset {end:,}, before what was copied")
    if stable < end:
        notes.append(f"offsets {stable:,} to {end - 1:,} are of open transactions, or between them")
    return TailPart(*place, destination, offset, stable, exact, "; ".join(notes), written)


def of_transformed(part: TailPart) -> TailPart:
    """Return the part as one of a topic whose records are transformed."""
    note = "before its rule's `transform`, which may leave some out"
    return replace(
        part, transformed=True, detail="; ".join(filter(None, (part.detail, note if part.has_offsets else "")))
    )


def doubted(part: TailPart, why: str) -> TailPart:
    """Return the part or, if there is a reason to doubt its start, the part marked as not exact."""
    return replace(part, exact=False, detail="; ".join(filter(None, (why, part.detail)))) if why else part


class Extent(NamedTuple):
    """Size of a tail. ``bytes``: of keys, values and headers; the times: None if no record has a timestamp."""

    records: int = 0
    bytes: int = 0
    first_ms: int | None = None
    last_ms: int | None = None


class SizedRecord(Protocol):
    """A record of a tail."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def bytes(self) -> int: ...


def extents(parts: Iterable[TailPart], records: Iterable[SizedRecord]) -> dict[TopicPartition, Extent]:
    """Return the extent of each partition's tail."""
    found = {part.place: Extent() for part in parts}
    for record in records:
        place = TopicPartition(record.topic, record.partition)
        count, size, *times = found[place]
        known = [time for time in (*times, record.timestamp_ms) if time is not None and time >= 0]
        found[place] = Extent(count + 1, size + record.bytes, min(known, default=None), max(known, default=None))
    return found


# --- transactions -----------------------------------------------------------------------------------------------------


class Batch(Protocol):
    """Offsets [base, next) of a log, as `strait.net.partition_logs` reads it."""

    @property
    def base(self) -> int: ...
    @property
    def next(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def transactional(self) -> bool: ...
    @property
    def control(self) -> bool: ...
    @property
    def aborts(self) -> bool: ...
    @property
    def time_ms(self) -> int: ...


class Remainder(NamedTuple):
    """The part of one transaction in a partition's tail. ``first``: offset of the first record; -1: no record, only the
    marker at offset ``marker``."""

    first: int
    marker: int
    committed: bool
    time_ms: int


Remainders = Mapping[TopicPartition, Mapping[int, Sequence[Remainder]]]
"""Source partition -> producer ID -> the parts of the producer's ended transactions in its tail, in order."""


def remainders(batches: Iterable[Batch], position: int) -> dict[int, list[Remainder]]:
    """Return producer ID -> remainders, for one partition.

    Args:
        batches: from the one that holds ``position`` to the end of the log.
        position: the next offset that the link would replicate.
    """
    found: dict[int, list[Remainder]] = defaultdict(list)
    first: dict[int, int] = {}
    for batch in batches:
        if not batch.transactional or batch.next <= position:
            continue
        if batch.control:
            begun = first.pop(batch.producer_id, -1)
            found[batch.producer_id].append(Remainder(begun, batch.base, not batch.aborts, batch.time_ms))
        else:
            first.setdefault(batch.producer_id, max(batch.base, position))
    return dict(found)


def is_complete(batches: Iterable[Batch], first: int, end: int) -> bool:
    """Return whether batches hold every offset of [``first``, ``end``): nothing in between was deleted or compacted
    away."""
    at = first
    for batch in batches:
        if batch.base > at:
            return False
        at = max(at, batch.next)
    return at >= end


class Ended(NamedTuple):
    """A transaction that has ended, from the transaction log."""

    transactional_id: str
    producer_id: int
    committed: bool
    partitions: frozenset[TopicPartition]
    at_ms: int


class MissingPart(NamedTuple):
    """Records of a transaction in source offsets [``from_offset``, ``to_offset``), possibly mixed with other records.
    ``in_part``: whether earlier records of the same transaction are on the destination."""

    topic: str
    partition: int
    from_offset: int
    to_offset: int
    in_part: bool


class CutTransaction(NamedTuple):
    """A committed transaction of which some records are on the destination and some are not. ``copied``: the partitions
    whose records are all there."""

    transactional_id: str
    producer_id: int
    committed_at_ms: int
    copied: tuple[TopicPartition, ...]
    missing: tuple[MissingPart, ...]


def as_data(one: CutTransaction) -> dict[str, Any]:
    """Return the transaction, machine-readable."""
    copied = [place._asdict() for place in one.copied]
    return {**one._asdict(), "copied": copied, "missing": [part._asdict() for part in one.missing]}


def described(one: CutTransaction) -> str:
    """Return the transaction in words."""
    whole = f"replicated {', '.join(map(str, one.copied))}; " if one.copied else ""
    lacks = [
        f"{part.topic}-{part.partition} from {part.from_offset:,} to {part.to_offset - 1:,}"
        + (", where it is replicated up to there" if part.in_part else "")
        for part in one.missing
    ]
    return f"transaction {printable(one.transactional_id)} (producer ID {one.producer_id}): {whole}missing {', '.join(lacks)}"


def to_resolve(found: Remainders) -> set[int]:
    """Return the producers with a committed transaction that is not replicated, at least in part."""
    return {
        producer
        for of_place in found.values()
        for producer, parts in of_place.items()
        if any(part.committed and part.first >= 0 for part in parts)
    }


def cut(
    found: Remainders, ended: Mapping[int, Sequence[Ended]], begun: Mapping[tuple[TopicPartition, int], bool | None]
) -> tuple[list[CutTransaction], set[int]]:
    """Return the transactions that the tail cuts, and the producers for which that cannot be determined.

    Args:
        ended: producer -> its transactions in order, up to the newest, with none missing between them.
        begun: whether a producer's last batch before the tail of a partition is a record of its first transaction in
            that tail; None: unknown. Pairs that are absent are not needed.
    """
    transactions: list[CutTransaction] = []
    unknown: set[int] = set()
    places = found.keys()
    for producer in sorted(to_resolve(found)):
        left = Counter({place: len(of_place.get(producer, ())) for place, of_place in found.items()})
        if any(begun.get((place, producer), False) is None for place in places if left[place]):
            unknown.add(producer)
        for one in reversed(ended.get(producer, ())):
            if not any(left.values()):
                break
            transactions.extend(_cut_one(one, found, left, begun))
            left.subtract({place: 1 for place in one.partitions & places if left[place]})
        if any(left.values()):
            unknown.add(producer)
    return sorted(transactions, key=lambda one: (one.committed_at_ms, one.producer_id)), unknown


def _cut_one(
    one: Ended,
    found: Remainders,
    left: Mapping[TopicPartition, int],
    begun: Mapping[tuple[TopicPartition, int], bool | None],
) -> list[CutTransaction]:
    """Return the transaction if it is cut. ``left``: how many of the producer's transactions in each tail are this one
    or older."""
    if not one.committed:
        return []
    copied, missing = [], []
    for place in sorted(one.partitions & found.keys()):
        if not left[place]:
            copied.append(place)
            continue
        part = found[place][one.producer_id][left[place] - 1]
        in_part = left[place] == 1 and bool(begun.get((place, one.producer_id)))
        if part.first >= 0:
            missing.append(MissingPart(*place, part.first, part.marker, in_part))
        elif in_part:
            copied.append(place)
    if not missing or not (copied or any(part.in_part for part in missing)):
        return []
    return [CutTransaction(one.transactional_id, one.producer_id, one.at_ms, tuple(copied), tuple(missing))]
