"""How far a partition was fetched and numbered. Belongs to the fetching side."""

from collections import deque
from collections.abc import Iterable

from strait.engine.partition.change_signal import ChangeSignal
from strait.reasons import Reason
from strait.state.offset_map import Gap


class OpenTransaction:
    """An open transaction of the source that holds back its records and those after it.

    Attributes:
        since: when the last stable offset was first seen at its current value below the high watermark, in seconds of
            the loop's clock; ``since_ms``: when the transaction began as far as is known, in ms since the epoch.
        is_reason: it has been open long enough that the partition shows it as its reason.
        detail: describes its producer.
        look_at: time of the next lookup of its producer.
    """

    __slots__ = ("detail", "is_reason", "look_at", "since", "since_ms")

    def __init__(self, since: float, since_ms: int) -> None:
        self.since = self.look_at = since
        self.since_ms = since_ms
        self.is_reason = False
        self.detail = ""


_HOLD_SECONDS = 30.0  # at most; a request that was sent for it is answered or lost long before


class Cursor:
    """The next source offset to fetch, the number that its record will get, and how to fetch it.

    Attributes:
        offset: next source offset to fetch; -1 before the first position lookup.
        mapped: source offset at which the map continues; -1: not in the map yet.
        sequence: number of the next record to stamp.
        last_epoch: the source's leader epoch of the records before ``offset``; -1: not known exactly.
        epoch_unproven: ``last_epoch`` is from the map, and records of a later epoch may have been copied since.
        leader_epoch: of the source's leader, by its last metadata.
        end: the source's last stable offset as last seen.
        high_watermark: the source's, as last seen. Records between the two wait for an open transaction.
        transaction: that transaction; None: no record waits for one.
        log_start: the source's, as last seen.
        follower_end: last stable offset of the follower from which the partition is fetched, as last seen; -1: not seen
            yet, or it is fetched from the leader.
        from_follower: whether it is fetched from a follower, whose log may end earlier than the leader's.
        unfinished: fetched data is not completely rebuilt yet, so nothing more is fetched.
        jumped: records before ``offset`` were not fetched since the last position lookup.
        held: it is blocked for a moment, with nothing wrong; valid only while it is blocked.
        max_batch_bytes, apart, quarantined, checked_to: limits of the batches to send, changed when the destination
            rejects one; see `strait.wire.shapes.Rules`.
        left_out: number of records that were skipped because a link wrote them.
        until: source offset before which replication ends; -1: it has no end.
    """

    __slots__ = (
        "_signal",
        "_told",
        "apart",
        "blocked_until",
        "checked_to",
        "end",
        "epoch_unproven",
        "follower_end",
        "from_follower",
        "held",
        "high_watermark",
        "jumped",
        "last_epoch",
        "leader_epoch",
        "left_out",
        "log_start",
        "mapped",
        "max_batch_bytes",
        "offset",
        "quarantined",
        "sequence",
        "transaction",
        "unfinished",
        "until",
    )  # fmt: skip

    def __init__(self, max_batch_bytes: int, signal: ChangeSignal) -> None:
        self._signal = signal
        self.offset = -1
        self.mapped = -1
        self.sequence = -1
        self.last_epoch = -1
        self.epoch_unproven = False
        self.leader_epoch = -1
        self.end = -1
        self.high_watermark = -1
        self.transaction: OpenTransaction | None = None
        self.log_start = -1
        self.follower_end = -1
        self.from_follower = False
        self.blocked_until = 0.0
        self.held = False
        self.unfinished = False
        self.jumped = False
        self.max_batch_bytes = max_batch_bytes
        self.apart = (0, 0)
        self.quarantined: dict[int, tuple[Reason, str]] = {}
        self.checked_to = 0
        self.left_out = 0
        self.until = -1
        self._told: deque[Gap] = deque()  # map entries for records from `sequence` on, as of the last position lookup

    def start(self, sequence: int, offset: int, epoch: int, told: Iterable[Gap], *, mapped: bool) -> None:
        """Continue at ``offset``, which holds record number ``sequence``. ``mapped``: whether the map has this
        offset."""
        self.sequence, self.offset = sequence, offset
        self.mapped = offset if mapped else -1
        self.last_epoch, self.epoch_unproven = epoch, True
        self._told = deque(told)
        self._signal.notify()
        self.jumped = False
        self.release()  # a request that was sent before may never be answered

    def stamped(self, records: int, copied_to: int, offset: int, epoch: int) -> None:
        """Record that ``records`` records were numbered, up to source offset ``copied_to``; fetching continues at
        ``offset``."""
        self.sequence += records
        self.mapped, self.offset = copied_to, offset
        self.last_epoch, self.epoch_unproven = epoch, False
        self._signal.notify()

    def skip(self, offset: int, epoch: int, left_out: int) -> None:
        """Continue at ``offset`` or later: there is nothing to copy before it."""
        self.offset = max(self.offset, offset)
        self.last_epoch, self.epoch_unproven = epoch, False
        self.left_out += left_out
        self._signal.notify()

    def step_over(self, offset: int) -> None:
        """Skip the record at ``offset``, which goes to quarantine. Its leader epoch may be later than that of the records
        before it: with that one, the source would report a divergence."""
        self.offset = offset + 1
        self.last_epoch = -1
        self._signal.notify()

    def prove(self, epoch: int) -> None:
        """Set the source's leader epoch of the records before the offset, as proven."""
        self.last_epoch, self.epoch_unproven = epoch, False
        self._signal.notify()

    def forget_epoch(self) -> None:
        self.last_epoch = -1
        self._signal.notify()

    def jump(self, offset: int) -> None:
        """Continue at another source offset. The map records it before any later record is sent."""
        self.jumped = True
        self.offset = offset
        self.last_epoch = -1
        if offset < self.mapped:
            self.mapped = -1
        self._signal.notify()

    def bound(self, until: int) -> None:
        """Copy nothing from source offset ``until`` on; -1: there is no end."""
        if until != self.until:
            self.until = until
            self._signal.notify()

    @property
    def at_until(self) -> bool:
        """Whether everything before ``until`` was fetched."""
        return 0 <= self.until <= self.offset

    @property
    def copied_end(self) -> int:
        """The source's last stable offset, or ``until`` if that is lower."""
        return self.end if self.until < 0 or self.end < 0 else min(self.end, self.until)

    def told(self, until: int) -> list[Gap]:
        """Return the entries that the map already has for the records from the next one to before number ``until``,
        correct or not. Each is returned once."""
        said = []
        while self._told and self._told[0].sequence < until:
            said.append(self._told.popleft())
        return said

    # --- when it is fetched -------------------------------------------------------------------------------------------

    def led_at(self, epoch: int) -> None:
        if epoch != self.leader_epoch:
            self.leader_epoch = epoch
            self._signal.notify()

    def read_from(self, *, follower: bool) -> None:
        """Set whether the partition is fetched from a follower from now on."""
        self.from_follower, self.follower_end = follower, -1

    @property
    def known(self) -> tuple[int, int, int]:
        """The source's last stable offset, high watermark and log start as last seen."""
        return self.end, self.high_watermark, self.log_start

    def heard(self, end: int, high_watermark: int, log_start: int) -> None:
        """Apply a response of the source's leader."""
        if end != self.end or high_watermark <= end:
            self.transaction = None  # if there is one, it is another one
        self.end, self.high_watermark, self.log_start = end, high_watermark, log_start
        if self.blocked_until:
            self.unblock()

    def heard_from_follower(self, end: int, high_watermark: int) -> None:
        """Apply a response of the follower from which the partition is fetched. It knows the leader's ends only up to
        some time ago, and its log start is not the leader's."""
        self.follower_end = end
        self.heard(max(end, self.end), max(high_watermark, self.high_watermark), self.log_start)

    def leader_ends(self, end: int) -> None:
        """Apply the leader's last stable offset, as queried while the partition is fetched from a follower."""
        if end > self.end:
            self.end, self.high_watermark, self.transaction = end, max(end, self.high_watermark), None
            self._signal.notify()

    @property
    def held_back(self) -> int:
        """Number of source offsets that cannot be read before an open transaction ends."""
        return max(0, self.high_watermark - self.end)

    def block(self, until: float) -> None:
        """Fetch nothing until ``until``, in seconds of the loop's clock."""
        self.blocked_until, self.held = until, False
        self._signal.notify()

    def unblock(self) -> None:
        self.blocked_until = 0.0
        self._signal.notify()

    def hold(self, now: float) -> None:
        """Fetch nothing until a request for information is answered, although nothing is wrong."""
        self.held, self.blocked_until = True, now + _HOLD_SECONDS
        self._signal.notify()

    def finish(self, *, finished: bool) -> None:
        """Set whether the fetched data is completely rebuilt."""
        if self.unfinished is finished:
            self.unfinished = not finished
            self._signal.notify()

    def release(self) -> None:
        """Fetch again after `hold`: the information has arrived."""
        if self.held:
            self.held, self.blocked_until = False, 0.0
            self._signal.notify()

    # --- rejected batches ---------------------------------------------------------------------------------------------

    def limit(self, batch_bytes: int) -> None:
        """Build no batch larger than ``batch_bytes``, unless it is one record."""
        self.max_batch_bytes = batch_bytes

    def take_apart(self, first: int, end: int) -> None:
        """Send the records at source offsets [``first``, ``end``) one by one."""
        self.apart = first, end

    def put_aside(self, offset: int, reason: Reason, detail: str) -> None:
        """Quarantine the record at this source offset."""
        self.quarantined[offset] = reason, detail

    def check_to(self, offset: int) -> None:
        """Verify the checksums of batches before this source offset here, too."""
        self.checked_to = offset

    def settle(self, offset: int) -> None:
        """Remove the limits for source offsets before ``offset``, which are acknowledged and not fetched again."""
        if offset >= self.apart[1]:
            self.apart = (0, 0)
        self.quarantined = {at: why for at, why in self.quarantined.items() if at >= offset}
