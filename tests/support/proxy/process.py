"""``python -m support.proxy.process SEED LISTEN:TARGET …``: the proxy itself. Orders come in as lines of JSON, each is
answered by one; it ends with its input. See ``support.proxy.proxy``."""

import asyncio
import json
import math
import random
import socket
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from support.proxy.frames import SEGMENT_BYTES, Frame, Passed, Piece, Rule, Walker

_CHUNK_BYTES = 1 << 18
_QUEUED_BYTES = 256 << 20  # each way of a connection; more is left with the sender
_LOSSY_BYTES = 1 << 16  # congestion control lets no more be under way; the rest is left with the sender, who can tell
_LINGER_SECONDS = 3.0  # for the broker to take a held request before its connection is closed


@dataclass
class Weather:
    """What all connections suffer now."""

    rng: random.Random
    rules: list[Rule] = field(default_factory=list)
    delay_seconds: float = 0.0  # each way
    bytes_per_second: float = 0.0  # of each connection, each way; 0 is unlimited
    loss_share: float = 0.0  # of TCP's segments
    lost: int = 0
    passed: Passed = field(default_factory=Passed)
    refuses: bool = False
    flows: asyncio.Event = field(default_factory=asyncio.Event)

    def change(
        self,
        delay_seconds: float | None = None,
        bytes_per_second: float | None = None,
        loss_share: float | None = None,
        stalls: bool | None = None,
        refuses: bool | None = None,
        calm: bool = False,
    ) -> None:
        """Only what is named changes. Rules of before a calm keep their numbers and counts, and do nothing."""
        if calm:
            delay_seconds, bytes_per_second, loss_share, stalls, refuses = 0.0, 0.0, 0.0, False, False
            for rule in self.rules:
                rule.times = 0
        self.delay_seconds = self.delay_seconds if delay_seconds is None else delay_seconds
        self.bytes_per_second = self.bytes_per_second if bytes_per_second is None else bytes_per_second
        self.loss_share = self.loss_share if loss_share is None else loss_share
        self.refuses = self.refuses if refuses is None else refuses
        if stalls:
            self.flows.clear()
        elif stalls is not None:
            self.flows.set()

    @property
    def most_queued_bytes(self) -> int:
        return _LOSSY_BYTES if self.loss_share else _QUEUED_BYTES

    def way_seconds(self, size: int) -> float:
        """How long so many bytes are under way now. Of those that are lost the sender hears after a round trip."""
        segments = math.ceil(size / SEGMENT_BYTES)
        lost = self.loss_share > 0.0 and self.rng.random() > (1 - self.loss_share) ** segments
        self.lost += lost
        return self.delay_seconds * (3 if lost else 1)

    def rule_for(self, frame: Frame) -> Rule | None:
        return next((rule for rule in self.rules if rule.takes(frame, self.rng)), None)


class Lane:
    """One way of a connection: what was read waits here until it is due, then goes out."""

    def __init__(self, weather: Weather, walker: Walker, close: Callable[[], None]) -> None:
        self.dead = False  # a connection forgotten on the way: its bytes arrive nowhere
        self._weather = weather
        self._walker = walker
        self._close = close
        self._queue: deque[tuple[float, bytes | None]] = deque()  # None: cut here
        self._queued_bytes = 0
        self._changed = asyncio.Event()
        self._rule: Rule | None = None
        self._passes_until = 0
        self.held = asyncio.Event()
        self.hold: Rule | None = None

    async def take(self, reader: asyncio.StreamReader) -> None:
        """Read until the other side ends, or a rule does."""
        while data := await reader.read(_CHUNK_BYTES):
            for piece in self._walker.feed(data):
                self._accept(piece)
            while self._queued_bytes > self._weather.most_queued_bytes:
                self._changed.clear()
                await self._changed.wait()

    def _accept(self, piece: Piece) -> None:
        self._weather.passed.count(piece)
        if piece.at == 0:
            self._rule = self._weather.rule_for(piece.frame)
            if self._rule is not None and self._rule.act == "cut":
                self._passes_until = self._rule.cut_at(piece.frame, self._weather.rng)
        rule = self._rule
        if rule is not None and rule.act == "cut" and piece.at + len(piece.data) >= self._passes_until:
            self._put(piece.data[: max(0, self._passes_until - piece.at)])
            self._put(None)
            return
        if rule is not None and rule.act == "hold":
            self.hold = rule
        data = piece.data
        if rule is not None and rule.act == "flip":
            data = self._flipped(data, piece.frame.size - rule.before_end_bytes - piece.at)
        self._put(data)
        if self.hold is not None and piece.ends_frame:
            self.held.set()

    def _flipped(self, data: bytes, at: int) -> bytes:
        """One bit of byte ``at``, if that is in here."""
        if not 0 <= at < len(data):
            return data
        return data[:at] + bytes([data[at] ^ 1 << self._weather.rng.randrange(8)]) + data[at + 1 :]

    def _put(self, data: bytes | None) -> None:
        due = asyncio.get_running_loop().time() + self._weather.way_seconds(len(data or b""))
        self._queue.append((due, data))
        self._queued_bytes += len(data or b"")
        self._changed.set()

    async def give(self, writer: asyncio.StreamWriter) -> None:
        """Write what is due. A held request and all behind it waits for ``release``."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._queue:
                self._changed.clear()
                await self._changed.wait()
            due, data = self._queue[0]
            await asyncio.sleep(max(0.0, due - loop.time()))
            await self._weather.flows.wait()
            if self.hold is not None:
                return
            self._drop_first()
            if data is None:
                self._close()
                return
            if not self.dead:
                writer.write(data)
                await writer.drain()
                await self._spend(len(data))

    async def release(self, writer: asyncio.StreamWriter) -> None:
        """Deliver all that was held, with nobody waiting for the reply."""
        while self._queue:
            _, data = self._queue[0]
            self._drop_first()
            writer.write(data or b"")
        await writer.drain()
        await asyncio.sleep(_LINGER_SECONDS)

    def _drop_first(self) -> None:
        self._queued_bytes -= len(self._queue.popleft()[1] or b"")
        self._changed.set()

    async def _spend(self, size: int) -> None:
        rate = self._weather.bytes_per_second
        if rate:
            await asyncio.sleep(size / rate)


class Link:
    """One client's connection and the one to the broker behind it."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self._writers: list[asyncio.StreamWriter] = []
        open_requests: deque[Frame] = deque()
        self._there = Lane(weather, Walker("request", open_requests), self.cut)
        self._back = Lane(weather, Walker("reply", open_requests), self.cut)

    async def serve(self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until either side closes, or a rule does."""
        self._writers.append(writer)
        if self._weather.refuses:
            self.cut()
            return
        try:
            broker_reader, broker = await asyncio.open_connection("127.0.0.1", target, limit=_CHUNK_BYTES)
        except OSError:  # it is down: so are we for this client
            self.cut()
            return
        self._writers.append(broker)
        if self._weather.loss_share:
            for one in self._writers:
                one.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LOSSY_BYTES)
        client_leaves = asyncio.ensure_future(self._there.take(reader))
        replies_end = asyncio.ensure_future(self._back.take(broker_reader))
        giving = [asyncio.ensure_future(self._there.give(broker)), asyncio.ensure_future(self._back.give(writer))]
        held = asyncio.ensure_future(self._there.held.wait())
        tasks = [client_leaves, replies_end, held, *giving]
        try:
            await asyncio.wait([client_leaves, replies_end, held, giving[1]], return_when=asyncio.FIRST_COMPLETED)
            if held.done() and self._there.hold is not None:
                if self._there.hold.until_it_leaves:
                    await client_leaves
                writer.close()
                await asyncio.sleep(self._there.hold.seconds)
                await self._there.release(broker)
        except OSError:  # one side reset the connection
            return
        finally:
            self.cut()
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, OSError):
                    raise result

    def cut(self) -> None:
        for writer in self._writers:
            writer.close()

    def forget(self) -> None:
        """Neither side is told, and nothing arrives any more."""
        self._there.dead = self._back.dead = True


class Proxy:
    """All of it: listeners, connections, and the orders that come in."""

    def __init__(self, seed: int, routes: list[tuple[int, int]]) -> None:
        self._routes = routes
        self._weather = Weather(random.Random(seed))
        self._links: set[Link] = set()

    async def run(self) -> None:
        self._weather.flows.set()
        servers = [
            await asyncio.start_server(partial(self._accept, target), "127.0.0.1", listen, limit=_CHUNK_BYTES)
            for listen, target in self._routes
        ]
        orders = asyncio.StreamReader(limit=_CHUNK_BYTES)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while line := await orders.readline():
            sys.stdout.write(json.dumps(self._obey(json.loads(line))) + "\n")
            sys.stdout.flush()
        for server in servers:
            server.close()
        for link in list(self._links):
            link.cut()

    async def _accept(self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(self._weather)
        self._links.add(link)
        try:
            with suppress(asyncio.CancelledError):  # at the very end
                await link.serve(target, reader, writer)
        finally:
            self._links.discard(link)

    def _obey(self, order: dict[str, Any]) -> Any:
        weather = self._weather
        match order:
            case {"rule": rule}:
                weather.rules.append(Rule(**rule))
                return len(weather.rules) - 1
            case {"fired": number}:
                return weather.rules[number].fired
            case {"weather": changes}:
                weather.change(**changes)
            case {"lost": _}:
                return weather.lost
            case {"passed": {"way": way, "api": api, "client": client}}:
                return weather.passed.of(way, api, client)
            case {"cut": _}:
                for link in list(self._links):
                    link.cut()
            case {"forget": _}:
                for link in self._links:
                    link.forget()
            case _:
                raise ValueError(f"no such order: {order}")
        return len(self._links)


if __name__ == "__main__":
    pairs = [pair.split(":") for pair in sys.argv[2:]]
    asyncio.run(Proxy(int(sys.argv[1]), [(int(listen), int(target)) for listen, target in pairs]).run())
