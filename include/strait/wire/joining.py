"""Small batches without compression joined into larger ones, a whole reply at once.

Of a record only what stands before its key changes when it moves to another batch: its length, and its time and offset, which
are relative to the batch's. These are read and written as columns for all records of a reply together; what is behind them is
copied as it is. That costs a third of reading the records one by one and building batches of them
(``strait.wire.records``), which stays the way for everything that is not as plain as what is taken here.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c
from numpy.lib.stride_tricks import sliding_window_view

from strait.wire.batch import CRC_FROM, HEADER_BYTES, HEADER_CODES, LENGTH, PREFIX_BYTES, Batch, make_header, seal

Column = np.ndarray[tuple[int], np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_HEADER = np.dtype([(name, f">{code}") for name, code in zip(Batch._fields, HEADER_CODES, strict=False)])
_LENGTH_BYTES = 5  # at most, of a varint that says how long a record is or which offset it has
_TIME_BYTES = 9  # of one that says its time; one of ten cannot be shifted in 64 bits


class Row:
    """Batches that follow one another in a reply, all of them of magic 2, with a record at each of their offsets, with no
    attribute set that says otherwise: not compressed, of no transaction, with their producers' timestamps.

    Attributes:
        at: where each batch begins in ``data``, and at last where the last one ends.
        heads: their headers, by the fields' names in ``strait.wire.batch``.
    """

    def __init__(self, data: memoryview, at: Sequence[int], heads: Any) -> None:
        self.data = data
        self.at = at
        self.heads = heads

    @classmethod
    def of(cls, data: memoryview, least: int, *, besides: int = 0) -> "Row | None":
        """All whole batches of a partition's part of a reply; None where one of them is not so, or there are fewer. They may
        have the attributes ``besides``, of which nothing is left when they are joined."""
        at = _bounds(data)
        if len(at) <= max(least, 1):
            return None
        headers: Bytes = sliding_window_view(np.frombuffer(data, np.uint8), HEADER_BYTES)[_column(at[:-1])]
        heads = headers.view(_HEADER)[:, 0]
        plain = (
            (heads["magic"] == 2)
            & (heads["attributes"] & ~besides == 0)
            & (heads["records"] > 0)
            & (heads["records"] == heads["last_offset_delta"] + 1)
        )
        if not plain.all() or np.any(np.diff(heads["base_offset"]) < heads["records"][:-1]):
            return None
        return cls(data, at, heads)

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def end(self) -> tuple[int, int]:
        """The offset behind the last batch, and the leader epoch of that."""
        last = self.heads[-1]
        return int(last["base_offset"]) + int(last["records"]), int(last["leader_epoch"])

    def groups(self, least_bytes: int) -> list[int]:
        """Bounds of groups that have just so many bytes; the last one has what is left."""
        bounds, at = [0], self.at
        for number in range(1, len(at)):
            if at[number] - at[bounds[-1]] >= least_bytes:
                bounds.append(number)
        return bounds if bounds[-1] == len(self) else [*bounds, len(self)]

    def joined(self, bounds: Sequence[int]) -> Iterator[bytearray] | None:
        """The batches between one bound, of which the first is 0, and the next as one, of no producer, with offsets from 0.

        None where a checksum or a record's front is not as it must be: reading them one by one tells what is wrong, and where.
        """
        used = Row(self.data, self.at[: bounds[-1] + 1], self.heads[: bounds[-1]])
        found = used._records() if used._checked() else None
        if found is None:
            return None
        counts = np.cumsum(np.concatenate(([0], used.heads["records"])))
        cuts = counts[np.array(bounds)]
        sizes = np.diff(cuts)
        numbers = np.arange(cuts[-1]) - np.repeat(cuts[:-1], sizes)
        since = found.times_ms - np.repeat(found.times_ms[cuts[:-1]], sizes)
        fronts, ends = _fronts(found.behind - found.rest, since, numbers)
        return self._built(cuts.tolist(), found, fronts, [0, *ends.tolist()])

    def _built(self, cuts: Sequence[int], found: "_Records", fronts: bytes, ends: Sequence[int]) -> Iterator[bytearray]:
        data, rest, behind = self.data, found.rest.tolist(), found.behind.tolist()
        for start, stop in pairwise(cuts):
            pieces: list[bytes | memoryview] = [b""] * (2 * (stop - start))
            pieces[::2] = [fronts[one:other] for one, other in pairwise(ends[start : stop + 1])]
            pieces[1::2] = [data[one:other] for one, other in zip(rest[start:stop], behind[start:stop], strict=True)]
            times_ms = found.times_ms[start:stop]
            size = ends[stop] - ends[start] + sum(behind[start:stop]) - sum(rest[start:stop])
            header = make_header(size, 0, int(times_ms[0]), int(times_ms.max()), stop - start)
            batch = bytearray().join([header, *pieces])
            seal(batch)
            yield batch

    def _checked(self) -> bool:
        data = self.data
        sums = [crc32c(data[one + CRC_FROM : other]) for one, other in pairwise(self.at)]
        return bool((_column(sums) == self.heads["crc"]).all())

    def _records(self) -> "_Records | None":
        counts = self.heads["records"].astype(np.int64)
        held = np.frombuffer(self.data, np.uint8)
        starts, ends = _column(self.at[:-1]) + HEADER_BYTES, _column(self.at[1:])
        behind = ends
        if counts.max() > 1:
            found = _record_starts(held, starts, ends, counts)
            if found is None:
                return None
            starts = found
            behind = np.append(starts[1:], 0)
            behind[np.cumsum(counts) - 1] = ends
        length = _read(held, starts, _LENGTH_BYTES)
        time = None if length is None else _read(held, length[1] + 1, _TIME_BYTES)
        offset = None if length is None or time is None else _read(held, time[1], _LENGTH_BYTES)
        if length is None or time is None or offset is None:
            return None
        numbers = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
        rest = offset[1]
        right = (
            (length[1] + length[0] == behind)
            & (held.take(length[1], mode="clip") == 0)  # the record's attributes
            & (offset[0] == numbers)
            & (rest <= behind)
        )
        if not right.all():
            return None
        return _Records(rest, behind, np.repeat(self.heads["base_timestamp"].astype(np.int64), counts) + time[0])


class _Records(NamedTuple):
    """Of each record: where its key begins, where it ends, and its time."""

    rest: Column
    behind: Column
    times_ms: Column


def _bounds(data: memoryview) -> list[int]:
    """Where whole batches begin and the last of them ends."""
    found, at, end = [0], 0, len(data)
    length_at = LENGTH.unpack_from
    while end - at >= HEADER_BYTES:
        (length,) = length_at(data, at)
        at += PREFIX_BYTES + length
        if at > end or length < HEADER_BYTES - PREFIX_BYTES:
            break  # cut short; or not a length, which is found when it is read as the first of a reply
        found.append(at)
    return found


def _record_starts(held: Bytes, starts: Column, ends: Column, counts: Column) -> Column | None:
    """Where each record begins, from one to the next in all batches at the same time. None where they do not fill a batch."""
    most, cursors = int(counts.max()), starts
    found = np.empty((most, len(starts)), np.int64)
    for number in range(most):
        found[number] = cursors
        goes_on = number < counts
        length = _read(held, np.where(goes_on, cursors, starts), _LENGTH_BYTES)
        if length is None:
            return None
        cursors = np.where(goes_on, length[0] + length[1], cursors)
    if not np.array_equal(cursors, ends):
        return None
    begun: Column = found.T[np.arange(most) < counts[:, None]]
    return begun


def _column(values: Sequence[int]) -> Column:
    return np.fromiter(values, np.int64, len(values))


def _read(held: Bytes, starts: Column, most: int) -> tuple[Column, Column] | None:
    """The signed varints that begin there, and where each ends. None where one is longer.

    What would lie outside is read as the byte at that end: it shows, since what is behind it then lies outside, too.
    """
    byte = held.take(starts, mode="clip").astype(np.int64)
    raw, behind, goes_on, number = byte & 0x7F, starts + 1, byte >= 0x80, 1
    while goes_on.any():
        if number == most:
            return None
        byte = held.take(starts + number, mode="clip").astype(np.int64)
        raw |= np.where(goes_on, (byte & 0x7F) << (7 * number), 0)
        behind += goes_on
        goes_on &= byte >= 0x80
        number += 1
    return (raw >> 1) ^ -(raw & 1), behind


def _fronts(rest_bytes: Column, since_ms: Column, numbers: Column) -> tuple[bytes, Column]:
    """Of each record all that comes before its key, one after the other, and where each of them ends."""
    time, time_bytes = _written(since_ms)
    number, number_bytes = _written(numbers)
    length, length_bytes = _written(rest_bytes + 1 + time_bytes + number_bytes)
    columns = np.hstack((length, np.zeros((len(numbers), 1), np.uint8), time, number))
    used = np.hstack(
        (
            np.arange(length.shape[1]) < length_bytes[:, None],
            np.ones((len(numbers), 1), bool),
            np.arange(time.shape[1]) < time_bytes[:, None],
            np.arange(number.shape[1]) < number_bytes[:, None],
        )
    )
    return columns[used].tobytes(), np.cumsum(length_bytes + 1 + time_bytes + number_bytes)


def _written(values: Column) -> tuple[Bytes, Column]:
    """As signed varints, a row each, and how many bytes of its row each takes."""
    raw = ((values << 1) ^ (values >> 63)).view(np.uint64)
    most = max(1, -(-int(raw.max()).bit_length() // 7))
    groups = raw[:, None] >> np.arange(0, 7 * most, 7, dtype=np.uint64)
    size = np.maximum(1, (groups != 0).sum(axis=1))
    more = np.where(np.arange(most) < size[:, None] - 1, 0x80, 0)
    return ((groups & np.uint64(0x7F)).astype(np.uint8) | more.astype(np.uint8)), size
