"""Memory of a slot: reused buffers under one budget. What does not fit is not fetched; that is the back-pressure.

Who asks a broker for data holds a `Share` of the pool. A part of it is guaranteed; what nobody is guaranteed goes to
those that hold the least. So a backlog on one broker takes nothing that another one needs.
"""

import mmap
from collections import defaultdict
from collections.abc import Callable

Memory = bytearray | mmap.mmap

SMALL_BYTES = 1 << 16
"""Frames up to this size get a buffer of exactly theirs; larger ones one of the next power of two, which is kept for
the next frame, since fresh memory of that size costs more than reading into it."""
_HUGE_BYTES = 1 << 20
"""From here on memory is asked for in huge pages: 8 page faults instead of 4096 for the first use of 16 MiB."""


class Buffer:
    """Memory for one frame, shared by the batches in it and given back when the last of them lets go."""

    __slots__ = ("_give_back", "_holders", "memory", "share", "size")

    def __init__(self, give_back: Callable[[Memory], None], memory: Memory, size: int) -> None:
        self._give_back = give_back
        self._holders = 1
        self.memory = memory
        self.share: Share | None = None
        self.size = size

    def view(self) -> memoryview:
        """The frame's bytes."""
        return memoryview(self.memory)[: self.size]

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        """Give up one hold. Each hold is released exactly once, or memory would be reused under a batch."""
        self._holders -= 1
        if self._holders == 0:
            if self.share is not None:
                self.share.held_bytes -= len(self.memory)
            self._give_back(self.memory)


class Share:
    """What one source of data has of a pool's memory.

    Attributes:
        guaranteed_bytes: nobody else gets these, used or not.
        held_bytes: in use and expected.
        waits: it was refused what it last asked for, and those that hold more get nothing until it has got it.
    """

    __slots__ = ("_borrows", "_pool", "guaranteed_bytes", "held_bytes", "waits")

    def __init__(self, pool: "BufferPool", *, borrows: bool) -> None:
        self._pool = pool
        self._borrows = borrows
        self.guaranteed_bytes = 0
        self.held_bytes = 0
        self.waits = False

    def expect(self, frame_bytes: int) -> int:
        """Set room aside for a reply of up to that size, twice if the last one's batches were rebuilt: for a moment
        both are there. Returns how much, to be given back as it is; 0 if there is not so much now."""
        room = self._pool.room_for(frame_bytes)
        if self.held_bytes + room > self.guaranteed_bytes and not (self._borrows and self._pool.can_lend(self, room)):
            self.waits = self._borrows
            return 0
        self.waits = False
        self.held_bytes += room
        self._pool.expected_bytes += room
        return room

    def expect_no_more(self, room: int) -> None:
        """The reply has come, or never will."""
        self.held_bytes -= room
        self._pool.expected_bytes -= room

    def charge(self, buffer: Buffer) -> None:
        """Count a buffer here until it is let go."""
        buffer.share = self
        self.held_bytes += len(buffer.memory)

    @property
    def unused_bytes(self) -> int:
        """Of what is guaranteed."""
        return max(0, self.guaranteed_bytes - self.held_bytes)


class BufferPool:
    """Hands out buffers. What is in use and what is expected together stay within the budget, unless a broker sends a
    batch larger than what was asked for: that must be taken, or it would never come past."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self.expected_bytes = 0
        self._shares: list[Share] = []
        self._idle_bytes = 0
        self._rebuilding = False
        self._idle: dict[int, list[Memory]] = defaultdict(list)

    def share(self, *, borrows: bool = True) -> Share:
        """Another share; one that does not borrow never gets more than its guaranteed part."""
        share = Share(self, borrows=borrows)
        self._shares.append(share)
        return share

    def room_for(self, frame_bytes: int) -> int:
        return 2 * frame_bytes if self._rebuilding else frame_bytes

    def can_lend(self, to: Share, room: int) -> bool:
        """Whether a share may get so much beyond its guaranteed part: it is there, nobody else is guaranteed it, and
        nobody who holds less waits for it."""
        others = [share for share in self._shares if share is not to]
        guaranteed = sum(share.unused_bytes for share in others)
        return self.used_bytes + self.expected_bytes + room + guaranteed <= self.budget_bytes and not any(
            share.waits and share.held_bytes < to.held_bytes for share in others
        )

    def take(self, size: int) -> Buffer:
        """A buffer for a frame of ``size`` bytes. Always succeeds: the broker has already sent it."""
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
        """Count memory that was made elsewhere, a batch rebuilt from what is in another buffer, until it is let go. It
        is not kept for reuse."""
        self._rebuilding = True
        self._use(len(memory))
        buffer = Buffer(self._disown, memory, len(memory))
        if made_of is not None and made_of.share is not None:
            made_of.share.charge(buffer)
        return buffer

    def _use(self, length: int) -> None:
        self.used_bytes += length
        if self.used_bytes + self._idle_bytes > self.budget_bytes:
            self._idle.clear()  # mostly of other sizes, kept for frames that no longer come
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
