"""Which way of doing I/O suits a slot: threads, asyncio, or one thread with selectors?

One process relays frames from a feeder to a sink over loopback and does to each batch what the engine does: slice it
out of a memoryview, check its CRC-32C, overwrite a few header fields, compute the CRC-32C again. Three models of I/O
(threads with blocking sockets, asyncio's BufferedProtocol, one thread with selectors and sendmsg; with TLS the last one
both on an SSLSocket and on memory buffers) each over plain TCP and over TLS 1.3, meet three loads:

    large     replies of 4 MiB holding 128 KiB batches, one request in flight, eight batches to an outgoing frame
    small     replies of 16 KiB holding one batch, sixteen requests in flight, one batch to an outgoing frame
    latency   one batch of 1 KiB now and then; from the feeder's send to the sink's receipt

Everything but the I/O is the same code in all models, and so are its rules: the same chunks are received into, the same
list of buffers is to be sent, back-pressure is a limit on chunks. CPU is the relay's own (user and system, all its
threads), from its first reply to its last acknowledgement. Rounds are interleaved and medians shown, because a machine
is never quiet. Rates depend on cores shared with feeder and sink; CPU per GB hardly does.

    python benchmarks/io_models.py [--rounds 5] [--scale 1.0] [--json]

To compare two versions of one model, run both files with the same arguments in turn, twice, and compare medians.
"""

import argparse
import asyncio
import contextlib
import datetime
import ipaddress
import json
import multiprocessing
import os
import queue
import random
import resource
import selectors
import socket
import ssl
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from crc32c import crc32c
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CHUNK = (4 << 20) + (64 << 10)  # holds one large reply
CHUNKS = 4
MAX_PARTS = 512  # buffers to one sendmsg; Linux takes 1024
JOIN_BELOW = 32 << 10  # where there is no sendmsg, smaller neighbours are joined: a copy costs less than a call
JOIN_UP_TO = 256 << 10
REQUEST = struct.pack(">ii", 4, 1)
ACK = struct.Struct(">ii")
END = -1
HEADER = 61  # of a record batch, version 2


@dataclass(frozen=True)
class Load:
    name: str
    batch: int
    batches_per_reply: int
    batches_per_frame: int
    in_flight: int
    replies: int
    gap_ms: float = 0.0

    @property
    def reply_bytes(self) -> int:
        return self.batch * self.batches_per_reply


def loads(scale: float) -> list[Load]:
    return [
        Load("large", 128 << 10, 32, 8, 1, max(8, int(250 * scale))),
        Load("small", 16 << 10, 1, 1, 16, max(64, int(24000 * scale))),
        Load("latency", 1020, 1, 1, 1, max(50, int(1000 * scale)), gap_ms=2.0),
    ]


# -- what every model shares ------------------------------------------------------------------------------------------


class Pool:
    """Chunks to receive into; None when all are in use, which is the back-pressure."""

    def __init__(self) -> None:
        self._free = [memoryview(bytearray(CHUNK)) for _ in range(CHUNKS)]

    def take(self) -> memoryview | None:
        return self._free.pop() if self._free else None

    def give(self, chunk: memoryview) -> None:
        self._free.append(chunk)


class BlockingPool(Pool):
    """The same for threads: waits for a chunk."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
        for _ in range(CHUNKS):
            self._queue.put(memoryview(bytearray(CHUNK)))

    def take(self) -> memoryview:
        return self._queue.get()

    def give(self, chunk: memoryview) -> None:
        self._queue.put(chunk)


class Inbox:
    """Finds length-prefixed frames in what is received, without copying but for a frame cut by a chunk's end."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._chunk: memoryview | None = None
        self._start = self._fill = 0
        self._carry = b""

    def space(self) -> memoryview | None:
        """Where to receive to, or None while no chunk is free."""
        if self._chunk is None:
            self._chunk = self._pool.take()
            if self._chunk is None:
                return None
            self._start, self._fill = 0, len(self._carry)
            self._chunk[: self._fill] = self._carry
            self._carry = b""
        return self._chunk[self._fill :]

    def received(self, count: int) -> tuple[list[memoryview], memoryview | None]:
        """Frames completed by ``count`` more bytes, and the chunk to give back once they are sent, if it is used up."""
        chunk, frames = self._chunk, []
        assert chunk is not None
        self._fill += count
        need = 4
        while self._fill - self._start >= 4:
            need = 4 + struct.unpack_from(">i", chunk, self._start)[0]
            if self._fill - self._start < need:
                break
            frames.append(chunk[self._start + 4 : self._start + need])
            self._start += need
            need = 4
        at_boundary = self._start == self._fill
        if (at_boundary and self._start > CHUNK // 2) or self._start + need > CHUNK:
            self._carry = bytes(chunk[self._start : self._fill])
            self._chunk = None
            return frames, chunk
        return frames, None


class Converter:
    """The work on batches: what the engine does between receiving and sending."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._sequence = 0
        self.frames = 0
        self.bytes = 0
        self.ended = False

    def convert(self, reply: memoryview) -> Iterator[list[Any]]:
        """The buffers of each outgoing frame. An empty reply is the end and goes on as an empty frame."""
        if not reply:
            self.ended = True
            yield [struct.pack(">ii", 4, END)]
            return
        self.bytes += len(reply)
        parts: list[Any] = []
        at = size = 0
        while at < len(reply):
            length = 12 + struct.unpack_from(">i", reply, at + 8)[0]
            batch = reply[at : at + length]
            self._patch(batch)
            parts.append(batch)
            size += length
            at += length
            if len(parts) == self._load.batches_per_frame or at == len(reply):
                self.frames += 1
                yield [struct.pack(">ii", 4 + size, self.frames & 0x7FFFFFFF), *parts]
                parts, size = [], 0

    def _patch(self, batch: memoryview) -> None:
        covered = batch[21:]
        if crc32c(covered) != struct.unpack_from(">I", batch, 17)[0]:
            raise ValueError("a batch arrived damaged")
        struct.pack_into(">q", batch, 0, 0)
        struct.pack_into(">i", batch, 12, -1)
        struct.pack_into(">qhi", batch, 43, 4711, 0, self._sequence)
        self._sequence = (self._sequence + 1) & 0x7FFFFFFF
        struct.pack_into(">I", batch, 17, crc32c(covered))


class Acks:
    """Counts acknowledgements until the one of the end."""

    def __init__(self) -> None:
        self._rest = b""
        self.count = 0
        self.ended = False

    def received(self, data: bytes) -> None:
        data = self._rest + data
        whole = len(data) // ACK.size * ACK.size
        for _, number in ACK.iter_unpack(data[:whole]):
            self.count += 1
            self.ended = number == END
        self._rest = data[whole:]


def joined(parts: list[Any]) -> Iterator[Any]:
    """Neighbouring small buffers as one, for ways of sending that take one buffer at a time."""
    small: list[Any] = []
    size = 0
    for part in parts:
        if len(part) >= JOIN_BELOW or size >= JOIN_UP_TO:
            if small:
                yield b"".join(small)
            small, size = [], 0
        if len(part) >= JOIN_BELOW:
            yield part
        else:
            small.append(part)
            size += len(part)
    if small:
        yield b"".join(small)


def drop_sent(parts: deque[Any], sent: int) -> None:
    """Take ``sent`` bytes off the front."""
    while sent:
        first = parts.popleft()
        if sent < len(first):
            parts.appendleft(memoryview(first)[sent:])
            return
        sent -= len(first)


class Clock:
    """CPU and wall time of this process from the first reply on."""

    def __init__(self) -> None:
        self._cpu = self._wall = 0.0

    def start(self) -> None:
        if not self._wall:
            self._cpu, self._wall = self._now()

    def stop(self) -> tuple[float, float]:
        cpu, wall = self._now()
        return cpu - self._cpu, wall - self._wall

    @staticmethod
    def _now() -> tuple[float, float]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime, time.perf_counter()


# -- (a) threads with blocking sockets --------------------------------------------------------------------------------


class ThreadsRelay:
    """One thread reads and converts, one writes, one reads acknowledgements."""

    def __init__(self, source: socket.socket, sink: socket.socket, load: Load, clock: Clock) -> None:
        self.converter, self.acks = Converter(load), Acks()
        self._source, self._sink, self._load, self._clock = source, sink, load, clock
        self._pool = BlockingPool()
        self._outgoing: queue.SimpleQueue[list[Any] | memoryview | None] = queue.SimpleQueue()
        self._failures: list[BaseException] = []

    def run(self) -> None:
        works = (self._read, self._write, self._read_acks)
        threads = [threading.Thread(target=self._guarded, args=(work,), daemon=True) for work in works]
        self._source.sendall(REQUEST * self._load.in_flight)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  handed to the main thread
            self._failures.append(error)
            self._outgoing.put(None)
            for end in (self._source, self._sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        inbox = Inbox(self._pool)
        while not self.converter.ended:
            space = inbox.space()
            assert space is not None
            frames, used_up = inbox.received(_some(self._source.recv_into(space)))
            self._clock.start()
            for frame in frames:
                if frame:
                    self._source.sendall(REQUEST)
                for parts in self.converter.convert(frame):
                    self._outgoing.put(parts)
            if used_up is not None:
                self._outgoing.put(used_up)
        self._outgoing.put(None)

    def _write(self) -> None:
        more = True
        while more:
            items = [self._outgoing.get()]
            while not self._outgoing.empty() and len(items) < MAX_PARTS // 16:
                items.append(self._outgoing.get())
            more = items[-1] is not None
            _send_blocking(self._sink, [part for item in items if isinstance(item, list) for part in item])
            for item in items:
                if isinstance(item, memoryview):
                    self._pool.give(item)

    def _read_acks(self) -> None:
        while not self.acks.ended:
            data = self._sink.recv(65536)
            _some(len(data))
            self.acks.received(data)


def _send_blocking(sock: socket.socket, parts: list[Any]) -> None:
    if isinstance(sock, ssl.SSLSocket):
        for part in joined(parts):
            sock.sendall(part)
        return
    left = deque(parts)
    while left:
        drop_sent(left, sock.sendmsg([left[i] for i in range(min(len(left), MAX_PARTS))]))


def _some(count: int) -> int:
    if not count:
        raise EOFError("the other side has hung up")
    return count


# -- (b) asyncio ------------------------------------------------------------------------------------------------------


class SourceProtocol(asyncio.BufferedProtocol):
    def __init__(self, relay: "AsyncRelay") -> None:
        self._relay = relay
        self._inbox = Inbox(relay.pool)
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        space = self._inbox.space()
        assert space is not None, "reading is paused while no chunk is free"
        return space

    def buffer_updated(self, nbytes: int) -> None:
        frames, used_up = self._inbox.received(nbytes)
        self._relay.on_frames(frames, used_up)
        if used_up is not None and self._inbox.space() is None:
            self.transport.pause_reading()
            self._relay.starved = True

    def resume(self) -> None:
        if self._inbox.space() is not None:
            self._relay.starved = False
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relay.lost(exc)


class SinkProtocol(asyncio.Protocol):
    def __init__(self, relay: "AsyncRelay") -> None:
        self._relay = relay
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        # Never more than one buffer waits as a copy in the transport. Not 0: with TLS, asyncio then never resumes.
        transport.set_write_buffer_limits(high=1)

    def data_received(self, data: bytes) -> None:
        self._relay.acks.received(data)
        if self._relay.acks.ended:
            self._relay.finish()

    def pause_writing(self) -> None:
        self._relay.blocked = True

    def resume_writing(self) -> None:
        self._relay.blocked = False
        self._relay.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relay.lost(exc)


class AsyncRelay:
    def __init__(self, load: Load, clock: Clock) -> None:
        self.pool = Pool()
        self.acks = Acks()
        self.converter = Converter(load)
        self.blocked = self.starved = False
        self._load, self._clock = load, clock
        self._outgoing: deque[tuple[Any, bool]] = deque()  # (buffer, False) to send, (chunk, True) to give back
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, source: socket.socket, sink: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        host = "localhost" if tls else None
        _, self._sink = await loop.create_connection(
            lambda: SinkProtocol(self), sock=sink, ssl=tls, server_hostname=host
        )
        _, self._source = await loop.create_connection(
            lambda: SourceProtocol(self), sock=source, ssl=tls, server_hostname=host
        )
        self._source.transport.write(REQUEST * self._load.in_flight)
        await self._done

    def on_frames(self, frames: list[memoryview], used_up: memoryview | None) -> None:
        self._clock.start()
        parts: list[Any] = []
        for frame in frames:
            if frame:
                self._source.transport.write(REQUEST)
            for outgoing in self.converter.convert(frame):
                parts += outgoing
        self._outgoing.extend((part, False) for part in joined(parts))
        if used_up is not None:
            self._outgoing.append((used_up, True))
        self.flush()

    def flush(self) -> None:
        # A chunk reached here is no longer needed: write() has sent its bytes or copied the rest.
        while self._outgoing and not self.blocked:
            item, is_chunk = self._outgoing.popleft()
            if is_chunk:
                self.pool.give(item)
                if self.starved:
                    self._source.resume()
            else:
                self._sink.transport.write(item)

    def finish(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or EOFError("the other side has hung up"))


def relay_asyncio(
    source: socket.socket, sink: socket.socket, load: Load, clock: Clock, tls: ssl.SSLContext | None
) -> tuple[Converter, Acks]:
    async def main() -> tuple[Converter, Acks]:
        relay = AsyncRelay(load, clock)
        await relay.run(source, sink, tls)
        return relay.converter, relay.acks

    return asyncio.run(main())


# -- (c) one thread with selectors ------------------------------------------------------------------------------------

AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class SelectorRelay:
    def __init__(self, source: socket.socket, sink: socket.socket, load: Load, clock: Clock) -> None:
        self.converter, self.acks = Converter(load), Acks()
        self._source, self._sink, self._load, self._clock = source, sink, load, clock
        self._tls = isinstance(sink, ssl.SSLSocket | BioSocket)
        self._pool = Pool()
        self._inbox = Inbox(self._pool)
        self._starved = False
        self._outgoing: deque[Any] = deque()
        self._blocked = False  # the kernel's buffer is full
        self._sent = self._queued = 0
        self._chunks: deque[tuple[int, memoryview]] = deque()  # (position in the stream behind it, chunk)
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        for sock in (self._source, self._sink):
            sock.setblocking(False)
        if self._source.send(REQUEST * self._load.in_flight) != len(REQUEST) * self._load.in_flight:
            raise BlockingIOError("requests do not fit an empty socket")
        self._selector.register(self._source, selectors.EVENT_READ)
        sink_events = selectors.EVENT_READ
        self._selector.register(self._sink, sink_events)
        while not self.acks.ended:
            for key, events in self._selector.select():
                if key.fileobj is self._source:
                    self._read()
                elif events & selectors.EVENT_WRITE:
                    self._flush()
                if key.fileobj is self._sink and events & selectors.EVENT_READ:
                    self._read_acks()
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._blocked else 0)
            if wanted != sink_events:
                sink_events = wanted
                self._selector.modify(self._sink, wanted)
        self._selector.close()

    def _read(self) -> None:
        """Receive what is there. TLS may hold decrypted bytes that no selector sees, so it is drained."""
        while True:
            space = self._inbox.space()
            if space is None:
                self._starve()
                return
            try:
                count = _some(self._source.recv_into(space))
            except AGAIN:
                return
            self._clock.start()
            frames, used_up = self._inbox.received(count)
            if frames:
                self._convert(frames)
            if used_up is not None:
                self._chunks.append((self._queued, used_up))
            if frames:
                self._flush()
            if not self._tls and count < len(space):
                return

    def _convert(self, frames: list[memoryview]) -> None:
        parts: list[Any] = []
        for frame in frames:
            if frame and self._source.send(REQUEST) != len(REQUEST):
                raise BlockingIOError("a request does not fit the socket")
            for outgoing in self.converter.convert(frame):
                parts += outgoing
        self._queued += sum(map(len, parts))
        self._outgoing.extend(joined(parts) if self._tls else parts)

    def _starve(self) -> None:
        if not self._starved:
            self._starved = True
            self._selector.unregister(self._source)

    def _flush(self) -> None:
        try:
            while self._outgoing:
                if self._tls:
                    sent = self._sink.send(self._outgoing[0])
                else:
                    sent = self._sink.sendmsg([self._outgoing[i] for i in range(min(len(self._outgoing), MAX_PARTS))])
                drop_sent(self._outgoing, sent)
                self._sent += sent
            if isinstance(self._sink, BioSocket):
                self._sink.flush()
            self._blocked = False
        except AGAIN:
            self._blocked = True
        while self._chunks and self._chunks[0][0] <= self._sent:
            self._pool.give(self._chunks.popleft()[1])
            if self._starved:
                self._starved = False
                self._selector.register(self._source, selectors.EVENT_READ)
                if self._tls:
                    self._read()

    def _read_acks(self) -> None:
        while True:
            try:
                data = self._sink.recv(65536)
            except AGAIN:
                return
            _some(len(data))
            self.acks.received(data)
            if not self._tls:
                return


class BioSocket:
    """TLS over a non-blocking socket through memory buffers: one system call carries many TLS records.

    An SSLSocket hands each record of 16 KiB to the kernel by itself. This takes the place of one in the relay above.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._sock = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        self._scratch = memoryview(bytearray(256 << 10))
        self._unsent: memoryview | bytes = b""
        self._handshake()

    def _handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._sock.sendall(self._out.read())
                self._in.write(self._sock.recv(65536))
            else:
                self._sock.sendall(self._out.read())
                return

    def fileno(self) -> int:
        return self._sock.fileno()

    def setblocking(self, flag: bool) -> None:
        self._sock.setblocking(flag)

    def recv_into(self, space: memoryview) -> int:
        """Decrypt into ``space`` what fits; raises SSLWantReadError once everything received is decrypted."""
        done = 0
        while done < len(space):
            try:
                done += self._tls.read(len(space) - done, space[done:])  # type: ignore[call-overload]
            except ssl.SSLWantReadError:
                if done:
                    break
                try:
                    self._in.write(self._scratch[: _some(self._sock.recv_into(self._scratch))])
                except BlockingIOError:
                    raise ssl.SSLWantReadError from None
        return done

    def recv(self, count: int) -> bytes:
        buffer = memoryview(bytearray(count))
        return bytes(buffer[: self.recv_into(buffer)])

    def send(self, part: Any) -> int:
        """Encrypt all of ``part`` and send it; raises BlockingIOError while older bytes still wait for the kernel."""
        self._push()
        done = 0
        while done < len(part):
            done += self._tls.write(memoryview(part)[done:])
        self._unsent = self._out.read()
        with contextlib.suppress(BlockingIOError):
            self._push()
        return done

    def flush(self) -> None:
        self._push()

    def _push(self) -> None:
        while self._unsent:
            self._unsent = memoryview(self._unsent)[self._sock.send(self._unsent) :]


def relay_sockets(
    model: str, source: socket.socket, sink: socket.socket, load: Load, clock: Clock, tls: ssl.SSLContext | None
) -> tuple[Converter, Acks]:
    wrapped: list[Any] = [source, sink]
    if tls and model == "selectors+bio":
        wrapped = [BioSocket(end, tls) for end in wrapped]
    elif tls:
        wrapped = [tls.wrap_socket(end, server_hostname="localhost") for end in wrapped]
    relay = (ThreadsRelay if model == "threads" else SelectorRelay)(*wrapped, load, clock)
    relay.run()
    return relay.converter, relay.acks


# -- processes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OffsetMapping:
    model: str
    load: Load
    tls_dir: str | None

    def client_context(self) -> ssl.SSLContext | None:
        if self.tls_dir is None:
            return None
        context = ssl.create_default_context(cafile=f"{self.tls_dir}/cert.pem")
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context

    def server_context(self) -> ssl.SSLContext | None:
        if self.tls_dir is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(f"{self.tls_dir}/cert.pem", f"{self.tls_dir}/key.pem")
        return context


def connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def accept(run: OffsetMapping, pipe: Connection) -> socket.socket:
    """Listen, tell the port, take one connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        pipe.send(server.getsockname()[1])
        sock, _ = server.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    context = run.server_context()
    return context.wrap_socket(sock, server_side=True) if context else sock


def make_batch(size: int, seed: int) -> bytearray:
    batch = bytearray(random.Random(seed).randbytes(size))
    struct.pack_into(">qiib", batch, 0, seed, size - 12, 0, 2)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


def feed(run: OffsetMapping, pipe: Connection) -> None:
    """Answer each request with a reply, as a broker does to a long poll."""
    load = run.load
    batches = b"".join(make_batch(load.batch, seed) for seed in range(load.batches_per_reply))
    reply = bytearray(struct.pack(">i", load.reply_bytes) + batches)
    gaps = random.Random(1)
    sock = accept(run, pipe)
    credit = sent = 0
    while sent < load.replies:
        credit += len(sock.recv(65536)) / len(REQUEST)
        while credit >= 1 and sent < load.replies:
            if load.gap_ms:
                time.sleep(load.gap_ms / 1000 * (0.5 + gaps.random()))
                stamp(memoryview(reply)[4:])
            sock.sendall(reply)
            credit -= 1
            sent += 1
    sock.sendall(struct.pack(">i", 0))
    pipe.recv()


def stamp(batch: memoryview) -> None:
    """Put the time of sending behind the header."""
    struct.pack_into(">q", batch, HEADER, time.monotonic_ns())
    struct.pack_into(">I", batch, 17, crc32c(batch[21:]))


def swallow(run: OffsetMapping, pipe: Connection) -> None:
    """Acknowledge each frame; look into every 64th; report the latencies."""
    sock = accept(run, pipe)
    pool = Pool()
    inbox = Inbox(pool)
    latencies: list[int] = []
    number, seen = 0, 0
    while number != END:
        space = inbox.space()
        assert space is not None
        frames, used_up = inbox.received(_some(sock.recv_into(space)))
        now = time.monotonic_ns()
        for frame in frames:
            number = struct.unpack_from(">i", frame, 0)[0]
            seen += 1
            if number != END and run.load.gap_ms:
                latencies.append(now - struct.unpack_from(">q", frame, 4 + HEADER)[0])
            if number != END and seen % 64 == 1:
                batch = frame[4 : 16 + struct.unpack_from(">i", frame, 12)[0]]
                if crc32c(batch[21:]) != struct.unpack_from(">I", batch, 17)[0]:
                    raise ValueError("the relay sent a damaged batch")
        sock.sendall(b"".join(ACK.pack(4, struct.unpack_from(">i", frame, 0)[0]) for frame in frames))
        if used_up is not None:
            pool.give(used_up)
    pipe.send(latencies)
    pipe.recv()


def relay(run: OffsetMapping, feeder_port: int, sink_port: int, pipe: Connection) -> None:
    source, sink = connect(feeder_port), connect(sink_port)
    tls = run.client_context()
    clock = Clock()
    if run.model == "asyncio":
        converter, acks = relay_asyncio(source, sink, run.load, clock, tls)
    else:
        converter, acks = relay_sockets(run.model, source, sink, run.load, clock, tls)
    cpu, wall = clock.stop()
    if acks.count != converter.frames + 1:
        raise ValueError(f"{converter.frames + 1} frames sent, {acks.count} acknowledged")
    pipe.send((converter.bytes, cpu, wall))
    pipe.recv()


def measure(run: OffsetMapping) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []

    def start(target: Callable[..., None], *arguments: Any) -> Connection:
        ours, theirs = context.Pipe()
        process = context.Process(target=target, args=(run, *arguments, theirs), daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
        return ours

    def answer(pipe: Connection) -> Any:
        if not pipe.poll(120):
            raise TimeoutError(f"{run.model}/{run.load.name}: no result within 120 s")
        return pipe.recv()

    try:
        feeder, sink = start(feed), start(swallow)
        done = start(relay, answer(feeder), answer(sink))
        size, cpu, wall = answer(done)
        latencies = sorted(answer(sink))
        for pipe in pipes:
            pipe.send("end")
        for process in processes:
            process.join(10)
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
    if size != run.load.reply_bytes * run.load.replies:
        raise ValueError(f"{run.model}/{run.load.name}: {size} bytes relayed")
    if latencies:
        cuts = statistics.quantiles(latencies[len(latencies) // 20 :], n=100)
        return {"p50_us": cuts[49] / 1e3, "p99_us": cuts[98] / 1e3, "cpu_us_per_frame": cpu / run.load.replies * 1e6}
    return {"gb_per_s": size / wall / 1e9, "cpu_s_per_gb": cpu / size * 1e9}


def make_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


MODELS = ("threads", "asyncio", "selectors", "selectors+bio")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="interleaved repetitions (default 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the amount of data (default 1)")
    parser.add_argument("--json", action="store_true", help="print medians and every single value as JSON")
    arguments = parser.parse_args()
    values: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="io-models-") as folder:
        make_certificate(Path(folder))
        for round_number in range(arguments.rounds):
            for tls in (None, folder):
                for load in loads(arguments.scale):
                    # The order rotates, so that no model always runs behind the same other one.
                    turn = round_number % len(MODELS)
                    for model in MODELS[turn:] + MODELS[:turn]:
                        if model == "selectors+bio" and tls is None:
                            continue  # only differs under TLS
                        result = measure(OffsetMapping(model, load, tls))
                        values.setdefault((load.name, "TLS 1.3" if tls else "plain", model), []).append(result)
            print(f"round {round_number + 1} of {arguments.rounds} done", file=sys.stderr)
    medians = {key: {name: statistics.median(r[name] for r in rs) for name in rs[0]} for key, rs in values.items()}
    if arguments.json:
        rows = [
            {"load": load, "transport": transport, "model": model, **medians[load, transport, model], "rounds": rounds}
            for (load, transport, model), rounds in values.items()
        ]
        print(json.dumps({"python": sys.version.split()[0], "cores": os.cpu_count(), "rows": rows}, indent=1))
        return 0
    print_table(medians)
    return 0


def print_table(medians: dict[tuple[str, str, str], dict[str, float]]) -> None:
    print("| load | transport | measure | " + " | ".join(MODELS) + " |")
    print("|---|---|---|" + "--:|" * len(MODELS))
    for load, transport in dict.fromkeys((load, transport) for load, transport, _ in medians):
        for name in medians[load, transport, MODELS[0]]:
            found = [medians.get((load, transport, model)) for model in MODELS]
            cells = " | ".join(f"{values[name]:.2f}" if values else "–" for values in found)
            print(f"| {load} | {transport} | {name} | {cells} |")


if __name__ == "__main__":
    sys.exit(main())
