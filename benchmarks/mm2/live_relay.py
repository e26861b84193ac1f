"""The limit of latency: a record's way when nothing is done with it but to pass it on, through one process with one
connection to either broker. It knows one topic and no faults; whatever goes wrong ends it.
"""

import os
import selectors
import socket
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from kafka.protocol.metadata import MetadataResponse

from mm2.copier import Command
from mm2.workloads import PARTITIONS
from strait.control.proposing import collector_paused
from strait.embedded.kafka import Cluster
from strait.errors import MeasurementError
from strait.net import error_policy
from strait.net.addresses import parse_addresses
from strait.net.buffers import BufferPool
from strait.net.frames import Frames
from strait.net.handshake import Connection, dial, request_head
from strait.net.known_topics import METADATA, metadata_request
from strait.net.security import Security
from strait.wire import fetch, produce
from strait.wire.batch import restamp, split_batches

NAME = "relay"
_PREFIX = "relayed."
_MODULE = "mm2.live_relay"
_WAIT_MS = 500
_TIMEOUT_MS = 3_000
_REPLY_BYTES = 8 << 20
_SHARE_BYTES = 1 << 20
_POOL_BYTES = 4 * _REPLY_BYTES
_ANY_EPOCH = -1
_NOBODY = -1  # as batches of an ordinary producer have it: neither a producer id nor a sequence


def command(directory: Path, source: Cluster, destination: Cluster, topic: str) -> Command:
    """Both topics must be there."""
    copy = f"{_PREFIX}{topic}"
    argv = (sys.executable, "-m", _MODULE, source.bootstrap, destination.bootstrap, topic, copy)
    here = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return Command(NAME, argv, directory / "relay.log", copy, _MODULE, here)


class _Relay:
    """Fetches as soon as the last reply is here, and sends on what it brought, one batch of a partition in a
    request."""

    def __init__(self, source: Connection, topic: bytes, destination: Connection, copy: bytes) -> None:
        self._source = source
        self._topic = topic
        self._destination = destination
        self._copy = copy
        self._positions = [0] * PARTITIONS
        self._fetch_version = source.version(fetch.API_KEY, *fetch.VERSIONS)
        self._produce_version = destination.version(produce.API_KEY, *produce.VERSIONS)

    def run(self) -> None:
        """Until it is ended. Raises MeasurementError for what a broker refuses, OSError for a lost connection."""
        pool = BufferPool(_POOL_BYTES)
        with selectors.DefaultSelector() as ready:
            for side, take in ((self._source, self._pass_on), (self._destination, self._require_success)):
                ready.register(side.socket, selectors.EVENT_READ, (side.socket, Frames(pool), take))
            self._ask()
            while True:
                for key, _ in ready.select():
                    _receive(*key.data)

    def _ask(self) -> None:
        wanted = [
            fetch.FetchPosition(number, _ANY_EPOCH, position, _SHARE_BYTES)
            for number, position in enumerate(self._positions)
        ]
        body = fetch.encode_request(
            self._fetch_version, [(self._topic, wanted)], max_wait_ms=_WAIT_MS, max_bytes=_REPLY_BYTES
        )
        _send(self._source, fetch.API_KEY, self._fetch_version, body)

    def _pass_on(self, frame: memoryview) -> None:
        error, _, fetched = fetch.decode_reply(self._fetch_version, frame)
        _require_none(error)
        batches: dict[int, list[memoryview]] = defaultdict(list)
        for item in fetched:
            _require_none(item.error)
            for batch in split_batches(item.records, checked_to=0):
                self._positions[item.partition] = batch.next_offset
                restamp(batch, _NOBODY, _NOBODY)
                batches[item.partition].append(batch.view)
        while batches:
            now = [(number, waiting.pop(0)) for number, waiting in batches.items()]
            body = b"".join(produce.encode_request({self._copy: now}, _TIMEOUT_MS))
            _send(self._destination, produce.API_KEY, self._produce_version, body)
            batches = {number: waiting for number, waiting in batches.items() if waiting}
        self._ask()

    def _require_success(self, frame: memoryview) -> None:
        _, results = produce.decode_reply(self._produce_version, frame)
        for result in results:
            _require_none(result.error)


def _send(to: Connection, api_key: int, version: int, body: bytes) -> None:
    head = request_head(api_key, version, 0)
    to.socket.sendall((len(head) + len(body)).to_bytes(4, "big") + head + body)


def _receive(sock: socket.socket, frames: Frames, take: Callable[[memoryview], None]) -> None:
    received = sock.recv_into(frames.space())
    if not received:
        raise ConnectionError("a broker closed its connection")
    for frame in frames.received(received):
        take(frame.view())
        frame.release()


def _require_none(error: int) -> None:
    if error:
        raise MeasurementError(f"{NAME}: a broker says {error_policy.name(error)}")


def _dial(name: str, bootstrap: str, topic: str) -> tuple[Connection, bytes]:
    """A connection to the cluster's only broker, and the topic's id."""
    (address,) = parse_addresses(name, bootstrap)
    connection = dial(name, address, Security(name, {}))
    connection.socket.settimeout(None)
    api_key, versions = METADATA
    reply = connection.ask(metadata_request(connection.version(api_key, *versions), [topic]), MetadataResponse)
    return connection, reply.topics[0].topic_id.bytes


@collector_paused()
def main(source: str, destination: str, topic: str, copy: str) -> None:
    """``source`` and ``destination``: host:port of the only broker."""
    _Relay(*_dial("source", source, topic), *_dial("destination", destination, copy)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
