"""Observes one link in a separate background thread, so that a link with an unavailable cluster delays no other."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from strait.config.links import LinksFile
from strait.errors import StraitError
from strait.state.link_handle import ConfiguredLink

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0

Seen = TypeVar("Seen")


class BackgroundWatch(ABC, Generic[Seen]):
    """Runs from `start` until `stop`. Any error becomes the observation, and the watch tries again.

    Args:
        load: returns the links file with this link; called again after an error, since an edit may fix it.
    """

    def __init__(self, load: Callable[[], LinksFile], link: str) -> None:
        self.newest: Seen | None = None
        """None until the first observation is complete."""
        self._load = load
        self._link = link
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{type(self).__name__} {link}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Request the end of the thread."""
        self._stopped.set()

    def ended(self, timeout_seconds: float) -> bool:
        """Wait for the thread, and return whether it has ended; one that waits for a cluster may take longer."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    @abstractmethod
    def _follow(self, link: ConfiguredLink) -> None:
        """Observe once, or repeatedly until `stop`; after a return before that, it is called again with the current
        links file. Raises StraitError."""

    @abstractmethod
    def _failed(self, link: ConfiguredLink | None, error: str) -> Seen:
        """Return the observation for an error. Without ``link``, the links file could not be read."""

    def _run(self) -> None:
        while not self._stopped.is_set():
            link = None
            try:
                link = ConfiguredLink.of(self._load(), self._link)
                self._follow(link)
            except StraitError as error:
                log.warning("link %s: %s", self._link, error)
                self._fail(link, error)
            except Exception as error:  # otherwise its last values would be shown forever
                log.exception("link %s: looking at it", self._link)
                self._fail(link, error)

    def _fail(self, link: ConfiguredLink | None, error: Exception) -> None:
        self.newest = self._failed(link, " ".join(str(error).split()) or repr(error))
        self._stopped.wait(_RETRY_SECONDS)
