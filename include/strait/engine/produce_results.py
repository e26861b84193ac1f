"""Applies the destination's response to a batch to the batch's partition.

If the destination rejects a batch because of its content, the batch is narrowed down to the record at fault, which is
then handled by the topic's policy. After any response but the expected one the position is reset, and the single
recovery path continues.
"""

from collections.abc import Callable

from strait.engine.loss_ledger import LossLedger
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Repetition
from strait.engine.partition.send_queue import OutBatch
from strait.engine.recovery import decision
from strait.engine.recovery.coordinator import RecoveryCoordinator
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.wire import error_codes
from strait.wire.produce import Produced

_TOO_LARGE = frozenset({error_codes.MESSAGE_TOO_LARGE, error_codes.RECORD_LIST_TOO_LARGE})
_INVALID = frozenset({error_codes.INVALID_TIMESTAMP, error_codes.INVALID_RECORD})
_ABOUT_THE_RECORDS = _TOO_LARGE | _INVALID | {error_codes.CORRUPT_MESSAGE}


class ProduceResults:
    """Handles the responses to all batches of a slot; ``acked`` is called when the destination has the batch."""

    def __init__(
        self,
        loop: Loop,
        destination: ClusterClient,
        recovery: RecoveryCoordinator,
        loss_ledger: LossLedger,
        *,
        acked: Callable[[Partition, OutBatch], None],
    ) -> None:
        self._loop = loop
        self._destination = destination
        self._recovery = recovery
        self._loss_ledger = loss_ledger
        self._acked = acked
        self._led_anew: set[Partition] = set()

    def take_led_anew(self) -> set[Partition]:
        """Return the partitions whose source leader has changed since the last call. They are checkpointed immediately,
        since the leader epoch in the checkpoint reveals truncation."""
        taken, self._led_anew = self._led_anew, set()
        return taken

    def lost(self, partition: Partition, batch: OutBatch, cause: str) -> None:
        """Reset the position after a batch got no response."""
        if batch.generation == partition.position.generation:
            self._destination.refresh((partition.destination,))
            self._recovery.reset(partition, Reason.DESTINATION_UNREACHABLE, cause, error_policy.SOON_SECONDS)

    def take(self, partition: Partition, batch: OutBatch, result: Produced) -> None:
        if batch.generation != partition.position.generation:
            return  # from before a reset: recovery determines whether it was appended
        if result.error:
            self._take_error(partition, batch, result)
        elif _repeats(partition, result):
            partition.queue.beaten(refused=False)
            if batch.crc:
                partition.position.repeated(Repetition(result.base_offset, batch.crc, batch.first))
            detail = f"another running copy of the link wrote record {batch.sequence}"
            self._recovery.reset(partition, None, detail, error_policy.SOON_SECONDS)
        else:
            self._take_appended(partition, batch, result)

    def _take_appended(self, partition: Partition, batch: OutBatch, result: Produced) -> None:
        position, on_foreign = partition.position, partition.policy.on_foreign
        offset, expected = result.base_offset, position.expected_offset
        appended = decision.judge_append(offset, expected, on_foreign, located=position.located)
        if appended == "truncated":
            self._destination.refresh((partition.destination,))  # the topic may have been recreated
            self._loss_ledger.destination_lost(partition, offset, expected)
            position.log_is_cut()
            detail = (
                f"record {batch.sequence} came to offset {offset}, though all below {expected} had been acknowledged"
            )
            self._recovery.reset(partition, Reason.DESTINATION_TRUNCATED, detail, error_policy.SHORTLY_SECONDS)
            return
        if appended == "foreign" and on_foreign != "continue":
            detail = f"record {batch.sequence} got destination offset {offset}, expected {expected}"
            self._recovery.reset(partition, Reason.FOREIGN_WRITER, detail, error_policy.SLOW_SECONDS)
            return
        if appended == "foreign":
            self._loss_ledger.foreign_records_before(partition, batch.sequence, batch.first, offset)
        else:
            if result.log_start != position.log_start:
                position.log_begins(result.log_start)
            if appended == "shifted":
                position.shift_to(offset - batch.sequence)
        if batch.epoch != position.acked_epoch:
            self._led_anew.add(partition)
        partition.acked(batch, self._loop.now)
        self._acked(partition, batch)

    def _take_error(self, partition: Partition, batch: OutBatch, result: Produced) -> None:
        error, name = result.error, error_policy.name(result.error)
        said = f"{name}: {result.message}" if result.message else name
        if error in error_policy.CONFLICTS:
            partition.queue.beaten(refused=True)
            self._recovery.reset(partition, None, name, error_policy.SOON_SECONDS)
            return
        partition.queue.failed()
        if error in _ABOUT_THE_RECORDS:
            detail = f"produce of source offset {batch.first}: {said}"
            reason = _learn(partition, batch, error, detail)
            if reason is not None and error == error_codes.CORRUPT_MESSAGE:
                detail += ", though its checksum was right when it came"
            wait = error_policy.SOON_SECONDS if reason is None else error_policy.wait_for(reason)
            self._recovery.reset(partition, reason, detail, wait)
        else:
            answer = error_policy.answer(error_policy.PRODUCE, error)
            if error == error_codes.REQUEST_TIMED_OUT:
                partition.queue.followers_are_slow(self._loop.now)
            if answer.refresh:
                self._destination.refresh((partition.destination,))
            detail = f"produce of record {batch.sequence}: {said}"
            self._recovery.reset(partition, answer.reason, detail, answer.wait_seconds)


def _repeats(partition: Partition, result: Produced) -> bool:
    """Return whether the destination already had that batch. No batch is ever resent blindly, so another instance sent
    it."""
    return result.log_append_time_ms >= 0 and not partition.policy.destination_append_time


def _learn(partition: Partition, batch: OutBatch, error: int, detail: str) -> Reason | None:
    """Set how the batch's records are fetched again: in smaller batches, one by one, or with their checksum verified. A
    record that is rejected on its own is quarantined if the policy allows it. Returns why the partition waits, None if
    it does not."""
    cursor = partition.cursor
    if error == error_codes.CORRUPT_MESSAGE:
        was_right = batch.first < cursor.checked_to
        cursor.check_to(batch.position)
        return Reason.CORRUPT_BATCH if was_right else None
    if batch.records > 1:
        if error in _TOO_LARGE:
            cursor.limit(len(batch.view) // 2)
        else:
            cursor.take_apart(batch.first, batch.position)
        return None
    reason = Reason.BATCH_TOO_LARGE if error in _TOO_LARGE else Reason.BATCH_REFUSED
    if partition.policy.on_refused == "quarantine":
        cursor.put_aside(batch.first, reason, detail)
        return None
    return reason
