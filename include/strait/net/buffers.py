"""Memory of a slot: reused buffers under one budget. What does not fit is not fetched; that is the back-pressure."""

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

    __slots__ = ("_give_back", "_holders", "memory", "size")

    def __init__(self, give_back: Callable[[Memory], None], memory: Memory, size: int) -> None:
        self._give_back = give_back
        self._holders = 1
        self.memory = memory
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
            self._give_back(self.memory)


class BufferPool:
    """Hands out buffers. What is in use and what is expected together stay within the budget, unless a broker sends a
    batch larger than what was asked for: that must be taken, or it would never come past."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self._expected_bytes = 0
        self._idle_bytes = 0
        self._rebuilding = False
        self._idle: dict[int, list[Memory]] = defaultdict(list)

    def expect(self, frame_bytes: int) -> int:
        """Set room aside for a reply of up to that size, twice if the last one's batches were rebuilt: for a moment
        both are there. Returns how much, to be given back as it is; 0 if there is not so much now."""
        room = 2 * frame_bytes if self._rebuilding else frame_bytes
        if self.used_bytes + self._expected_bytes + room > self.budget_bytes:
            return 0
        self._expected_bytes += room
        return room

    def expect_no_more(self, room: int) -> None:
        """The reply has come, or never will."""
        self._expected_bytes -= room

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

    def adopt(self, memory: bytearray) -> Buffer:
        """Count memory that was made elsewhere, a rebuilt batch, until it is let go. It is not kept for reuse."""
        self._rebuilding = True
        self._use(len(memory))
        return Buffer(self._disown, memory, len(memory))

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
