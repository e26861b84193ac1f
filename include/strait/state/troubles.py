"""Records of state topics that could not be read. Pure."""

from hashlib import blake2b
from typing import Generic, TypeVar

_MOST = 1_000  # a client that may write to a topic may fill it with others
_KEY_BYTES = 1_000

Trouble = TypeVar("Trouble")


class Troubles(Generic[Trouble]):
    """Errors of records, by key, in the order of the log: the first thousand whose keys have had no valid record or
    tombstone since."""

    def __init__(self) -> None:
        self._of: dict[bytes | None, Trouble] = {}

    @property
    def first(self) -> Trouble | None:
        return next(iter(self._of.values()), None)

    def add(self, raw_key: bytes | None, trouble: Trouble) -> None:
        key = _short(raw_key)
        if key in self._of or len(self._of) < _MOST:
            self._of[key] = trouble

    def end(self, raw_key: bytes | None) -> bool:
        """Forget the error of a key; return whether there was one."""
        return self._of.pop(_short(raw_key), None) is not None


def _short(raw_key: bytes | None) -> bytes | None:
    return raw_key if raw_key is None or len(raw_key) <= _KEY_BYTES else blake2b(raw_key).digest()
