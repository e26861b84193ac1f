"""Synchronize consumer groups in the driver of a link's default task group: it runs as long as the link copies,
regardless of Airflow."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from strait.config.app_spec import AppSpec
from strait.config.groups import DEFAULT_GROUP

log = logging.getLogger(__name__)

_FAREWELL_SECONDS = 3.0
_SILENT_SECONDS = 15.0
"""Time without a report after which a standby synchronizes the groups: reports are written every five seconds."""
_LISTEN_SECONDS = 1.0
_AFTER_TROUBLE_SECONDS = 10.0


@contextmanager
def consumer_groups_in_sync(spec: AppSpec, application: str) -> Iterator[None]:
    """Synchronize consumer groups while the block runs, on a separate thread. A standby does so only while no other
    application does."""
    if spec.group != DEFAULT_GROUP:
        yield
        return
    stopped = threading.Event()
    work = _stand_by if spec.standby else _synchronize
    thread = threading.Thread(target=work, args=(spec, application, stopped), name="consumer-groups", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(_FAREWELL_SECONDS)


def _synchronize(spec: AppSpec, application: str, stopped: threading.Event) -> None:
    from strait.consumer_groups.continuous import ContinuousSync

    ContinuousSync(spec, application).run(stopped)


def _stand_by(spec: AppSpec, application: str, stopped: threading.Event) -> None:
    """Follow the other application, and start again after any error: otherwise a standby that has failed would not be
    noticed."""
    while not stopped.is_set():
        try:
            _follow_the_other(spec, application, stopped)
        except Exception as error:  # noqa: BLE001  such as files that are being rotated
            log.warning("consumer groups: standing by: %s", error)
            stopped.wait(_AFTER_TROUBLE_SECONDS)


def _follow_the_other(spec: AppSpec, application: str, stopped: threading.Event) -> None:
    from strait.state.presence import Presence

    with Presence.of_group_sync(spec, application, _SILENT_SECONDS) as other:
        while not stopped.is_set():
            other.listen(_LISTEN_SECONDS)
            if not other.is_gone():
                continue
            over = threading.Event()
            thread = threading.Thread(target=_synchronize, args=(spec, application, over), daemon=True)
            thread.start()
            try:
                while not (stopped.is_set() or other.is_back()):
                    other.listen(_LISTEN_SECONDS)
            finally:
                over.set()
                thread.join(_FAREWELL_SECONDS)
