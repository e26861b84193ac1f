"""The part of a link's application that keeps consumer groups in sync, in this process."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from strait.config.app_spec import AppSpec
from strait.consumer_groups.continuous import ContinuousSync
from support.links.engine_link import EngineLink


def application(link: EngineLink) -> AbstractContextManager[None]:
    """What the driver does beside copying."""
    return application_of(link.spec)


@contextmanager
def application_of(spec: AppSpec) -> Iterator[None]:
    """The same for any link."""
    stopped = threading.Event()
    sync = ContinuousSync(spec, "an-application")
    thread = threading.Thread(target=sync.run, args=(stopped,))
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(30)
        assert not thread.is_alive()
