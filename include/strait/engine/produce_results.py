"""What the destination refuses for what is in it: found out record by record, then dealt with by the topic's policy."""

from strait.engine.partition import OutBatch, Partition
from strait.reasons import Reason
from strait.wire import error_codes

_TOO_LARGE = frozenset({error_codes.MESSAGE_TOO_LARGE, error_codes.RECORD_LIST_TOO_LARGE})
_INVALID = frozenset({error_codes.INVALID_TIMESTAMP, error_codes.INVALID_RECORD})
ABOUT_THE_RECORDS = _TOO_LARGE | _INVALID | {error_codes.CORRUPT_MESSAGE}


def learn(partition: Partition, batch: OutBatch, code: int, detail: str) -> tuple[Reason, str] | None:
    """Take a refusal of this batch to heart: smaller batches, or one record each, or checked, when they are fetched
    again; a record that is refused alone is put aside where the policy says so. Returns why the partition waits, None
    where it does not.
    """
    if code == error_codes.CORRUPT_MESSAGE:
        was_right = batch.first < partition.checked_to
        partition.checked_to = batch.position
        return (Reason.CORRUPT_BATCH, f"{detail}, though its checksum was right when it came") if was_right else None
    if batch.records > 1:
        if code in _TOO_LARGE:
            partition.max_batch_bytes = len(batch.view) // 2
        else:
            partition.apart = (batch.first, batch.position)
        return None
    reason = Reason.BATCH_TOO_LARGE if code in _TOO_LARGE else Reason.BATCH_REFUSED
    if partition.policy.on_refused == "quarantine":
        partition.aside[batch.first] = reason, detail
        return None
    return reason, detail
