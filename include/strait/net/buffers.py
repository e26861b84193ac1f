"""Memory of a slot: reused buffers under one budget. Data that does not fit is not fetched: this is the back-pressure.

Each component that fetches from a broker holds a `Share` of the pool. Part of the share is guaranteed; memory that is
guaranteed to no share goes to the shares that hold the least. So a backlog on one broker never takes memory that
another broker needs.
"""

import mmap
from collections import defaultdict
from collections.abc import Callable

Memory = bytearray | mmap.mmap

SMALL_BYTES = 1 << 16
"""Frames up to this size get a buffer of exactly their size. Larger frames get one of the next power of two, which is
kept for the next frame, since fresh memory of that size costs more than reading into it."""
_HUGE_BYTES = 1 << 20
"""Buffers of this size or more are allocated in huge pages: 8 page faults instead of 4096 for the first use of 16
MiB."""


class Buffer:
    """Memory for one frame, shared by the batches in it and returned to the pool when the last of them releases it."""

    __slots__ = ("_give_back", "_holders", "memory", "share", "size")

    def __init__(self, give_back: Callable[[Memory], None], memory: Memory, size: int) -> None:
        self._give_back = give_back
        self._holders = 1
        self.memory = memory
        self.share: Share | None = None
        self.size = size

    def view(self) -> memoryview:
        """Return the frame's bytes."""
        return memoryview(self.memory)[: self.size]

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        """Release one hold. Each hold must be released exactly once; otherwise memory would be reused under a batch."""
        self._holders -= 1
        if self._holders == 0:
            if self.share is not None:
                self.share.held_bytes -= len(self.memory)
            self._give_back(self.memory)


class Share:
    """The part of a pool's memory that one source of data may use.

    Attributes:
        guaranteed_bytes: reserved for this share, used or not.
        held_bytes: in use and expected.
        waits: its last request did not fit. Until one fits, shares that hold more get nothing beyond their guarantee.
    """

    __slots__ = ("_borrows", "_pool", "guaranteed_bytes", "held_bytes", "waits")

    def __init__(self, pool: "BufferPool", *, borrows: bool) -> None:
        self._pool = pool
        self._borrows = borrows
        self.guaranteed_bytes = 0
        self.held_bytes = 0
        self.waits = False

    def fitting(self, frame_bytes: int) -> int:
        """Return the largest size up to ``frame_bytes``, halved as often as necessary, of a reply that `expect` can
        reserve room for once everything else has been released. For a larger one it would fail forever."""
        most = self._pool.most_of(self) if self._borrows else self.guaranteed_bytes
        while self._pool.room_for(frame_bytes) > most and frame_bytes > 1:
            frame_bytes //= 2
        return frame_bytes

    def expect(self, frame_bytes: int) -> int:
        """Reserve room for a reply of up to ``frame_bytes``, or twice that if the last reply's batches were rebuilt:
        both versions exist for a moment. Returns the number of bytes reserved, to be passed to `expect_no_more`
        unchanged; 0 if there is not enough room now."""
        room = self._pool.room_for(frame_bytes)
        if self.held_bytes + room > self.guaranteed_bytes and not (self._borrows and self._pool.can_lend(self, room)):
            self.waits = self._borrows
            return 0
        self.waits = False
        self.held_bytes += room
        self._pool.expected_bytes += room
        return room

    def expect_no_more(self, room: int) -> None:
        """Release the reserved room: the reply has arrived, or never will."""
        self.held_bytes -= room
        self._pool.expected_bytes -= room

    def charge(self, buffer: Buffer) -> None:
        """Count a buffer in this share until it is released."""
        buffer.share = self
        self.held_bytes += len(buffer.memory)

    @property
    def unused_bytes(self) -> int:
        """The part of ``guaranteed_bytes`` that is not held."""
        return max(0, self.guaranteed_bytes - self.held_bytes)


class BufferPool:
    """Hands out buffers. The bytes in use and expected together stay within the budget, unless a broker sends a batch
    larger than requested: it must be accepted, or the partition could not get past it."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self.expected_bytes = 0
        self._shares: list[Share] = []
        self._idle_bytes = 0
        self._rebuilding = False
        self._idle: dict[int, list[Memory]] = defaultdict(list)

    def share(self, *, borrows: bool = True) -> Share:
        """Create a share. Without ``borrows`` it never gets more than its guaranteed part."""
        share = Share(self, borrows=borrows)
        self._shares.append(share)
        return share

    def resize(self, budget_bytes: int) -> None:
        """Change the budget. Memory in use beyond a smaller one is not taken away, but nothing more is lent before it
        has been released."""
        self.budget_bytes = budget_bytes
        self._use(0)

    @property
    def is_short(self) -> bool:
        """Whether a share waits for memory, or more than half of the budget is in use."""
        return 2 * self.used_bytes > self.budget_bytes or any(share.waits for share in self._shares)

    def most_of(self, share: Share) -> int:
        """Return how many bytes a share that borrows can have if no other share holds any."""
        lent = self.budget_bytes - sum(other.guaranteed_bytes for other in self._shares if other is not share)
        return max(share.guaranteed_bytes, lent)

    def room_for(self, frame_bytes: int) -> int:
        return 2 * frame_bytes if self._rebuilding else frame_bytes

    def can_lend(self, to: Share, room: int) -> bool:
        """Whether a share may get ``room`` bytes beyond its guaranteed part: they are free, no other share is
        guaranteed them, and no share that holds less waits for them."""
        others = [share for share in self._shares if share is not to]
        guaranteed = sum(share.unused_bytes for share in others)
        return self.used_bytes + self.expected_bytes + room + guaranteed <= self.budget_bytes and not any(
            share.waits and share.held_bytes < to.held_bytes for share in others
        )

    def take(self, size: int) -> Buffer:
        """Return a buffer for a frame of ``size`` bytes. Always succeeds: the broker has already sent the frame."""
        if size <= SMALL_BYTES:
            self._use(size)
            return Buffer(self.give_back, bytearray(size), size)
        self._rebuilding = False
        length = 1 << (size - 1).bit_length()
        idle = self._idle[length]
        if idle:
            memory = idle.pop()
            self._idle_bytes -= length
        else:
            memory = _fresh(length)
        self._use(length)
        return Buffer(self.give_back, memory, size)

    def adopt(self, memory: bytearray, made_of: Buffer | None = None) -> Buffer:
        """Return a buffer for memory allocated elsewhere, such as a batch rebuilt from another buffer. It counts toward
        the budget until it is released, and is not kept for reuse."""
        self._rebuilding = True
        self._use(len(memory))
        buffer = Buffer(self._disown, memory, len(memory))
        if made_of is not None and made_of.share is not None:
            made_of.share.charge(buffer)
        return buffer

    def _use(self, length: int) -> None:
        self.used_bytes += length
        if self.used_bytes + self._idle_bytes > self.budget_bytes:
            self._idle.clear()  # mostly of sizes that arriving frames no longer have
            self._idle_bytes = 0

    def _disown(self, memory: Memory) -> None:
        self.used_bytes -= len(memory)

    def give_back(self, memory: Memory) -> None:
        length = len(memory)
        self.used_bytes -= length
        if length > SMALL_BYTES:
            self._idle[length].append(memory)
            self._idle_bytes += length


def _fresh(length: int) -> Memory:
    if length < _HUGE_BYTES:
        return bytearray(length)
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
