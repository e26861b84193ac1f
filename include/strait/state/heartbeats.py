"""Heartbeats: small records that travel a link as any other, so that an idle or broken link can be told from one that
copies. Topics, names and bytes are MirrorMaker 2's (KIP-382), so its clients and formatters read them. Pure.

Of a flow a -> b, the record is written into topic `heartbeats` of a, and its copy is `a.heartbeats` on b whatever the
link's naming: MirrorMaker 2's clients find a cluster's upstreams, and count hops, by such names.
"""

import struct
from typing import NamedTuple

from strait.errors import ProtocolError
from strait.state.schema import Plan, PlannedHeartbeat

VERSION = 0
_VALUE = struct.Struct(">hq")
_LENGTH = struct.Struct(">h")


class Heartbeat(NamedTuple):
    """``target``: the cluster that it is written on; ``source``: the one at the other end of the flow. MirrorMaker 2
    calls them so because it writes into a with the connector that copies from b to a."""

    source: str
    target: str
    at_ms: int

    def key(self) -> bytes:
        """One for each flow: compaction keeps its newest heartbeat."""
        return encode_text(self.source) + encode_text(self.target)

    def value(self) -> bytes:
        return _VALUE.pack(VERSION, self.at_ms)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> "Heartbeat":
        """Raises ProtocolError where the bytes are not a heartbeat's, or of a later version."""
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
    """As MirrorMaker 2's records have it: its length in 16 bits, then UTF-8."""
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def _take_text(data: bytes) -> tuple[str, bytes]:
    (length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + length
    if not _LENGTH.size <= end <= len(data):
        raise ValueError(f"a text of {length} bytes in {len(data)}")
    return data[_LENGTH.size : end].decode(), data[end:]


def beating(plan: Plan, slot: int) -> PlannedHeartbeat | None:
    """What this slot has to write: the one that copies the heartbeats does, so there is one, of whatever task group."""
    beat = plan.heartbeat
    if beat is None or plan.stopped:
        return None
    return beat if any(topic.source == beat.topic and topic.slots[:1] == (slot,) for topic in plan.topics) else None
