"""``python -m support.links.repair_process LINKS_FILE LINK AUDIT STEP``: a repair that dies at one of its steps.

Steps are the calls that change a cluster: a transaction's begin and its commit, a topic's creation, a registration, offsets of
groups. STEP counts them from 0; an odd one dies as soon as its call has returned, an even one before it.
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from strait.control import registration
from strait.control.repair import appending, copying
from strait.control.repair.carrying_out import repair
from strait.control.repair.plan import repair_plan
from strait.kafka.admin import Admin
from strait.kafka.transactions import TransactionalWriter
from strait.net.consumer_groups import ConsumerGroups
from strait.state.link_handle import ConfiguredLink
from strait.state.publisher import Publication

CHUNK_RECORDS = 300


class Steps:
    """Counts the steps, and ends this process at one of them."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self._fatal = fatal

    def wrap(self, owner: Any, name: str) -> None:
        plain: Callable[..., Any] = getattr(owner, name)

        @wraps(plain)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._come()
            result = plain(*args, **kwargs)
            self._come()
            return result

        setattr(owner, name, counted)

    def _come(self) -> None:
        if self.count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


if __name__ == "__main__":
    links_file, link, audit, fatal = sys.argv[1:]
    steps = Steps(int(fatal))
    for owner, name in (
        (TransactionalWriter, "step"),
        (Publication, "step"),
        (Admin, "create_each"),
        (Admin, "alter_each"),
        (ConsumerGroups, "commit"),
        (registration, "write_record"),
    ):
        steps.wrap(owner, name)
    copying._CHUNK_RECORDS = appending._CHUNK_RECORDS = CHUNK_RECORDS
    repair(ConfiguredLink.load(Path(links_file), link), repair_plan(Path(audit)), lambda _: None)
