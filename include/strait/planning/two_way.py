"""Position of a group on the other one of two clusters that replicate a topic to each other under one name. Pure.

A group that has consumed a topic of cluster A up to an offset has seen A's own records before it, and the replicated
records of B before it. On B it continues at the first record that is neither. Nothing is skipped. Both links preserve
the order of records, so a number identifies the records of a link that the group has seen: the first ``consumed`` of
the link to B, whose replicated records are in B's log, and the first ``arrived`` of the link back, whose originals are.

The logs determine the offset of that record: each batch of a link has its producer ID and its sequence number. On B,
replicated records that the group has seen may come after it, since records of different origin interleave differently
on both clusters. Those are read again, and counted.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from strait.state.offset_map import SEQUENCE_MODULUS, full_sequence
from strait.state.schema import PlannedTopic, Registration
from strait.state.translation import Fit, Translator

_FIRST_READ_BYTES = 64 << 10
_LARGEST_READ_BYTES = 4 << 20
_MOST_BYTES = 64 << 20
"""Maximum number of bytes that one search reads of a log. Usually it is one batch."""


class NotExact(Exception):
    """The position cannot be determined exactly; the message has the reason."""


class Batch(Protocol):
    """Offsets [base, next) of a log, and their producer."""

    @property
    def base(self) -> int: ...
    @property
    def next(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def transactional(self) -> bool: ...
    @property
    def control(self) -> bool: ...
    @property
    def aborts(self) -> bool: ...


class Part(Protocol):
    """Contents of a log from an offset on, as `strait.net.partition_logs` reads it."""

    @property
    def batches(self) -> Sequence[Batch]: ...
    @property
    def next(self) -> int: ...
    @property
    def ended(self) -> bool: ...
    @property
    def start(self) -> int: ...


Read = Callable[[int, int], Part]
"""(offset, maximum bytes) -> the log's contents there."""


class Log:
    """One log, of which a search reads a bounded number of bytes. ``reached``: the offset that the last search has
    reached; ``start``: the first offset that is not deleted, as far as known."""

    def __init__(self, read: Read, start: int = 0, most_bytes: int = _MOST_BYTES) -> None:
        self._read = read
        self._most_bytes = most_bytes
        self.reached = 0
        self.start = start

    def batches(self, start: int, stop: int | None, past: Callable[[int], int] = lambda at: at) -> Iterator[Batch]:
        """Yield the batches with offsets in [``start``, ``stop``), without those that ``past`` skips; `reached` is then
        the end. Raises NotExact if that is more than may be read."""
        at, size, left = start, _FIRST_READ_BYTES, self._most_bytes
        while True:
            at = max(at, past(at))
            self.reached = at
            if stop is not None and at >= stop:
                return
            if left <= 0:
                raise NotExact(f"more than {self._most_bytes >> 20} MiB of the log would have to be read")
            left -= size
            part = self._read(at, size)
            if part.next < at:
                raise NotExact(f"the log ends at offset {part.next}, before offset {at}")
            self.start = max(self.start, part.start)
            for batch in part.batches:
                if batch.next <= at:
                    continue
                if stop is not None and batch.base >= stop:
                    return
                yield batch
                self.reached = batch.next
            at = self.reached = part.next
            if part.ended:
                return
            size = min(4 * size, _LARGEST_READ_BYTES)


class _Copy(NamedTuple):
    """A batch of the link: its first offset and the one after it, and the number of its first record."""

    base: int
    next: int
    number: int

    def before(self, offset: int) -> int:
        """Return how many of the link's records come before an offset that is in the batch or before it."""
        return self.number + max(0, offset - self.base)

    @property
    def end(self) -> int:
        return self.number + self.next - self.base


class Copies:
    """The records of one link in a log that other producers write to as well.

    Args:
        points: (offset, number of the link's records before it), from checkpoints.
        past: offset -> the offset up to which the log is known to hold none of the link's records.
    """

    def __init__(
        self,
        log: Log,
        producer_id: int,
        points: Iterable[tuple[int, int]],
        past: Callable[[int], int] = lambda at: at,
    ) -> None:
        self.log = log
        self._producer_id = producer_id
        self._points = dict(points)
        self._past = past

    def before(self, offset: int) -> int:
        """Return how many of them come before an offset. Raises NotExact."""
        below = max((at for at in self._points if at <= offset), default=None)
        above = min((at for at in self._points if at >= offset), default=None)
        if below is not None and (
            below == offset or (above is not None and self._points[below] == self._points[above])
        ):
            return self._points[below]
        found = self._first(offset, above)
        if found is not None:
            number = found.before(offset)
        elif above is not None:
            number = self._points[above]
        else:
            number = self._last_before(offset, below)
        if offset < self.log.start:
            raise NotExact(f"records before offset {self.log.start} were deleted")
        self._points[offset] = number
        return number

    def offset_of(self, number: int, below: int) -> int:
        """Return the offset of the first record that is not one of the first ``number``. ``below``: an offset with more
        than ``number`` of them before it. Raises NotExact."""
        known = [at for at, before in self._points.items() if before <= number and at < below]
        low, high, step = max(known, default=self.log.start), below, 1
        while low < high:
            step *= 4
            guess = max(low, high - step) if low < high - step else (low + high) // 2
            found = self._first(guess, high)
            if found is None or found.number > number:
                high = guess
            elif number < found.end:
                return found.base + number - found.number
            else:
                low = found.next
        found = self._first(low, None)
        if found is None:
            raise NotExact("the log holds fewer records of the link than it did")
        return found.base

    def copy(self, batch: Batch) -> _Copy | None:
        """Return the batch if it is the link's."""
        if batch.producer_id != self._producer_id or batch.control or batch.sequence < 0:
            return None
        near = min(self._points, key=lambda at: abs(at - batch.base), default=None)
        if near is None or abs(near - batch.base) >= SEQUENCE_MODULUS // 2:
            raise NotExact("no checkpoint of the link is near")
        return _Copy(batch.base, batch.next, full_sequence(batch.sequence, near=self._points[near]))

    def _first(self, start: int, stop: int | None) -> _Copy | None:
        copies = map(self.copy, self.log.batches(start, stop, self._past))
        return next((copy for copy in copies if copy is not None), None)

    def _last_before(self, offset: int, below: int | None) -> int:
        """Return how many of them come before an offset, if none comes after it."""
        if below is None:
            raise NotExact("the link has no checkpoint yet")
        last = None
        for batch in self.log.batches(below, offset, self._past):
            last = self.copy(batch) or last
        if last is None and below < self.log.start:
            raise NotExact(f"records before offset {self.log.start} were deleted")
        return self._points[below] if last is None else last.before(min(offset, last.next))


class Continuation(NamedTuple):
    """``offset``: of the next record to consume, or an earlier one; ``rereads``: number of records from there on that
    were consumed already, unless ``fit`` is not exact."""

    offset: int
    fit: Fit
    rereads: int


class Progress(NamedTuple):
    """A link's report: everything before source offset ``position`` is replicated, and it has ``written`` this many
    records."""

    position: int
    written: int


def continuation(
    offset: int,
    arrived: int,
    there: Translator,
    back: Translator,
    copies: Copies,
    copies_here: Copies,
    progress: Progress | None,
) -> Continuation:
    """Return the position of a group that has consumed the source up to an offset. Raises NotExact.

    Args:
        arrived: number of records of the link back before the offset.
        there, back: of the link, and of the link back; the map of the latter was read after ``arrived`` was known.
        copies: the link's, in the destination's log. ``copies_here``: those of the link back, in the source's.
        progress: of the link back.
    """
    began = back.first.source
    if not _copies_alone(copies, copies.log.start, began):
        raise NotExact(f"the link back began at offset {began}, and does not replicate the records before")
    consumed, earliest = there.records_before(offset), back.next_at_source(arrived)
    at = earliest.number
    if progress is not None and 0 <= progress.written <= arrived:
        at = max(at, progress.position)
    original, final = _first_unseen(copies, consumed.number, at)
    exact = consumed.exact and earliest.exact and final
    before = copies.before(original)
    if before <= consumed.number:
        result, rereads = original, consumed.number - before
    else:
        result = copies.offset_of(consumed.number, original)
        originals = back.records_before(result)
        exact = exact and originals.exact
        rereads = max(0, arrived - originals.number)
    fit = Fit.OVERLAP if rereads else Fit.EXACT
    if offset > there.position:
        fit = Fit.AHEAD
    elif not _copies_alone(copies_here, offset, there.first.source):
        fit = Fit.BEFORE_START
    elif not exact:
        fit = Fit.INEXACT
    return Continuation(result, fit, rereads if fit is Fit.OVERLAP else 0)


def _first_unseen(copies: Copies, consumed: int, earliest: int) -> tuple[int, bool]:
    """Return the offset of the first record from ``earliest`` on that is not a consumed record of the link, or the end
    of the log. False: the search stopped earlier, and only found that no such record is before the offset."""
    log = copies.log
    try:
        for batch in log.batches(earliest, None):
            copy = copies.copy(batch)
            if copy is not None and copy.end > consumed:
                return max(earliest, batch.base + max(0, consumed - copy.number)), True
            if copy is None and not batch.control:
                return max(earliest, batch.base), True
    except NotExact:
        return max(earliest, log.reached), False
    return max(earliest, log.reached), True


def _copies_alone(copies: Copies, start: int, end: int) -> bool:
    """Return whether each record that the log holds in [``start``, ``end``) is the link's. Records of aborted
    transactions are ignored."""
    if end <= start or copies.before(end) - copies.before(start) == end - start:
        return True
    undecided: set[int] = set()
    for batch in copies.log.batches(start, None):
        if batch.base >= end and not undecided:
            return True
        if batch.control and batch.aborts:
            undecided.discard(batch.producer_id)
        elif batch.control and batch.producer_id in undecided:
            return False
        elif not batch.control and batch.base < end and copies.copy(batch) is None:
            if not batch.transactional:
                return False
            undecided.add(batch.producer_id)
    return not undecided


class Writer(NamedTuple):
    """A link that writes to a topic: its registration, and the topic in its plan; None: it is unknown which topics it
    writes to."""

    registration: Registration
    topic: PlannedTopic | None


def obstacle(there: Writer, back: Writer, into_source: Collection[Writer], into_destination: Collection[Writer]) -> str:
    """Return why the two links are not all that carries records between their two topics; "" if they are.

    Args:
        into_source, into_destination: the other links that write to the topic on either side.
    """
    links = there.registration.link, back.registration.link
    assert there.topic is not None
    assert back.topic is not None
    if (there.topic.source_id, there.topic.destination_id) != (back.topic.destination_id, back.topic.source_id):
        return f"link {links[1]} replicates another topic of that name"
    for link, topic in zip(links, (there.topic, back.topic), strict=True):
        if topic.policy.copies == "all":
            return f"link {link} has `copies: all`"
    for reader, others in ((there, into_source), (back, into_destination)):
        assert reader.topic is not None
        for other in others:
            if other.topic is None:
                return f"whether link {other.registration.link} writes to the topic too is not known"
            carried = other.registration.source != reader.registration.destination
            if reader.topic.policy.copies != "forward" or not carried:
                return (
                    f"link {other.registration.link} writes to {reader.topic.source} too, and link "
                    f"{reader.registration.link} does not replicate those records"
                )
    return ""
