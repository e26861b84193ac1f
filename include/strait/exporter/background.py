"""Looks at one link in the background, on a thread of its own, so that one whose cluster is away delays no other."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from strait.config.links import LinksFile
from strait.errors import StraitError

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0

Seen = TypeVar("Seen")


class BackgroundWatch(ABC, Generic[Seen]):
    """Runs from `start` until `stop`. Whatever goes wrong is what was seen, and is tried again.

    Args:
        load: gives the links file with this link; called again after an error, since an edit may mend it.
    """

    def __init__(self, load: Callable[[], LinksFile], link: str) -> None:
        self.newest: Seen | None = None
        """None until the first look is over."""
        self._load = load
        self._link = link
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{type(self).__name__} {link}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end."""
        self._stopped.set()

    def ended(self, timeout_seconds: float) -> bool:
        """Wait for its end; one that waits for a cluster may take longer."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    @abstractmethod
    def _follow(self, file: LinksFile) -> None:
        """Look once, or again and again, until `stop`; then it is called anew with the links file as it is by then. Raises
        StraitError."""

    @abstractmethod
    def _failed(self, file: LinksFile | None, error: str) -> Seen:
        """What is to be shown then. Without a file, that is what could not be read."""

    def _run(self) -> None:
        while not self._stopped.is_set():
            file = None
            try:
                file = self._load()
                self._follow(file)
            except StraitError as error:
                log.warning("link %s: %s", self._link, error)
                self._fail(file, error)
            except Exception as error:  # else its last figures would be shown for ever
                log.exception("link %s: looking at it", self._link)
                self._fail(file, error)

    def _fail(self, file: LinksFile | None, error: Exception) -> None:
        self.newest = self._failed(file, " ".join(str(error).split()) or repr(error))
        self._stopped.wait(_RETRY_SECONDS)
