"""The producer IDs with which links write to a cluster, updated from the records of its topic `strait.producers`.
Pure."""

from collections.abc import Collection

from strait.state.codec import ProducerKey, Unreadable, decode, decode_key
from strait.state.schema import Registration


class Registrations:
    """The registrations of one cluster. A record that cannot be read might have any producer ID, so its error is kept
    as ``trouble`` until a valid record or a tombstone arrives under the same key."""

    def __init__(self) -> None:
        self._known: dict[int, Registration] = {}
        self._troubles: dict[bytes | None, str] = {}

    @property
    def trouble(self) -> str:
        """The error for the first record that cannot be read and was not replaced since; "" if there is none."""
        return next(iter(self._troubles.values()), "")

    def all(self) -> Collection[Registration]:
        return self._known.values()

    def apply(self, raw_key: bytes | None, raw_value: bytes | None, offset: int) -> None:
        """Apply the record at this offset."""
        self._troubles.pop(raw_key, None)
        try:
            if raw_value is None:
                key = decode_key(ProducerKey, raw_key)
                assert isinstance(key, ProducerKey)
                self._known.pop(key.producer_id, None)
            else:
                registration = decode(Registration, raw_key, raw_value)
                self._known[registration.producer_id] = registration
        except Unreadable as error:
            if raw_value is not None:
                self._troubles[raw_key] = f"the record at offset {offset} cannot be read: {error}"
