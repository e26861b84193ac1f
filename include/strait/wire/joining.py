"""Joins small uncompressed batches into larger ones.

Their records are moved by the only compiled step (``strait.wire.moving``), at about the cost of copying and checking
their bytes. If that was not compiled when Strait was installed, nothing is joined here: records are then decoded and
rebuilt (``strait.wire.records``), as those of compressed batches are, at ten times the cost.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from crc32c import crc32c
from numpy.lib.stride_tricks import sliding_window_view

from strait.wire.batch import (
    CRC_FROM,
    HEADER_BYTES,
    HEADER_CODES,
    LENGTH,
    PREFIX_BYTES,
    Batch,
    make_header,
    seal,
)

try:
    from strait.wire.moving import moved
except ImportError:
    moved = None  # type: ignore[assignment]

COMPILED = moved is not None
"""Whether small batches can be joined."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_HEADER = np.dtype([(name, f">{code}") for name, code in zip(Batch._fields, HEADER_CODES, strict=False)])


class Row:
    """Batches that follow one another in a reply, all of them of magic 2, with a record at each of their offsets and no
    attribute set: not compressed, not transactional, with their producers' timestamps.

    Attributes:
        at: position of each batch's start in ``data``, and finally the end of the last batch.
        heads: their headers, by the fields' names in ``strait.wire.batch``.
    """

    def __init__(self, data: memoryview, at: Sequence[int], heads: Any) -> None:
        self.data = data
        self.at = at
        self.heads = heads

    @classmethod
    def of(cls, data: memoryview, least: int, *, besides: int = 0) -> "Row | None":
        """Return all whole batches of a partition's part of a reply; None if one of them does not qualify, there are
        fewer than ``least``, or nothing can be joined. They may have the attributes ``besides``, which are cleared when
        they are joined."""
        at = _bounds(data) if COMPILED else []
        if len(at) <= max(least, 1):
            return None
        starts = np.fromiter(at, np.int64, len(at) - 1)
        headers: Bytes = sliding_window_view(np.frombuffer(data, np.uint8), HEADER_BYTES)[starts]
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
        """The offset after the last batch, and that batch's leader epoch."""
        last = self.heads[-1]
        return int(last["base_offset"]) + int(last["records"]), int(last["leader_epoch"])

    def groups(self, least_bytes: int) -> list[int]:
        """Return bounds of groups that each reach ``least_bytes``; the last one has the remainder."""
        bounds, at = [0], self.at
        for number in range(1, len(at)):
            if at[number] - at[bounds[-1]] >= least_bytes:
                bounds.append(number)
        return bounds if bounds[-1] == len(self) else [*bounds, len(self)]

    def joined(self, first: int, behind: int) -> bytearray | None:
        """Return the batches [``first``, ``behind``) as one, without a producer, with offsets from 0.

        None if a checksum or the front of a record is invalid: decoding them one by one then shows the error and its
        offset.
        """
        data, at = self.data, self.at[first : behind + 1]
        sums = [crc32c(data[one + CRC_FROM : other]) for one, other in pairwise(at)]
        found = moved(data[at[0] : at[-1]]) if sums == self.heads["crc"][first:behind].tolist() else None
        if found is None:
            return None
        batch, first_ms, latest_ms, records = found
        batch[:HEADER_BYTES] = make_header(len(batch) - HEADER_BYTES, 0, first_ms, latest_ms, records)
        seal(batch)
        return batch


def _bounds(data: memoryview) -> list[int]:
    """Return the positions at which whole batches start, and the end of the last one."""
    found, at, end = [0], 0, len(data)
    length_at = LENGTH.unpack_from
    while end - at >= HEADER_BYTES:
        (length,) = length_at(data, at)
        at += PREFIX_BYTES + length
        if at > end or length < HEADER_BYTES - PREFIX_BYTES:
            break  # cut short; or an invalid length, which is detected when it is read as the first of a reply
        found.append(at)
    return found
