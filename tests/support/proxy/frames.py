"""Kafka's frames in a stream of bytes, and the rules by which a proxy breaks them. Pure; see ``support.proxy.proxy``."""

import random
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Way = Literal["request", "reply"]

SEGMENT_BYTES = 1448
"""What TCP sends at once over Ethernet."""

_HEAD_BYTES = 80
"""Of a request: its length, API key, version, correlation and the client's id are within them."""


class Frame(NamedTuple):
    """One request or its reply. ``size`` counts its length field too; ``api`` is -1 where no request was seen."""

    way: Way
    api: int
    client: str
    size: int


class Piece(NamedTuple):
    """Consecutive bytes of one frame, the first of them its byte ``at``."""

    data: bytes
    frame: Frame
    at: int

    @property
    def ends_frame(self) -> bool:
        return self.at + len(self.data) == self.frame.size


class Walker:
    """Cuts what flows one way on a connection into pieces of single frames. Brokers reply in the order of the requests,
    so ``open_requests``, shared by both ways, tells what a reply is the reply to."""

    def __init__(self, way: Way, open_requests: deque[Frame]) -> None:
        self._way: Way = way
        self._open = open_requests
        self._held = b""
        self._frame: Frame | None = None
        self._at = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that are complete enough to say which frame they belong to; the rest is kept for the next call."""
        data, self._held = self._held + data, b""
        begin = 0
        while begin < len(data):
            if self._frame is None:
                self._frame = self._begin(data, begin)
                if self._frame is None:
                    self._held = data[begin:]
                    return
            end = min(len(data), begin + self._frame.size - self._at)
            piece = Piece(data[begin:end], self._frame, self._at)
            self._at += end - begin
            begin = end
            if piece.ends_frame:
                self._frame, self._at = None, 0
            yield piece

    def _begin(self, data: bytes, begin: int) -> Frame | None:
        here = len(data) - begin
        if here < 4:
            return None
        size = 4 + struct.unpack_from(">i", data, begin)[0]
        if self._way == "reply":
            asked = self._open.popleft() if self._open else Frame("request", -1, "", 0)
            return Frame("reply", asked.api, asked.client, size)
        if here < min(size, _HEAD_BYTES):
            return None
        api, _, _, length = struct.unpack_from(">hhih", data, begin + 4)
        name = data[begin + 14 : begin + 14 + max(0, length)]
        frame = Frame("request", api, name.decode(errors="replace"), size)
        self._open.append(frame)
        return frame


class Volume(NamedTuple):
    """So many frames, and their bytes; of one that has not come to its end those that came."""

    frames: int
    bytes: int


class Passed:
    """What has come so far, of each way, kind of request and client."""

    def __init__(self) -> None:
        self._volumes: dict[tuple[Way, int, str], Volume] = {}

    def count(self, piece: Piece) -> None:
        which = piece.frame[:3]
        frames, size = self._volumes.get(which, (0, 0))
        self._volumes[which] = Volume(frames + piece.ends_frame, size + len(piece.data))

    def of(self, way: Way, api: int | None, client: str) -> Volume:
        """Of this kind of request, or of all; of clients whose ids begin so."""
        found = [
            volume
            for (its_way, its_api, its_client), volume in self._volumes.items()
            if its_way == way and api in (None, its_api) and its_client.startswith(client)
        ]
        return Volume(sum(one.frames for one in found), sum(one.bytes for one in found))


@dataclass
class Rule:
    """What to do with frames that match. ``cut``: close the connection after ``after_bytes`` of the frame (None:
    anywhere in it). ``hold``: take a request, close the client's side (or wait until it hangs up itself:
    ``until_it_leaves``), and deliver the request ``seconds`` later on the old connection to the broker: a zombie.
    ``flip``: one bit of the byte that many before the frame's end.

    Frames of fewer than ``least_bytes`` do not match. ``skip`` matching frames pass first; the rule ends after
    ``times`` (None: never); ``chance`` for each match.
    """

    act: Literal["cut", "hold", "flip"]
    way: Way
    api: int | None = None
    client: str = ""
    after_bytes: int | None = None
    before_end_bytes: int = 0
    least_bytes: int = 0
    skip: int = 0
    times: int | None = 1
    chance: float = 1.0
    seconds: float = 0.0
    until_it_leaves: bool = False
    fired: int = 0

    def takes(self, frame: Frame, rng: random.Random) -> bool:
        """Whether it acts on this frame; asked once for each frame."""
        if frame.way != self.way or self.api not in (None, frame.api) or not frame.client.startswith(self.client):
            return False
        if frame.size < self.least_bytes:
            return False
        if self.times is not None and self.fired >= self.times:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if rng.random() >= self.chance:
            return False
        self.fired += 1
        return True

    def cut_at(self, frame: Frame, rng: random.Random) -> int:
        """How many bytes of the frame still pass."""
        return rng.randrange(frame.size) if self.after_bytes is None else min(self.after_bytes, frame.size)
