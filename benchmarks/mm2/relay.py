"""The limit: what it costs one Python process to do nothing but move bytes from one socket to another.

A feeder and a sink are processes of their own; only the relay's CPU counts.
"""

import multiprocessing
import os
import resource
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext

from mm2.process_tree import ended_after
from mm2.results import RelayResult
from strait.errors import SetupError

_BUFFER_BYTES = 128 << 10  # a batch at a time, as brokers deliver them; 1 MiB at a time costs less than half
_PIECE_BYTES = 1 << 20  # of the feeder
_SUPPLY_BYTES = 256 << 20  # more than any CPU cache, since a broker's data is not in one either
_DEADLINE_SECONDS = 600.0
_HOST = "127.0.0.1"


def measure_relay(total_bytes: int, *, at_once: int = 1) -> RelayResult:
    """Send ``total_bytes`` over loopback, through so many relays side by side, each its share.

    Two cost more for each byte than one: they take caches and memory from each other, as slots do.

    Raises:
        SetupError: one of their processes failed.
    """
    context = multiprocessing.get_context("spawn")  # a fork would share this process's threads' locks
    share = total_bytes // at_once
    with ExitStack() as stack:
        lanes = [stack.enter_context(_lane(context, share)) for _ in range(at_once)]
        found = [_result(lane) for lane in lanes]
    moved = sum(moved for moved, _, _ in found)
    if moved != share * at_once:
        raise SetupError(f"relay: moved {moved} of {share * at_once} bytes")
    return RelayResult(moved, max(seconds for _, seconds, _ in found), sum(cpu_seconds for _, _, cpu_seconds in found))


@contextmanager
def _lane(context: SpawnContext, total_bytes: int) -> Iterator[Connection]:
    """A feeder, a relay and a sink. What the relay has to say comes out."""
    theirs, ours = context.Pipe()
    with socket.create_server((_HOST, 0)) as entrance, socket.create_server((_HOST, 0)) as exit_:
        relay = context.Process(target=_relay, args=(theirs, entrance, exit_.getsockname()[1]), name="relay")
        feeder = context.Process(target=_feed, args=(entrance.getsockname()[1], total_bytes), name="feeder")
        sink = context.Process(target=_swallow, args=(exit_,), name="sink")
        processes = (sink, relay, feeder)
        with ended_after(*processes):
            for process in processes:
                process.start()
            theirs.close()
            yield ours


def _result(lane: Connection) -> tuple[int, float, float]:
    """Bytes, seconds, CPU seconds."""
    try:
        if not lane.poll(_DEADLINE_SECONDS):
            raise SetupError(f"relay: nothing measured within {_DEADLINE_SECONDS:.0f} s")
        found: tuple[int, float, float] = lane.recv()
    except EOFError as error:
        raise SetupError("relay: its process ended before it had measured anything") from error
    return found


def _relay(results: Connection, entrance: socket.socket, exit_port: int) -> None:
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    moved = 0
    incoming, _ = entrance.accept()
    with incoming, socket.create_connection((_HOST, exit_port)) as outgoing:
        started, cpu_at_start = time.monotonic(), _own_cpu_seconds()
        while count := incoming.recv_into(buffer):
            outgoing.sendall(buffer[:count])
            moved += count
        results.send((moved, time.monotonic() - started, _own_cpu_seconds() - cpu_at_start))


def _feed(port: int, total_bytes: int) -> None:
    """Send a file from the page cache, as a broker sends its log."""
    with tempfile.TemporaryFile() as supply, socket.create_connection((_HOST, port)) as outgoing:
        for _ in range(_SUPPLY_BYTES // _PIECE_BYTES):
            supply.write(os.urandom(_PIECE_BYTES))
        supply.flush()
        sent = 0
        while sent < total_bytes:
            at = sent % _SUPPLY_BYTES
            piece = min(_PIECE_BYTES, _SUPPLY_BYTES - at, total_bytes - sent)
            sent += os.sendfile(outgoing.fileno(), supply.fileno(), at, piece)


def _swallow(exit_: socket.socket) -> None:
    buffer = bytearray(_BUFFER_BYTES)
    incoming, _ = exit_.accept()
    with incoming:
        while incoming.recv_into(buffer):
            pass


def _own_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
