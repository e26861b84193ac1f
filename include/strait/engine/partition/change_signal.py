"""Notifies a partition's fetcher that its request may have changed, so that it need not check every partition."""


class ChangeSignal:
    """The signal of one partition, shared by its parts. ``notify`` adds it to the set that was connected last."""

    __slots__ = ("_changed",)

    def __init__(self) -> None:
        self._changed: set[ChangeSignal] | None = None

    def connect(self, changed: "set[ChangeSignal]") -> None:
        self._changed = changed

    def disconnect(self, changed: "set[ChangeSignal]") -> None:
        """Remove the signal from ``changed``, and disconnect it unless it was connected to another set since."""
        changed.discard(self)
        if self._changed is changed:
            self._changed = None

    def notify(self) -> None:
        if self._changed is not None:
            self._changed.add(self)
