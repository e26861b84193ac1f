"""Decisions of the recovery path: the position to resume at, given the state of the destination's leader. Pure.

The destination is authoritative. Its leader knows the last sequence of the link's producer ID, including records that
are not replicated yet. If that state has expired (`producer.id.expiration.ms` after the newest timestamp in the last
batch), only the log itself is evidence: a log that ends at the map's newest checkpoint holds nothing newer, and the
link's last batch after that checkpoint is the last one written. If neither applies, the log proves nothing: its end
offset may include records of other producers.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from strait.engine.recovery.tail import Tail, skips
from strait.reasons import Reason
from strait.state.offset_map import (
    SEQUENCE_MODULUS,
    covering,
    destination_offset,
    full_sequence,
    locate,
    sequence_at_destination,
    wire_sequence,
)
from strait.state.schema import OffsetMapping
from strait.text import plural
from strait.wire.batch import Batch

OnForeign = Literal["halt", "continue", "expect"]
Appended = Literal["expected", "truncated", "shifted", "foreign"]


class LogState(NamedTuple):
    """State of one destination partition as reported by its leader, queried in this order.

    Attributes:
        end_before: log end offset, including records not replicated yet, read before the producer state: that state
            covers every record of the link below this offset.
        last_sequence: last wire sequence of the producer ID; None if the leader has no state for the ID.
        end: log end offset, read after the producer state.
        high_watermark: end of the readable records.
        log_start: first offset that the log holds.
    """

    end_before: int
    last_sequence: int | None
    end: int
    high_watermark: int
    log_start: int = 0


class Found(NamedTuple):
    """Record number ``sequence`` is the next to write.

    Attributes:
        lost: destination offsets [from, to) that were acknowledged and are no longer in the log; their records are
            written again.
        last_offset: destination offset of the link's last record, if it was read; -1: only the map gives it.
        passed: no record of the link is between the checkpoint and this destination offset; -1: not searched.
    """

    sequence: int
    lost: tuple[int, int] | None = None
    last_offset: int = -1
    passed: int = -1


class Scan(NamedTuple):
    """Read [``start``, log end offset) to find the link's last batch.

    Attributes:
        whole: the log was truncated, so the map's destination offsets no longer hold. Read from the end back to
            ``start``, or to a record at the offset that the map confirms.
    """

    start: int
    whole: bool = False


class Refused(NamedTuple):
    """Continuing would leave incorrect data on the destination."""

    reason: Reason
    detail: str


class Unproven(NamedTuple):
    """Nothing proves how many records of the link the log has held. ``found`` copies again every record that may be
    missing."""

    detail: str
    found: Found
    gone: tuple[int, int]
    """Destination offsets [from, to) whose former records are unknown."""


def checkpoint_of(runs: Sequence[OffsetMapping]) -> int:
    """Return the number of records known to be written, by the newest checkpoint."""
    return max(run.sequence_end for run in runs)


def is_replicated(log_end: int, high_watermark: int) -> bool:
    """Return whether everything in the leader's log is readable. A leader whose producer state has expired would accept
    again the records that its followers do not have yet."""
    return high_watermark >= log_end


def needs_replicas(outcome: "Found | Scan | Refused | Unproven", on_foreign: OnForeign) -> bool:
    """Return whether all of the log must be replicated before ``outcome`` may be used, because the log itself is read.
    Among records of other producers the link's last record is searched for, and must not be taken for deleted while it
    is not readable yet."""
    return isinstance(outcome, Scan) or (isinstance(outcome, Found) and on_foreign != "halt")


def last_sequence_of(batch: Batch) -> int:
    """Return the wire sequence of the batch's last record. The log cleaner lowers the number of records but keeps the
    last offset, which determines the sequence."""
    return wire_sequence(batch.base_sequence + batch.last_offset_delta)


def judge_append(base_offset: int, expected: int, on_foreign: OnForeign, *, located: bool) -> Appended:
    """Classify the base offset of an acknowledged batch: acknowledged records are lost, or other producers wrote before
    it, which is "shifted" if the policy expects them.

    Args:
        located: the link's preceding record was seen in the log. If not, among records of other producers, the map
            derives ``expected`` from an older state of the log, and a lower offset proves nothing.
    """
    if base_offset == expected:
        return "expected"
    if base_offset < expected:
        return "truncated" if located or on_foreign == "halt" else "shifted"
    return "shifted" if on_foreign == "expect" else "foreign"


def least_offset(runs: Sequence[OffsetMapping]) -> int:
    """Return a lower bound for the destination offsets of the link's records in the map. It holds regardless of other
    producers' records and of losses, since each record takes one offset. The ``destination_base`` of a map entry is not
    such a bound among records of other producers: it fits the entry's end, and a log that was truncated since has fewer
    of their records."""
    return runs[0].sequence_base + _least_shift(runs)


def _least_shift(runs: Sequence[OffsetMapping]) -> int:
    """Return a lower bound, at most 0, for a destination offset minus its record's number: the link may have written
    before this log was created."""
    return min(0, *(run.destination_base - run.sequence_base for run in runs))


def confirmed_places(runs: Sequence[OffsetMapping]) -> dict[int, int]:
    """Return wire sequence -> destination offset of the last record that each checkpoint confirms."""
    ends = [run for run in runs if run.sequence_end > run.sequence_base]
    return {
        wire_sequence(run.sequence_end - 1): destination_offset(run, run.sequence_end - 1)
        for run in sorted(ends, key=lambda run: run.sequence_end)
    }


def map_is_enough(runs: Sequence[OffsetMapping], sequence: int, places: int, *, compacted: bool) -> bool:
    """Return whether the map alone proves a position whose last record was deleted on one side: a checkpoint confirms
    it, or the broker knows the number, the source is not compacted and the map, written ahead, names only one place."""
    confirmed = any(run.sequence_base <= run.sequence_end == sequence for run in runs)
    return confirmed or (places == 1 and not compacted)


def from_leader(
    runs: Sequence[OffsetMapping], state: LogState, on_foreign: OnForeign = "halt", *, cut: bool = False
) -> Found | Scan | Refused:
    """Return the outcome that follows from the leader's state alone; `Scan` if the log must be read.

    Args:
        runs: the partition's map entries for these topic IDs, by sequence_base; at least one.
        on_foreign: whether other producers may write there too.
        cut: the caller has seen that acknowledged records are no longer in the log.
    """
    checkpoint = checkpoint_of(runs)
    if state.last_sequence is not None:
        found = _after_last(runs, state.last_sequence, (state.end_before, state.end), on_foreign)
        if on_foreign != "halt" and isinstance(found, Found):
            expected = destination_offset(covering(runs, found.sequence), found.sequence)
            if cut or found.sequence < checkpoint or state.end < expected:
                return Scan(min(least_offset(runs), state.end), whole=True)
        return found
    offset = destination_offset(covering(runs, checkpoint), checkpoint)
    if state.end == offset:
        return Found(checkpoint, passed=offset)
    if state.end > offset:
        return Scan(offset)
    if on_foreign == "halt":
        return Scan(min(runs[0].destination_base, state.end))
    return Scan(min(least_offset(runs), state.end), whole=True)


def from_scan(
    runs: Sequence[OffsetMapping], end: int, scan: Scan, tail: Tail, on_foreign: OnForeign, *, compacted: bool
) -> Found | Refused | Unproven:
    """Return the outcome that follows from ``tail``, which was read for ``scan`` as far as the log still holds it."""
    if scan.whole:
        return from_whole_log(runs, end, tail, compacted=compacted)
    return from_tail(runs, end, tail, on_foreign)


def from_tail(
    runs: Sequence[OffsetMapping], end: int, tail: Tail, on_foreign: OnForeign = "halt"
) -> Found | Refused | Unproven:
    """Return the outcome that follows from ``tail``, the log from the newest checkpoint to its end, as far as it is
    retained."""
    checkpoint = checkpoint_of(runs)
    run = covering(runs, checkpoint)
    offset = destination_offset(run, checkpoint)
    if tail.last_sequence is not None:
        found = _after_last(runs, tail.last_sequence, (end, end), on_foreign, tail.last_offset)
        foreign = isinstance(found, Refused) and found.reason is Reason.FOREIGN_WRITER and tail.foreign < 0
        if foreign and tail.last_sequence == wire_sequence(sequence_at_destination(run, tail.last_offset)):
            # The last record is at its expected offset, and no foreign record follows it: compaction removed some.
            return _unproven(run, checkpoint, end, (tail.last_offset + 1, end), on_foreign)
        return found
    if end < offset:
        detail = f"log end offset {end} is below {offset}, the end of the acknowledged records"
        return Refused(Reason.DESTINATION_TRUNCATED, detail)
    if tail.start > offset or tail.foreign < 0:
        return _unproven(run, checkpoint, end, (offset, max(tail.start, offset + 1)), on_foreign)
    if on_foreign == "halt":
        return Refused(Reason.FOREIGN_WRITER, f"offsets {offset} to {end - 1} were written by another producer")
    return Found(checkpoint, passed=end)


def from_whole_log(
    runs: Sequence[OffsetMapping], end: int, tail: Tail, *, compacted: bool
) -> Found | Refused | Unproven:
    """Return the outcome that follows from all that the log still holds, because it is shorter than the map confirms or
    lacks the last confirmed record: the destination has lost acknowledged records among those of other producers."""
    checkpoint = checkpoint_of(runs)
    if tail.last_sequence is None:
        if checkpoint == 0:  # no record of the link was ever confirmed: other producers' records were lost
            if tail.start <= least_offset(runs):
                return Found(0)
            return _unproven(runs[0], checkpoint, end, (least_offset(runs), tail.start), "expect")
        detail = f"offsets {tail.start} to {end - 1} hold no record of this link, though {plural(checkpoint, 'record was', 'records were')} acknowledged"
        return Refused(Reason.DESTINATION_TRUNCATED, detail)
    found = _after_last(runs, tail.last_sequence, (end, end), "expect", tail.last_offset)
    if compacted and isinstance(found, Found) and found.sequence < checkpoint:
        return found._replace(passed=tail.last_offset + 1)  # compaction makes holes, too
    whole = not tail.intact and tail.start <= least_offset(runs)
    if tail.hole >= 0 or (whole and skips(wire_sequence(runs[0].sequence_base - 1), tail.first_sequence)):
        where = "before its first one in the log" if tail.hole < 0 else f"before destination offset {tail.hole}"
        detail = f"acknowledged records of this link are missing {where}, and later ones are there"
        return Refused(Reason.DESTINATION_TRUNCATED, detail)
    # By the map, other producers' records may extend beyond the log's present end.
    return found._replace(passed=tail.last_offset + 1) if isinstance(found, Found) else found


def is_missing(offset: int, log_start: int, on_foreign: OnForeign, *, compacted: bool) -> bool:
    """Return whether a record that the destination does not hold from ``offset`` on is lost, rather than deleted by
    retention or compaction. Without records of other producers the log end offset already shows that."""
    return on_foreign != "halt" and not compacted and offset >= log_start


def _unproven(run: OffsetMapping, checkpoint: int, end: int, gone: tuple[int, int], on_foreign: OnForeign) -> Unproven:
    detail = (
        f"the broker no longer knows the link's producer ID, and offsets {gone[0]} to {gone[1] - 1}, behind the last "
        f"checkpoint at record {checkpoint}, are no longer in the log"
    )
    # Among foreign records the link may choose any number; in a log that only it writes, numbers must match offsets.
    number = checkpoint if on_foreign == "expect" else sequence_at_destination(run, end)
    return Unproven(detail, Found(number), gone)


def _after_last(
    runs: Sequence[OffsetMapping],
    last_wire_sequence: int,
    ends: tuple[int, int],
    on_foreign: OnForeign,
    last_offset: int = -1,
) -> Found | Refused:
    """Return the outcome if the link's last sequence is known.

    ``ends``: log end offsets from before and after that sequence was read. ``last_offset``: destination offset of its
    record, if it was read; else -1.
    """
    checkpoint = checkpoint_of(runs)
    sequence = full_sequence((last_wire_sequence + 1) % SEQUENCE_MODULUS, near=checkpoint)
    if sequence < runs[0].sequence_base:
        return Refused(
            Reason.MAP_RUN_MISSING,
            f"its last record is number {sequence - 1}, before the map's first run at {runs[0].sequence_base}",
        )
    before, after = ends
    least = sequence + _least_shift(runs)
    if after < least:
        return _too_short(after, sequence, least)
    expected = destination_offset(covering(runs, sequence), sequence)
    if on_foreign == "halt":
        if before > expected:
            return Refused(
                Reason.FOREIGN_WRITER, f"log end offset {before}, expected {expected} after this link's records"
            )
        if after < expected:
            return _too_short(after, sequence, expected)
    lost = None
    if sequence < checkpoint:
        last = checkpoint - 1  # foreign records may precede the offset that the map gives for the checkpoint itself
        start = expected if last_offset < 0 else last_offset + 1
        lost = start, max(destination_offset(covering(runs, last), last) + 1, start + checkpoint - sequence)
    return Found(sequence, lost, last_offset)


def _too_short(end: int, sequence: int, least: int) -> Refused:
    detail = f"its log ends at {end}, though {plural(sequence, 'record')} of this link would make it {least} or more"
    return Refused(Reason.DESTINATION_TRUNCATED, detail)


def first_record_from(runs: Sequence[OffsetMapping], low: int, high: int, source: int) -> int:
    """Return the number of the first record in [``low``, ``high``) at source offset ``source`` or later; at most
    ``high - 1``."""
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if locate(runs, middle + 1) - 1 >= source:
            high = middle
        else:
            low = middle + 1
    return low
