"""The spec of a pool as its running application follows it."""

import logging
from pathlib import Path

from strait.config.app_spec import PoolSpec
from strait.errors import ConfigError

log = logging.getLogger(__name__)


class SpecFile:
    """The pool's spec, read again when its file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._look()  # of the file that was read
        self._failed: tuple[int, ...] | None = None  # of the file whose error was logged
        self._spec = PoolSpec.read(path)

    def read(self) -> PoolSpec:
        """Return the newest spec. If the file cannot be read, the last one stays current, and it is tried again."""
        stamp = self._look()
        if stamp is not None and stamp != self._stamp:
            try:
                spec = PoolSpec.read(self._path)
                spec.require_version()
            except ConfigError as error:
                if stamp != self._failed:
                    log.warning("the last settings of the pool stay current: %s", error)
                self._failed = stamp
            else:
                self._spec, self._stamp, self._failed = spec, stamp, None
        return self._spec

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size
