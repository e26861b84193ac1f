"""A clock in place of the module `time`, which only the test advances."""


class Clock:
    """Monotonic and wall clock, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now
