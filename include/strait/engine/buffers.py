"""Memory of a slot: reused buffers under one budget. What does not fit is not fetched; that is the back-pressure."""

SMALL_BYTES = 1 << 16
"""Frames up to this size get a buffer of their own: pinning a big buffer for a few bytes would waste the budget."""


class Buffer:
    """Memory for one frame, shared by the batches in it and given back when the last of them lets go."""

    __slots__ = ("_holders", "_pool", "memory", "size")

    def __init__(self, pool: "BufferPool", memory: bytearray, size: int) -> None:
        self._pool = pool
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
            self._pool.give_back(self.memory)


class BufferPool:
    """Hands out buffers; ``used_bytes`` is what they occupy, never more than the budget plus one oversized frame."""

    def __init__(self, budget_bytes: int, big_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self._big_bytes = big_bytes
        self._idle: list[bytearray] = []

    def room_for(self, frame_bytes: int) -> bool:
        """Whether a reply of that size may be asked for now."""
        return self.used_bytes + max(frame_bytes, self._big_bytes) <= self.budget_bytes

    def take(self, size: int) -> Buffer:
        """A buffer for a frame of ``size`` bytes. Always succeeds: the broker has already sent it."""
        if SMALL_BYTES < size <= self._big_bytes:
            memory = self._idle.pop() if self._idle else bytearray(self._big_bytes)
        else:
            memory = bytearray(size)
        self.used_bytes += len(memory)
        return Buffer(self, memory, size)

    def give_back(self, memory: bytearray) -> None:
        self.used_bytes -= len(memory)
        if len(memory) == self._big_bytes:
            self._idle.append(memory)
