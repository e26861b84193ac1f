"""One task of a pool: slots of many links on one thread.

Each slot has a separate loop; the task's loop watches them all and gives a turn to those that have something to do. A
turn is short, so links do not wait for one another; a slot that fails ends alone. The state topics of all links on a
cluster are followed by one consumer and written by one producer. In a standby, a slot copies only while no other
application reports for it.
"""

import contextlib
import heapq
import itertools
import logging
import resource
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from strait.config.app_spec import AppSpec
from strait.config.app_spec import Seat as Place
from strait.engine.garbage import Garbage
from strait.engine.seat import Seat
from strait.engine.slot import DRAIN_SECONDS, FIRST_LOOK_SECONDS
from strait.errors import StraitError
from strait.launch.spec_file import SpecFile
from strait.net.event_loop import Loop
from strait.state.feed import StateFeed
from strait.state.presences import Presences
from strait.state.writer import StateProducer

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""Time between two checks of the spec's file."""
ASK_SECONDS = 0.1
STARTS_AT_ONCE = 5
"""Slots that are started in one turn: each takes a millisecond, and makes connections on threads."""
_FLUSH_SECONDS = 3.0
_UNUSED_SECONDS = 60.0  # after which a cluster's clients are closed
_Cluster = tuple[str, frozenset[tuple[str, str]]]


def run_task(
    spec_path: Path,
    task: int,
    application: str,
    should_stop: Callable[[], bool],
    *,
    begin: Callable[[], None] = lambda: None,
) -> None:
    """Run the slots that the pool's spec places in this task, and follow its changes, until ``should_stop()`` returns
    True. ``begin`` is called once the state of all links has been read, or cannot be read soon, before anything is
    copied.

    Raises:
        ConfigError: the spec cannot be read at the start.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # a link needs a dozen descriptors and more
    PoolTask(SpecFile(spec_path), task, application, begin).run(should_stop)


class _Clients:
    """The clients that all links with one destination share."""

    def __init__(self, spec: AppSpec, name: str, application: str, wake: Callable[[], None]) -> None:
        self.feed = StateFeed(spec.destination, spec.destination_name, name, wake)
        self.producer = StateProducer(spec.destination, spec.destination_name)
        self.presences = Presences(spec.destination, spec.destination_name, name, application) if spec.standby else None
        self.unused_since = 0.0

    def close(self) -> None:
        """Stop reading. Written records are flushed by `producer`."""
        self.feed.close()
        if self.presences is not None:
            self.presences.close()


class PoolTask:
    """See the module."""

    def __init__(self, file: SpecFile, task: int, application: str, begin: Callable[[], None]) -> None:
        self._file = file
        self._spec = file.read()
        self._task = task
        self._application = application
        self._hub = Loop()
        self._clients: dict[_Cluster, _Clients] = {}
        self._seats: dict[Place, Seat] = {}
        self._due: dict[Seat, None] = {}
        self._later: list[tuple[float, int, Seat]] = []
        self._order = itertools.count()
        self._begin = begin
        self._begin_by = time.monotonic() + FIRST_LOOK_SECONDS
        self._has_begun = False

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Run until ``should_stop()`` returns True."""
        garbage = Garbage()
        look_at = ask_at = 0.0
        try:
            while True:
                now = time.monotonic()
                if now >= ask_at:
                    ask_at = now + ASK_SECONDS
                    if should_stop():
                        return
                    self._reconcile()
                    self._begin_once_read(now)
                    garbage.step(now, lambda: all(seat.idle for seat in self._seats.values()))
                if now >= look_at:
                    look_at = now + LOOK_SECONDS
                    self._spec = self._file.read()
                    self._share_memory()
                    self._drop_unused(now)
                self._turn(min(look_at, ask_at))
        finally:
            self._end()

    def _begin_once_read(self, now: float) -> None:
        if not self._has_begun:
            missing = self._spec.hosted_by(self._task).keys() - self._seats.keys()
            if now >= self._begin_by or not (missing or any(not seat.has_read for seat in self._seats.values())):
                self._begin()
                self._has_begun = True

    def _turn(self, until: float) -> None:
        """Wait for the first event or the time, and give a turn to each slot that has something to do."""
        waits = any(clients.feed.waits for clients in self._clients.values())
        if self._later:
            until = min(until, self._later[0][0])
        self._hub.run_once(0.0 if waits or self._due else max(0.0, until - time.monotonic()))
        for clients in self._clients.values():
            clients.feed.deliver()
        now = self._hub.now
        while self._later and self._later[0][0] <= now:
            due_at, _, seat = heapq.heappop(self._later)
            if seat.due_at == due_at:
                self._due[seat] = None
        due, self._due = self._due, {}
        for seat in due:
            if not seat.ended:
                seat.turn()
            if not seat.ended:
                heapq.heappush(self._later, (seat.due_at, next(self._order), seat))
            elif self._seats.get(seat.place) is seat:
                del self._seats[seat.place]

    def _reconcile(self) -> None:
        """Start, end and restart slots so that those run here that the spec places here."""
        wanted = self._spec.hosted_by(self._task)
        for place, seat in self._seats.items():
            if place not in wanted or not seat.spec.is_as(wanted[place]):
                seat.end()
        for place in islice((place for place in wanted if place not in self._seats), STARTS_AT_ONCE):
            try:
                self._start(place, wanted[place])
            except StraitError as error:  # certificates are being replaced, for example
                log.warning("slot %s cannot start yet: %s", place, error)

    def _start(self, place: Place, spec: AppSpec) -> None:
        clients = self._clients_of(spec)
        memory = divided(self._spec.slot_memory_bytes, [False] * (len(self._seats) + 1))[0]
        seat = Seat(
            place,
            spec.model_copy(update={"slot_memory_bytes": memory}),
            self._application,
            self._hub,
            clients.feed,
            clients.producer,
            lambda due: self._due.update({due: None}),
            lambda: len(self._seats),
            lambda: self._has_begun,
            None if clients.presences is None else clients.presences.of_slot(place),
        )
        self._seats[place] = seat
        self._due[seat] = None
        log.info("slot %s runs in task %d", place, self._task)

    def _clients_of(self, spec: AppSpec) -> _Clients:
        key = spec.destination_name, frozenset(spec.destination.items())
        if key not in self._clients:
            self._clients[key] = _Clients(
                spec,
                f"pool.{self._spec.pool}",
                self._application,
                lambda: self._hub.call_from_thread(lambda: None),
            )
        return self._clients[key]

    def _share_memory(self) -> None:
        seats = list(self._seats.values())
        parts = divided(self._spec.slot_memory_bytes, [seat.is_short for seat in seats])
        for seat, part in zip(seats, parts, strict=True):
            if part != seat.spec.slot_memory_bytes:
                seat.use_memory(part)

    def _drop_unused(self, now: float) -> None:
        used = {(seat.spec.destination_name, frozenset(seat.spec.destination.items())) for seat in self._seats.values()}
        for key, clients in list(self._clients.items()):
            clients.producer.poll()
            if key in used:
                clients.unused_since = now
            elif now - clients.unused_since > _UNUSED_SECONDS:
                clients.close()
                del self._clients[key]

    def _end(self) -> None:
        """Have all slots send their fetched records, then end those that are not done in time."""
        for seat in self._seats.values():
            seat.end()
        deadline = time.monotonic() + DRAIN_SECONDS + ASK_SECONDS
        while self._seats and time.monotonic() < deadline:
            self._turn(deadline)
        for seat in list(self._seats.values()):
            seat.abandon()
        flush_until = time.monotonic() + _FLUSH_SECONDS
        for clients in self._clients.values():
            clients.close()
            with contextlib.suppress(Exception):  # a callback of a slot that has ended
                clients.producer.flush(max(0.0, flush_until - time.monotonic()))
        self._hub.close()


FLOOR_BYTES = 1 << 20
"""Reserved for each slot, so that new records of a link always find room beside another link's backlog."""


def divided(total_bytes: int, short: Sequence[bool]) -> list[int]:
    """Return the bytes of each slot: a small part for everyone, and equal parts of the rest for those that are short
    of memory; for everyone if none is.

    Args:
        short: for each slot, whether more memory would help it now.
    """
    if not short:
        return []
    floor = min(FLOOR_BYTES, total_bytes // (2 * len(short)))
    takers = short if any(short) else [True] * len(short)
    part = (total_bytes - floor * len(short)) // sum(takers)
    return [floor + (part if takes else 0) for takes in takers]
