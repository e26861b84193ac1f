"""The connection for the administration of one cluster: opened on construction, with one way to wait for results."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from confluent_kafka import KafkaException

from strait.config.cluster import Cluster
from strait.config.cluster_identity import expected_id, expecting, require_expected
from strait.errors import ClusterUnavailable, OtherCluster, StraitError
from strait.kafka.clients import CONNECT_TIMEOUT_SECONDS, Watch, ask, make_admin
from strait.kafka.translate import error_of
from strait.pieces import pieces

REQUEST_SECONDS = 15.0

CHANGES_AT_ONCE = 1_000
"""Maximum number of metadata records that one request makes: a topic, each of its partitions and each of its
configurations is one. A KRaft controller rejects a request as a whole that makes more than 10,000 of them, or 10,000
partitions; this smaller number is done within the timeout of a request."""
DESCRIBED_AT_ONCE = 500
"""Topics or groups per request: the reply is some MB."""
OFFSETS_AT_ONCE = 5_000
"""Partitions per request, of all leaders together."""

_WAIT_SLICE_SECONDS = 0.25

Key = TypeVar("Key")
Value = TypeVar("Value")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[Key, Value]):
    """The outcomes of one request about many items: each has a result or a failure."""

    results: Mapping[Key, Value]
    failures: Mapping[Key, StraitError]

    def or_raise(self) -> Mapping[Key, Value]:
        """Return the results if nothing failed; otherwise raise the first failure."""
        for failure in self.failures.values():
            raise failure
        return self.results

    def unless_away(self) -> "Outcomes[Key, Value]":
        """Return itself, but raise a failure that is ClusterUnavailable: it does not concern a single item."""
        for failure in self.failures.values():
            if isinstance(failure, ClusterUnavailable):
                raise failure
        return self


def silent(_: str) -> None:
    """Ignore progress."""


class Connection:
    """Connects on construction, so that an unreachable cluster or a rejected password is reported immediately.

    Args:
        progress: called with the progress of work that takes many requests.

    Raises:
        ConfigError: a property that librdkafka does not know.
        ClusterUnavailable, NotAuthorized: within `CONNECT_TIMEOUT_SECONDS`.
        OtherCluster: each address that answers belongs to another cluster than the expected one.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str, progress: Callable[[str], None] = silent) -> None:
        self.cluster = cluster
        self._progress = progress
        self._watch = Watch(cluster)
        self._properties = properties
        self.cluster_id = ""
        self._connect()

    @property
    def at(self) -> Cluster:
        """The cluster, for other connections to it."""
        return Cluster(self._properties, self.cluster)

    def expect(self, cluster_id: str) -> None:
        """Accept only this cluster from now on, unless another one was expected from the start. "": unknown.

        Raises:
            OtherCluster: no address answers as that cluster.
        """
        self._properties = expecting(self._properties, cluster_id)
        if expected_id(self._properties) not in ("", self.cluster_id):
            self._connect()

    def _connect(self) -> None:
        """Connect to the expected cluster: if another one answers, try each address separately."""
        servers = self._properties["bootstrap.servers"]
        try:
            self._connect_to(servers)
        except OtherCluster:
            for server in servers.split(","):
                with suppress(ClusterUnavailable):
                    self._connect_to(server)
                    return
            raise

    def _connect_to(self, servers: str) -> None:
        self._client = make_admin({**self._properties, "bootstrap.servers": servers}, self._watch)
        self._list_topics()

    def _list_topics(self) -> Any:
        """Return the cluster's metadata. Raises as the constructor does: another cluster may answer at any time."""

        def call(seconds: float) -> Any:
            try:
                return self._client.list_topics(timeout=seconds)
            finally:
                self._client.poll(0)  # librdkafka reports connection errors only during a poll

        metadata = ask(self._watch, "connecting", CONNECT_TIMEOUT_SECONDS, call)
        require_expected(self.cluster, self._properties, metadata.cluster_id)
        self.cluster_id = str(metadata.cluster_id or "")
        return metadata

    def _in_pieces(
        self,
        items: Iterable[Item],
        most: int,
        ask: Callable[[list[Item]], Outcomes[Key, Value]],
        doing: str,
        *,
        key_of: Callable[[Item], Key],
        size_of: Callable[[Item], int] = lambda _: 1,
    ) -> Outcomes[Key, Value]:
        """Send requests about the items one after the other, each of size ``most`` at most. If the cluster becomes
        unavailable meanwhile, all items without an answer have failed; answers so far are kept.

        Raises:
            ClusterUnavailable: the cluster has answered nothing.
        """
        items = list(items)
        results: dict[Key, Value] = {}
        failures: dict[Key, StraitError] = {}
        done = 0
        for piece in pieces(items, most, size_of):
            if done:
                self._progress(f"cluster {self.cluster}: {doing}: {done:,} of {len(items):,}")
            try:
                found = ask(piece)
            except ClusterUnavailable as error:
                if not results and all(isinstance(failure, ClusterUnavailable) for failure in failures.values()):
                    raise
                failures |= dict.fromkeys(map(key_of, items[done:]), error)
                break
            results |= found.results
            failures |= found.failures
            done += len(piece)
        return Outcomes(results, failures)

    def _wait(
        self, futures: Mapping[Key, Future[Any]], doing: str, none_if: Collection[int] = ()
    ) -> Outcomes[Key, Any]:
        """Wait for all futures; a result of None counts as True. Error codes in ``none_if`` give None instead."""
        deadline = time.monotonic() + REQUEST_SECONDS + 5
        pending = set(futures.values())
        while pending:
            pending = wait(pending, timeout=_WAIT_SLICE_SECONDS).not_done
            self._client.poll(0)
            if pending and time.monotonic() > deadline:
                raise ClusterUnavailable(self.cluster, f"{doing.format('…')}: timed out")
        results: dict[Key, Any] = {}
        failures: dict[Key, StraitError] = {}
        for key, future in futures.items():
            try:
                result = future.result()
                results[key] = True if result is None else result
            except KafkaException as exception:
                if error_of(exception).code() in none_if:
                    results[key] = None
                else:
                    failures[key] = self._watch.translate(exception, doing.format(key))
        return Outcomes(results, failures)
