"""Leaders in brokers' metadata whose epoch is earlier than the newest known one."""

LAGGING_SECONDS = 10.0
"""A broker's metadata may lag that of the others. If brokers report an earlier leader for this long, and no later one,
the epochs of a partition of a topic without an ID have restarted: the topic was deleted and recreated."""
LOST_SECONDS = 60.0
"""The same for a topic with an ID, after other brokers were queried too: the controller has lost its last decisions.
Following a leader forever that no broker reports would leave the partition stuck."""


class EarlierLeaders:
    """Since when only earlier leaders are reported, for each partition of one cluster."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def seconds(self, key: tuple[str, int], now: float, *, is_earlier: bool) -> float:
        """Record that a broker reports a leader for this partition. Returns for how many seconds all reports have named
        earlier ones; 0 if this one does not."""
        if not is_earlier:
            self._since.pop(key, None)
            return 0.0
        return now - self._since.setdefault(key, now)

    def doubted(self, now: float) -> bool:
        """Whether a broker has reported earlier leaders for long enough that another broker should be queried."""
        return any(LAGGING_SECONDS <= now - since < LOST_SECONDS for since in self._since.values())

    def believed(self, key: tuple[str, int]) -> None:
        """Accept the earlier leader from now on."""
        self._since.pop(key, None)
