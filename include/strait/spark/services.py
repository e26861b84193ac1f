"""The driver's own work beside the slots, for each task group: it writes the ledger and synchronizes consumer groups."""

import logging
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from strait.config.app_spec import AppSpec, PoolSpec, Spec
from strait.errors import StraitError
from strait.launch.spec_file import SpecFile
from strait.spark.group_sync import consumer_groups_in_sync
from strait.spark.head_start import application_of
from strait.spark.ledger import ledger_kept

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
_FAREWELL_SECONDS = 15.0
_AT_ONCE = 8


@contextmanager
def served(session: SparkSession, spec_path: Path, spec: Spec, application: str) -> Iterator[None]:
    """Do this work while the block runs.

    Raises:
        SetupError: the ledger's directory cannot be created. In a pool that is logged and tried again.
    """
    head_start = application_of(spec_path)
    if isinstance(spec, AppSpec):
        with ledger_kept(session, spec, application, head_start), consumer_groups_in_sync(spec, application):
            yield
        return
    members = Members(session, spec_path, application, head_start)
    thread = threading.Thread(target=members.run, name="members", daemon=True)
    thread.start()
    try:
        yield
    finally:
        members.stopped.set()
        thread.join(_FAREWELL_SECONDS)


class Members:
    """Serves the members of a pool, on a separate thread: they come, go and change while the pool runs."""

    def __init__(self, session: SparkSession, spec_path: Path, application: str, head_start: str) -> None:
        self.stopped = threading.Event()
        self._session = session
        self._file = SpecFile(spec_path)
        self._application = application
        self._head_start = head_start
        self._served: dict[tuple[str, str], tuple[AppSpec, ExitStack]] = {}
        self._troubles: dict[tuple[str, str], str] = {}

    def run(self) -> None:
        """Serve them until ``stopped`` is set."""
        while not self.stopped.is_set():
            self._follow(self._file.read())
            self.stopped.wait(LOOK_SECONDS)
        self._end(list(self._served))

    def _follow(self, spec: PoolSpec) -> None:
        members = {(member.link, member.group): member for member in spec.members}
        self._end(
            place
            for place, (served, _) in self._served.items()
            if place not in members or not served.is_as(members[place])
        )
        for place, member in members.items():
            if place not in self._served and not self.stopped.is_set():
                self._serve(place, member)

    def _end(self, places: Iterable[tuple[str, str]]) -> None:
        """End the work for these members, beside one another: each may have to wait for its destination."""
        stacks = [self._served.pop(place)[1] for place in list(places)]
        if stacks:
            with ThreadPoolExecutor(min(len(stacks), _AT_ONCE)) as pool:
                list(pool.map(_close, stacks))

    def _serve(self, place: tuple[str, str], member: AppSpec) -> None:
        stack = ExitStack()
        try:
            stack.enter_context(ledger_kept(self._session, member, self._application, self._head_start))
            stack.enter_context(consumer_groups_in_sync(member, self._application))
        except StraitError as error:
            _close(stack)
            if self._troubles.get(place) != str(error):
                self._troubles[place] = str(error)
                log.warning("link %s: %s", member.link, error)
            return
        self._troubles.pop(place, None)
        self._served[place] = member, stack


def _close(stack: ExitStack) -> None:
    try:
        stack.close()
    except Exception:  # of one member; the others continue
        log.exception("a link of the pool leaves it")
