"""Producers that write to the expected cluster only.

An address can come to belong to another cluster while a broker is away. librdkafka reconnects automatically and sends its
queue, and it has no hook for a new connection. So a long-lived producer whose connection was lost is given up, and its
successor writes once the expected cluster has answered it. A short-lived one asks its cluster before it writes.
"""

import math
import re
import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from strait.config import naming
from strait.config.cluster_identity import expected_id, require_expected
from strait.errors import StraitError
from strait.kafka.clients import CONNECT_TIMEOUT_SECONDS, STATE_ANSWER_MS, Rotation, Watch, make_producer

PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}  # noqa: SLF001
"""Errors of records that a producer has not sent, or whose acknowledgement is missing, when it is given up."""

_FAILED, _OTHER_ID = "FAIL", "CLUSTERID"
"""Kinds of lines that librdkafka logs: a connection failed; a broker reports another cluster's ID than others before."""

_NEVER_CONNECTED = re.compile(r"in state (CONNECT|TRY_CONNECT|INIT|SSL_HANDSHAKE)\b|Failed to resolve|Connect to ")
_PAUSE_SECONDS = 0.5  # between two attempts: another cluster answers immediately
_FAREWELL_SECONDS = 0.2  # to finish requests in flight with credentials that have been replaced
_SLICE_SECONDS = 0.1  # of a wait, after which a lost connection is noticed
_LOOK_SECONDS = 0.01  # between checks for a successor


def identify(
    client: Any,
    properties: Mapping[str, str],
    watch: Watch,
    doing: str,
    timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
) -> None:
    """Raise OtherCluster unless a client is connected to the expected cluster, if one is expected.

    Raises:
        ClusterUnavailable, NotAuthorized: the cluster does not answer.
    """
    if not expected_id(properties):
        return
    try:
        metadata = client.list_topics(naming.PRODUCERS_TOPIC, timeout=timeout_seconds)
    except KafkaException as exception:
        raise watch.translate(exception, doing) from exception
    require_expected(watch.cluster, properties, metadata.cluster_id)


class VerifiedProducer:
    """A long-lived producer. Its owner sends records again that end with one of `PURGED`. Not thread-safe.

    It is replaced after a lost connection, if a cluster is expected, and when the files that its properties name have
    changed. Until the successor follows, no record is accepted, so that all keep their order.

    Args:
        identified: the cluster has just been identified otherwise; else it is before the first record is accepted.
        settings: librdkafka's, with ``_`` for ``.``.

    Raises:
        ConfigError: a property, or the value or file of one, is wrong.
    """

    def __init__(
        self, properties: Mapping[str, str], cluster: str, settings: Mapping[str, Any], *, identified: bool = True
    ) -> None:
        self.trouble = ""
        """Why the last attempt to make a successor failed."""
        self._properties = properties
        self._cluster = cluster
        self._settings = settings
        self._rotation = Rotation(properties)
        self._attempt: _Attempt | None = None
        self._attempt_at = 0.0
        self._successor: _Client | None = None
        self._purge_at = math.inf
        self._client = self._make()
        self._client.is_lost = not identified and bool(expected_id(properties))

    @property
    def watch(self) -> Watch:
        return self._client.watch

    @property
    def is_open(self) -> bool:
        """Whether records are accepted."""
        return self._successor is None and not self._client.is_lost

    def produce(self, topic: str, **record: Any) -> None:
        """Send a record; its ``on_delivery`` is called from `poll` or `flush`. Raises BufferError if too many wait, or
        no record is accepted; KafkaException if the record cannot be sent at all."""
        if not self.is_open:
            raise BufferError
        self._client.producer.produce(topic, **record)

    def poll(self) -> None:
        """Call the callbacks of records that were acknowledged or rejected. Call it often: it never blocks."""
        self._client.producer.poll(0)
        self._look_for_a_successor(time.monotonic())
        if not self.is_open:
            self._take_leave()

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until all records are acknowledged or rejected, or the time is over; return whether none is left."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            self.poll()
            left = self._client.producer.flush(max(0.0, min(_SLICE_SECONDS, deadline - time.monotonic())))
            if self.is_open and not left:
                return True
            if time.monotonic() >= deadline:
                return False
            if not left:
                time.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        """Discard all records."""
        self._client.close()

    def _make(self) -> "_Client":
        return _Client(self._properties, self._cluster, self._settings)

    def _look_for_a_successor(self, now: float) -> None:
        if self._attempt is not None and self._attempt.is_over:
            self._successor, self.trouble = self._attempt.client, self._attempt.trouble
            self._attempt, self._attempt_at = None, now + _PAUSE_SECONDS
            self._purge_at = now + _FAREWELL_SECONDS
        idle = self._attempt is None and self._successor is None and now >= self._attempt_at
        if idle and (self._client.is_lost or self._rotation.due()):
            self._attempt = _Attempt(self)

    def _take_leave(self) -> None:
        """Take the records back that the producer must not send any more; let its successor follow once none is left."""
        former = self._client
        if len(former.producer) and (former.is_lost or time.monotonic() >= self._purge_at):
            former.producer.purge()
            former.producer.poll(0)
        if self._successor is not None and not len(former.producer):
            self._client, self._successor = self._successor, None
            self._rotation.done()
            former.close()

    def make_identified(self) -> "_Client":
        """Return a client of the expected cluster. Takes up to some seconds."""
        client = self._make()
        try:
            identify(client.producer, self._properties, client.watch, "identifying the cluster", STATE_ANSWER_MS / 1000)
        except StraitError:
            client.close()
            raise
        return client


class _Client:
    """One of librdkafka's producers, and whether a connection of it was lost."""

    def __init__(self, properties: Mapping[str, str], cluster: str, settings: Mapping[str, Any]) -> None:
        self.is_lost = False
        self.watch = Watch(cluster, read=self._read)
        self._is_verified = bool(expected_id(properties))
        closing = {"log_connection_close": True} if self._is_verified else {}  # even if no request was lost
        logging = {key: value for key, value in properties.items() if key != "log_level" or not self._is_verified}
        self.producer = make_producer(logging, self.watch, **closing, **settings)

    def close(self) -> None:
        """Discard all records and disconnect, in a separate thread: looking up a broker's name may delay it."""
        self.producer.purge(blocking=False)
        threading.Thread(target=self.producer.close, name="farewell", daemon=True).start()

    def _read(self, kind: str, text: str) -> None:
        """Read a line of librdkafka's log: only there it reports each lost connection, before it connects again. One that
        never was a connection is harmless: nothing was sent there."""
        was_connected = kind == _FAILED and not _NEVER_CONNECTED.search(text)
        if self._is_verified and (was_connected or kind == _OTHER_ID):
            self.is_lost = True


class _Attempt:
    """Makes a client in a separate thread, since its cluster's answer takes time."""

    def __init__(self, owner: VerifiedProducer) -> None:
        self.client: _Client | None = None
        self.trouble = ""
        self.is_over = False
        self._owner = owner
        threading.Thread(target=self._work, name="successor", daemon=True).start()

    def _work(self) -> None:
        try:
            self.client = self._owner.make_identified()
        except StraitError as error:  # the next attempt follows; files with secrets may be replaced one by one
            self.trouble = str(error)
        finally:
            self.is_over = True
