"""The recovery path's decisions: where a partition goes on, from what its destination's leader says. Pure.

The destination is the truth. Its leader knows the last sequence of the link's producer id, unreplicated records
included. If it has forgotten the id (`producer.id.expiration.ms` after the newest timestamp in the last batch), only
the log itself tells: a log that ends at the map's newest checkpoint holds nothing newer, and the last batch of the link
behind that checkpoint is the last one written. A log that holds neither proves nothing: its end offset may count
records of other producers.
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
from strait.wire.batch import Batch

OnForeign = Literal["halt", "continue", "expect"]
Appended = Literal["expected", "truncated", "shifted", "foreign"]


class LogState(NamedTuple):
    """What the leader of one destination partition says, asked in this order.

    Attributes:
        end_before: log end offset, with what is not replicated yet, read before the producer's state: every record of
            the link below it is in that state.
        last_sequence: the producer id's last sequence, as on the wire; None if the leader does not know the id.
        end: log end offset, read after the producer's state.
        high_watermark: end of what can be read.
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
        lost: destination offsets [from, to) that were acknowledged once and are gone; they are written again.
        last_offset: destination offset of the link's last record, if it was seen; -1: where the map says.
        passed: nothing of the link is between the checkpoint and this destination offset; -1: not looked for.
    """

    sequence: int
    lost: tuple[int, int] | None = None
    last_offset: int = -1
    passed: int = -1


class Scan(NamedTuple):
    """Read [``start``, the log's end) for the link's last batch.

    Attributes:
        whole: the log was cut, so the map no longer says where records are. Read from the end back to ``start``, or to
            a record that is where the map confirms it.
    """

    start: int
    whole: bool = False


class Refused(NamedTuple):
    """Going on would copy wrongly."""

    reason: Reason
    detail: str


class Unproven(NamedTuple):
    """Nothing tells how many records of the link the log has held. ``found`` copies again whatever may be missing."""

    detail: str
    found: Found
    gone: tuple[int, int]
    """Destination offsets [from, to) of which nobody knows what they were."""


def checkpoint_of(runs: Sequence[OffsetMapping]) -> int:
    """Number of records known to be written, by the newest checkpoint."""
    return max(run.sequence_end for run in runs)


def is_replicated(log_end: int, high_watermark: int) -> bool:
    """Whether all that is in the leader's log can be read. A leader that has forgotten the producer's state would
    accept again the records that its followers do not have yet."""
    return high_watermark >= log_end


def needs_replicas(outcome: "Found | Scan | Refused | Unproven", on_foreign: OnForeign) -> bool:
    """Whether all of the log must be replicated before ``outcome`` may be used: the log itself is read for it. Between
    records of other producers the link's last record is searched for, and must not count as deleted while it cannot be
    read yet."""
    return isinstance(outcome, Scan) or (isinstance(outcome, Found) and on_foreign != "halt")


def last_sequence_of(batch: Batch) -> int:
    """Sequence of the batch's last record, as on the wire. The cleaner lowers the number of records and keeps the last
    offset; a sequence counts by the latter."""
    return wire_sequence(batch.base_sequence + batch.last_offset_delta)


def judge_append(base_offset: int, expected: int, on_foreign: OnForeign, *, located: bool) -> Appended:
    """What the base offset of an acknowledged batch says: that acknowledged records are lost, or that other producers
    wrote before it, which is "shifted" if the policy expects them.

    Args:
        located: the link's record before it was seen in the log. Without that, among records of other producers,
            ``expected`` is what the map makes of an older state of the log, and a lower offset proves nothing.
    """
    if base_offset == expected:
        return "expected"
    if base_offset < expected:
        return "truncated" if located or on_foreign == "halt" else "shifted"
    return "shifted" if on_foreign == "expect" else "foreign"


def least_offset(runs: Sequence[OffsetMapping]) -> int:
    """No record of the link in the map has a lower destination offset, whatever others wrote and the log has lost: each
    record takes an offset. A run's ``destination_base`` is no such bound among records of other producers. It fits the
    run's end, and a log that was cut has fewer of others' records since."""
    return runs[0].sequence_base + _least_shift(runs)


def _least_shift(runs: Sequence[OffsetMapping]) -> int:
    """By how much a destination offset may be below its record's number: the link may have written before this log
    began."""
    return min(0, *(run.destination_base - run.sequence_base for run in runs))


def confirmed_places(runs: Sequence[OffsetMapping]) -> dict[int, int]:
    """Sequence as on the wire -> destination offset of each record that a checkpoint has confirmed last."""
    ends = [run for run in runs if run.sequence_end > run.sequence_base]
    return {
        wire_sequence(run.sequence_end - 1): destination_offset(run, run.sequence_end - 1)
        for run in sorted(ends, key=lambda run: run.sequence_end)
    }


def map_is_enough(runs: Sequence[OffsetMapping], sequence: int, places: int, *, compacted: bool) -> bool:
    """Whether the map alone proves a position whose last record is gone on one side: its writer has confirmed it, or
    the broker knows the number and the map, written ahead, names just one place."""
    confirmed = any(run.sequence_base <= run.sequence_end == sequence for run in runs)
    return confirmed or (places == 1 and not compacted)


def from_leader(
    runs: Sequence[OffsetMapping], state: LogState, on_foreign: OnForeign = "halt", *, cut: bool = False
) -> Found | Scan | Refused:
    """Decide from the leader's own knowledge.

    Args:
        runs: the partition's runs for these topic ids, by sequence_base; at least one.
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
    """Decide from what was read for ``scan``, as far as the log still holds it."""
    if scan.whole:
        return from_whole_log(runs, end, tail, compacted=compacted)
    return from_tail(runs, end, tail, on_foreign)


def from_tail(
    runs: Sequence[OffsetMapping], end: int, tail: Tail, on_foreign: OnForeign = "halt"
) -> Found | Refused | Unproven:
    """Decide from the log itself, of which ``tail`` is all from the newest checkpoint to its end, as far as it is
    kept."""
    checkpoint = checkpoint_of(runs)
    run = covering(runs, checkpoint)
    offset = destination_offset(run, checkpoint)
    if tail.last_sequence is not None:
        found = _after_last(runs, tail.last_sequence, (end, end), on_foreign, tail.last_offset)
        foreign = isinstance(found, Refused) and found.reason is Reason.FOREIGN_WRITER and tail.foreign < 0
        if foreign and tail.last_sequence == wire_sequence(sequence_at_destination(run, tail.last_offset)):
            # The last record is where it belongs, and nobody else's are behind it: compaction took some away.
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
    """Decide from all that the log still holds, because it is shorter than what the map confirms, or the last record
    that the map confirms is not in it: the destination has lost acknowledged records among those of other producers."""
    checkpoint = checkpoint_of(runs)
    if tail.last_sequence is None:
        if checkpoint == 0:  # no record of the link was ever confirmed: others' records were lost
            if tail.start <= least_offset(runs):
                return Found(0)
            return _unproven(runs[0], checkpoint, end, (least_offset(runs), tail.start), "expect")
        detail = f"offsets {tail.start} to {end - 1} hold no record of this link, though {checkpoint} records were acknowledged"
        return Refused(Reason.DESTINATION_TRUNCATED, detail)
    found = _after_last(runs, tail.last_sequence, (end, end), "expect", tail.last_offset)
    if compacted and isinstance(found, Found) and found.sequence < checkpoint:
        return found._replace(passed=tail.last_offset + 1)  # compaction makes holes, too
    whole = not tail.intact and tail.start <= least_offset(runs)
    if tail.hole >= 0 or (whole and skips(wire_sequence(runs[0].sequence_base - 1), tail.first_sequence)):
        where = "before its first one in the log" if tail.hole < 0 else f"before destination offset {tail.hole}"
        detail = f"acknowledged records of this link are missing {where}, and later ones are there"
        return Refused(Reason.DESTINATION_TRUNCATED, detail)
    # The map may say that others' records go further than the log does now.
    return found._replace(passed=tail.last_offset + 1) if isinstance(found, Found) else found


def is_missing(offset: int, log_start: int, on_foreign: OnForeign, *, compacted: bool) -> bool:
    """Whether a record of the copy that is not found from ``offset`` on is lost, rather than deleted by retention or by
    compaction. Without records of other producers the log's end already tells that."""
    return on_foreign != "halt" and not compacted and offset >= log_start


def _unproven(run: OffsetMapping, checkpoint: int, end: int, gone: tuple[int, int], on_foreign: OnForeign) -> Unproven:
    detail = (
        f"the broker no longer knows the link's producer ID, and offsets {gone[0]} to {gone[1] - 1}, behind the last "
        f"checkpoint at record {checkpoint}, are no longer in the log"
    )
    # Among others' records the numbers are ours alone to choose; in a log of our own they must fit its offsets.
    number = checkpoint if on_foreign == "expect" else sequence_at_destination(run, end)
    return Unproven(detail, Found(number), gone)


def _after_last(
    runs: Sequence[OffsetMapping],
    last_wire_sequence: int,
    ends: tuple[int, int],
    on_foreign: OnForeign,
    last_offset: int = -1,
) -> Found | Refused:
    """``ends``: log end offsets from before and after the last sequence was read. ``last_offset``: of that record, if it
    was seen."""
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
        last = checkpoint - 1  # where the map says of the checkpoint itself, records of others may come before it
        start = expected if last_offset < 0 else last_offset + 1
        lost = start, max(destination_offset(covering(runs, last), last) + 1, start + checkpoint - sequence)
    return Found(sequence, lost, last_offset)


def _too_short(end: int, sequence: int, least: int) -> Refused:
    detail = f"its log ends at {end}, though {sequence} records of this link would make it {least} or more"
    return Refused(Reason.DESTINATION_TRUNCATED, detail)


def first_record_from(runs: Sequence[OffsetMapping], low: int, high: int, source: int) -> int:
    """Number of the first record in [``low``, ``high``) that stands at source offset ``source`` or later; at most
    ``high - 1``."""
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if locate(runs, middle + 1) - 1 >= source:
            high = middle
        else:
            low = middle + 1
    return low
