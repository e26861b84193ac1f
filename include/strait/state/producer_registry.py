"""The producer IDs with which links write to a cluster, and the copies that other tools made there, updated from the
records of its topic `strait.producers`. Pure."""

from collections.abc import Collection

from strait.state.codec import Unreadable, decode, decode_key, is_of_moved_copies
from strait.state.keys import MovedCopiesKey, ProducerKey
from strait.state.moved_copies import MovedCopies
from strait.state.schema import Registration
from strait.state.troubles import Troubles


class Registrations:
    """The registrations of one cluster. A record that cannot be read might have any producer ID or be about any topic,
    so its error is kept as ``trouble`` until a valid record or a tombstone arrives under the same key."""

    def __init__(self) -> None:
        self._known: dict[int, Registration] = {}
        self._moved_in: dict[tuple[str, str], MovedCopies] = {}
        self._troubles: Troubles[str] = Troubles()

    @property
    def trouble(self) -> str:
        """The error for the first record that cannot be read and was not replaced since; "" if there is none."""
        return self._troubles.first or ""

    def all(self) -> Collection[Registration]:
        return self._known.values()

    def moved_in(self) -> Collection[MovedCopies]:
        """Return the copies that other tools made before links took over."""
        return self._moved_in.values()

    def apply(self, raw_key: bytes | None, raw_value: bytes | None, offset: int) -> None:
        """Apply the record at this offset."""
        self._troubles.end(raw_key)
        try:
            if is_of_moved_copies(raw_key):
                self._apply_moved_in(raw_key, raw_value)
            elif raw_value is None:
                key = decode_key(ProducerKey, raw_key)
                assert isinstance(key, ProducerKey)
                self._known.pop(key.producer_id, None)
            else:
                registration = decode(Registration, raw_key, raw_value)
                self._known[registration.producer_id] = registration
        except Unreadable as error:
            if raw_value is not None:
                self._troubles.add(raw_key, f"the record at offset {offset} cannot be read: {error}")

    def _apply_moved_in(self, raw_key: bytes | None, raw_value: bytes | None) -> None:
        if raw_value is None:
            key = decode_key(MovedCopiesKey, raw_key)
            self._moved_in.pop((key.moved_in, key.link), None)
        else:
            copies = decode(MovedCopies, raw_key, raw_value)
            self._moved_in[copies.moved_in, copies.link] = copies
