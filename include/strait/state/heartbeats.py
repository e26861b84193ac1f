"""Heartbeats: small records, copied like any other, which distinguish an idle or broken link from one that copies.

Topics, names and bytes are MirrorMaker 2's (KIP-382), so its clients and formatters read them. Pure.

For a flow a -> b, the record is written to topic `heartbeats` of a, and its destination topic is `a.heartbeats` on b
regardless of the link's naming: MirrorMaker 2's clients find a cluster's upstreams, and count hops, by such names.
"""

import struct
from typing import NamedTuple

from strait.errors import ProtocolError
from strait.state.schema import Plan, PlannedHeartbeat

VERSION = 0
_VALUE = struct.Struct(">hq")
_LENGTH = struct.Struct(">h")


class Heartbeat(NamedTuple):
    """``target``: the cluster that it is written to; ``source``: the one at the other end of the flow. The names are
    MirrorMaker 2's, which writes to a with the connector that copies from b to a."""

    source: str
    target: str
    at_ms: int

    def key(self) -> bytes:
        """Return the key, one for each flow: compaction keeps its newest heartbeat."""
        return encode_text(self.source) + encode_text(self.target)

    def value(self) -> bytes:
        return _VALUE.pack(VERSION, self.at_ms)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> "Heartbeat":
        """Decode a heartbeat. Raises ProtocolError if the bytes are not a heartbeat or have another version."""
        try:
            source, rest = _take_text(key)
            target, rest = _take_text(rest)
            version, at_ms = _VALUE.unpack(value)
        except (struct.error, ValueError) as error:
            raise ProtocolError(f"a heartbeat is malformed: {error}") from error
        if rest or version != VERSION:
            raise ProtocolError(f"a heartbeat has version {version}, Strait knows {VERSION}")
        return cls(source, target, at_ms)


def encode_text(text: str) -> bytes:
    """Encode a text as in MirrorMaker 2's records: its length in 16 bits, then UTF-8."""
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def _take_text(data: bytes) -> tuple[str, bytes]:
    (length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + length
    if not _LENGTH.size <= end <= len(data):
        raise ValueError(f"a text of {length} bytes in {len(data)}")
    return data[_LENGTH.size : end].decode(), data[end:]


def beating(plan: Plan, slot: int) -> PlannedHeartbeat | None:
    """Return the heartbeat that this slot writes, or None.

    The slot that copies the heartbeats writes them, so there is one writer among all task groups.
    """
    beat = plan.heartbeat
    if beat is None or plan.stopped:
        return None
    return beat if any(topic.source == beat.topic and topic.slots[:1] == (slot,) for topic in plan.topics) else None
