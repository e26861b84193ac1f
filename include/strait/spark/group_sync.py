"""Consumer groups are kept in sync by the driver of a link's default task group: it is there as long as the link copies,
whatever becomes of Airflow."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from strait.config.app_spec import AppSpec
from strait.config.groups import DEFAULT_GROUP

_FAREWELL_SECONDS = 3.0


@contextmanager
def consumer_groups_in_sync(spec: AppSpec, application: str) -> Iterator[None]:
    """For as long as the block runs, beside it."""
    if spec.group != DEFAULT_GROUP:
        yield
        return
    from strait.consumer_groups.clusters import LinkClusters
    from strait.consumer_groups.continuous import ContinuousSync

    stopped = threading.Event()
    sync = ContinuousSync(LinkClusters.of_application(spec), application)
    thread = threading.Thread(target=sync.run, args=(stopped,), name="consumer-groups", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(_FAREWELL_SECONDS)
