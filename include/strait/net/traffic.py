"""Bytes exchanged with brokers, counted by their rack, since crossing zones has a price."""


class Traffic:
    """Bytes sent and received on some connections, without TLS and TCP."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.received = 0
        self.sent = 0
