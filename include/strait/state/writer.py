"""Writer of applications' state: reports, which may be lost, and offset segments, losses and quarantined records, which
may not."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from strait.config import naming
from strait.errors import StraitError
from strait.kafka.clients import STATE_ANSWER_MS
from strait.kafka.translate import error_of
from strait.kafka.verified import PURGED, VerifiedProducer
from strait.state.codec import Reported, encode, encode_key, run_key
from strait.state.ledger_records import LedgerMark, LedgerPart
from strait.state.quarantine_records import QuarantinedRecord, headers_of
from strait.state.report_changes import HistoryPoint
from strait.state.schema import Loss, OffsetMapping

OnAck = Callable[[StraitError | None], None]

RECORD_BYTES = 8 << 20
"""Largest record of a state topic; the topics are created with this `max.message.bytes`."""

QUARANTINED_BYTES = 100 << 20
"""Largest record that may be quarantined: a broker accepts no larger request, so no source holds a larger one."""

_WAITING_REPORT_BYTES = 16 << 20  # reports that wait for a slow destination use the slot's memory
_QUEUE_KIB = (QUARANTINED_BYTES + _WAITING_REPORT_BYTES) >> 10
_SEND_TIMEOUT_MS = 30_000
_COMPLAINT_SECONDS = 60.0  # between two equal warnings
_LOGGER = logging.getLogger(__name__)


class _Pending(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    on_ack: OnAck | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class StateProducer(VerifiedProducer):
    """The producer of one or several writers on a cluster. Not thread-safe.

    One request is in flight at a time, so records keep their order: the last segment written under a key is the one
    that stays. This needs no producer ID, which could become invalid and would have to be renewed. A duplicated record
    changes nothing.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        settings = {
            "client_id": "strait-state",
            "compression_type": "zstd",
            "message_max_bytes": QUARANTINED_BYTES,
            "max_in_flight": 1,
            "linger_ms": 0,  # batches may wait for a segment
            "message_timeout_ms": _SEND_TIMEOUT_MS,
            "socket_timeout_ms": STATE_ANSWER_MS,
            "queue_buffering_max_kbytes": _QUEUE_KIB,
        }
        super().__init__(properties, cluster, settings)


class StateWriter:
    """Writes a slot's records without ever blocking it. Not thread-safe. ``producer``: one that other links' writers
    use as well; default: a separate one."""

    def __init__(
        self, properties: Mapping[str, str], cluster: str, link: str, producer: StateProducer | None = None
    ) -> None:
        self._map_topic = naming.map_topic(link)
        self._reports_topic = naming.reports_topic(link)
        self._history_topic = naming.history_topic(link)
        self._ledger_topic = naming.ledger_topic(link)
        self._losses_topic = naming.losses_topic(link)
        self._quarantine_topic = naming.quarantine_topic(link)
        self._kept: deque[_Pending] = deque()
        self.dropped_reports = 0
        """Number of reports not written because the destination did not keep up, or rejected them."""
        self._waiting_report_bytes = 0
        self._complained: dict[str, float] = {}
        self._unsent: list[_Pending] = []  # records that the former producer could not send
        self._rejected: deque[tuple[_Pending, KafkaError]] = deque()  # by the client, which has not sent them
        self._defect: Exception | None = None
        self._producer = StateProducer(properties, cluster) if producer is None else producer

    def write_report(self, report: Reported) -> None:
        """Send a report or a history point, or drop and count it if too many bytes wait already."""
        key, value = encode(report)
        topic = self._history_topic if isinstance(report, HistoryPoint) else self._reports_topic
        if self._waiting_report_bytes + len(value) > _WAITING_REPORT_BYTES:
            self.dropped_reports += 1
        else:
            self._waiting_report_bytes += len(value)
            self._keep(_Pending(topic, key, value, partial(self._report_done, len(value))))

    def write_run(self, run: OffsetMapping, on_ack: OnAck | None = None) -> None:
        """Send an offset segment; ``on_ack`` gets None once every in-sync replica has it, or the error if that failed.

        ``on_ack`` is called from `poll` or `flush`, never from here: the caller may be in the middle of work that a failure
        must undo. A segment is not dropped if the buffer is full: it waits.
        """
        key, value = encode(run)
        self._keep(_Pending(self._map_topic, key, value, on_ack))

    def write_ledger(self, record: LedgerPart | LedgerMark, on_ack: OnAck | None = None) -> None:
        """Send a slot's ledger rows, or the mark of those written to the ledger; like a segment it is not dropped."""
        key, value = encode(record)
        self._keep(_Pending(self._ledger_topic, key, value, on_ack))

    def write_loss(self, loss: Loss, on_ack: OnAck | None = None) -> None:
        """Send an entry of the loss log; like a segment it is not dropped."""
        key, value = encode(loss)
        self._keep(_Pending(self._losses_topic, key, value, on_ack))

    def write_quarantined(self, quarantined: QuarantinedRecord, on_ack: OnAck) -> None:
        """Send a record that the destination rejected to the quarantine topic."""
        record = quarantined.record
        self._keep(_Pending(self._quarantine_topic, record.key, record.value, on_ack, headers_of(quarantined)))

    def forget_run(self, run: OffsetMapping) -> None:
        """Remove a segment from the map whose offsets other segments have as well."""
        self._keep(_Pending(self._map_topic, encode_key(run_key(run)), None, None))

    def poll(self) -> None:
        """Call the callbacks of acknowledged records, and send waiting ones. Call it often. Raises the error of a
        callback, which may have been called while another writer of the producer was polled."""
        self._producer.poll()
        self._report_rejected()
        self._send_kept()
        if self._defect is not None:
            defect, self._defect = self._defect, None
            raise defect

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until all records are acknowledged or rejected, or the time is over; return whether none is left."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            self._send_kept()
            is_done = self._producer.flush(max(0.0, deadline - time.monotonic()))
            self._report_rejected()
            is_done = is_done and not (self._kept or self._unsent or self._rejected)
            if is_done or time.monotonic() >= deadline:
                return is_done

    def _keep(self, record: _Pending) -> None:
        self._kept.append(record)
        self._send_kept()

    def _send_kept(self) -> None:
        if self._unsent:
            self._kept.extendleft(reversed(self._unsent))
            self._unsent.clear()
        while self._kept:
            if not self._send(self._kept[0]):
                return
            self._kept.popleft()

    def _report_rejected(self) -> None:
        rejected, self._rejected = self._rejected, deque()  # an `on_ack` may write more
        for record, error in rejected:
            self._done(record, error, None)

    def _send(self, record: _Pending) -> bool:
        try:
            self._producer.produce(
                record.topic,
                key=record.key,
                value=record.value,
                partition=0,
                headers=list(record.headers),
                on_delivery=partial(self._done, record),
            )
        except BufferError:
            return False
        except KafkaException as exception:  # such as: the topic does not exist, the record is too large
            self._rejected.append((record, error_of(exception)))
        return True

    def _done(self, record: _Pending, error: KafkaError | None, _: Message | None) -> None:
        if error is not None and error.code() in PURGED:
            self._unsent.append(record)
            return
        refused = None if error is None else self._producer.watch.translate(error, f"writing to {record.topic}")
        if refused is not None:
            self._complain(str(refused))
        if record.on_ack is not None:
            try:
                record.on_ack(refused)
            except Exception as defect:  # noqa: BLE001  of this link, not of the one whose writer is polled now
                self._defect = defect

    def _complain(self, text: str) -> None:
        """Log the error, since the report that would contain it may be the record that is not written."""
        now = time.monotonic()
        if now - self._complained.get(text, float("-inf")) >= _COMPLAINT_SECONDS:
            self._complained[text] = now
            _LOGGER.warning("%s", text)

    def _report_done(self, size: int, error: StraitError | None) -> None:
        self._waiting_report_bytes -= size
        self.dropped_reports += error is not None
