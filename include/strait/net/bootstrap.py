"""Short-lived connections to a cluster's brokers, for occasional requests."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from strait.errors import ClusterUnavailable, StraitError
from strait.net.addresses import parse_addresses
from strait.net.handshake import Connection, dial
from strait.net.security import Security

_PAUSE_SECONDS = 0.2
_T = TypeVar("_T")

Address = tuple[str, int]


@contextmanager
def any_broker(properties: Mapping[str, str], cluster: str) -> Iterator[Connection]:
    """Connect to any bootstrap address that answers. Raises ClusterUnavailable if none does, NotAuthorized."""
    security = Security(cluster, properties)
    trouble: ClusterUnavailable | None = None
    addresses = parse_addresses(cluster, properties["bootstrap.servers"])
    for address in random.sample(addresses, len(addresses)):  # random order: a retry most likely uses another broker
        try:
            connection = dial(cluster, address, security)
        except ClusterUnavailable as error:
            trouble = error
            continue
        try:
            yield connection
        finally:
            connection.close()
        return
    raise trouble or ClusterUnavailable(cluster, "no broker to ask")


@contextmanager
def broker_at(properties: Mapping[str, str], cluster: str, address: Address) -> Iterator[Connection]:
    """Connect to this broker and no other. Raises ClusterUnavailable, NotAuthorized."""
    connection = dial(cluster, address, Security(cluster, properties))
    try:
        yield connection
    finally:
        connection.close()


def until_answered(ask: Callable[[], _T], timeout_seconds: float) -> _T:
    """Return the result of ``ask``, repeated every 0.2 s while it fails with a retriable error. Raises the last error
    after ``timeout_seconds``, and any other error immediately."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            return ask()
        except StraitError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
