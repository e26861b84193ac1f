"""The part of a link's application that keeps consumer groups in sync, in this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from strait.consumer_groups.clusters import LinkClusters
from strait.consumer_groups.continuous import ContinuousSync
from support.links.engine_link import EngineLink


@contextmanager
def application(link: EngineLink) -> Iterator[None]:
    """What the driver does beside copying."""
    stopped = threading.Event()
    sync = ContinuousSync(LinkClusters.of_application(link.spec), "an-application")
    thread = threading.Thread(target=sync.run, args=(stopped,))
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(30)
        assert not thread.is_alive()
