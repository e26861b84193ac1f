"""How a partition's fetcher learns that what it asks for may have changed, without looking at every partition."""


class ChangeSignal:
    """Of one partition, given to each of its parts; ``notify`` puts it into the set that was connected last."""

    __slots__ = ("_changed",)

    def __init__(self) -> None:
        self._changed: set[ChangeSignal] | None = None

    def connect(self, changed: "set[ChangeSignal]") -> None:
        self._changed = changed

    def disconnect(self, changed: "set[ChangeSignal]") -> None:
        """Unless it was connected to another set since."""
        changed.discard(self)
        if self._changed is changed:
            self._changed = None

    def notify(self) -> None:
        if self._changed is not None:
            self._changed.add(self)
