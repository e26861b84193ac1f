"""Checks the destination's log against the digests of the replication ledger. Pure."""

import zlib
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from struct import Struct

from crc32c import crc32c

from strait.audit.chunks import Mark
from strait.audit.comparing import Compared
from strait.audit.feed import Hole, Item
from strait.audit.findings import NOWHERE, Difference, Kind
from strait.state.offset_map import full_sequence
from strait.wire.batch import CRC_BYTES, CRC_FROM, Batch

_DIGEST = Struct(">qI")
_DIGEST_BYTES = 16


def check(items: Iterator[Item], marks: Sequence[Mark], producer_id: int) -> Compared:
    """Check the batches that a link has written. Each must match its checksum, and those of each mark its digest. Records
    that are proved so count as compared by batch.

    Args:
        items: of the destination's log, in order.
        marks: in the order of their records.
    """
    return _Check(marks, producer_id).run(items)


class _Check:
    def __init__(self, marks: Sequence[Mark], producer_id: int) -> None:
        self._producer_id = producer_id
        self._marks = iter(marks)
        self._result = Compared()
        self._digests = blake2b(digest_size=_DIGEST_BYTES), blake2b(digest_size=_DIGEST_BYTES)
        self._mark: Mark | None = None
        self._expected = 0
        self._high = 0  # number of the record after the last one that was read
        self._unread = False  # offsets after the last batch of the link could not be read
        self._start()

    def run(self, items: Iterator[Item]) -> Compared:
        for item in items:
            if isinstance(item, Hole):
                self._hole(item)
                continue
            self._result.copy_bytes += len(item.view)
            self._result.copy_batches += 1
            if item.magic == 2 and item.records > 0:
                self._take(item, intact=crc32c(item.view[CRC_FROM:]) == item.crc)
        while self._mark is not None:
            self._settle(self._mark)
        self._result.digests = self._digests[0].hexdigest(), self._digests[1].hexdigest()
        return self._result

    def _start(self) -> None:
        self._mark = next(self._marks, None)
        self._chain = 0
        self._damaged = 0  # records of damaged batches
        self._named = self._unread  # a difference of this mark's records was added
        if self._mark is not None:
            self._expected = self._mark.first

    def _hole(self, hole: Hole) -> None:
        self._unread = True
        kind: Kind = "deleted" if hole.why == "deleted" else "damaged"
        self._add(
            kind, hole.first, hole.end - hole.first, "destination" if kind == "deleted" else "destination: unreadable"
        )

    def _take(self, batch: Batch, *, intact: bool) -> None:
        own = batch.producer_id == self._producer_id
        if not own and intact:
            return
        first = full_sequence(batch.base_sequence, near=self._expected)
        if not intact:
            fits = own and first == self._expected and batch.whole
            # Its number may be the damaged part, so its offset shows whether it is one of the mark's.
            if self._mark is not None and batch.base_offset >= self._mark.copy_from:
                self._add("damaged", batch.base_offset, max(1, batch.records) if fits else 1, "destination")
            if not fits:
                self._unread = True
                return
            self._damaged += batch.records
        if first < self._high:
            self._add("duplicate", batch.base_offset, batch.records)
            return
        self._high = first + batch.records
        while self._mark is not None and first >= self._mark.end:
            self._settle(self._mark)
        self._unread = False
        mark, end = self._mark, first + batch.records
        if mark is None or end <= mark.first:
            return
        if first > self._expected:
            self._lack(first, batch.base_offset)
        self._chain = zlib.crc32(batch.view[CRC_BYTES], self._chain)
        self._result.newest_ms = max(self._result.newest_ms, batch.max_timestamp if intact else -1)
        self._expected = end
        if end >= mark.end:
            self._settle(mark)

    def _settle(self, mark: Mark) -> None:
        """Judge the records of a mark, and start with the next one."""
        if self._expected < mark.end:
            self._lack(mark.end, mark.copy_from)
        count = mark.end - mark.first
        if self._chain == mark.digest:
            self._result.records += count
            self._result.by_batch += count - self._damaged
        elif not self._named:
            self._add("different", mark.copy_from, count, "not as the ledger has them")
        for digest, found in zip(self._digests, (mark.digest, self._chain), strict=True):
            digest.update(_DIGEST.pack(mark.end, found))
        self._start()

    def _lack(self, below: int, offset: int) -> None:
        if not self._named:
            detail = f"records {self._expected} to {below - 1} of the link"
            self._add("missing", offset, below - self._expected, detail)
        self._expected = below

    def _add(self, kind: Kind, offset: int, records: int, detail: str = "") -> None:
        self._named = True
        self._result.tally.add(Difference(kind, NOWHERE, offset, records, detail=detail))
