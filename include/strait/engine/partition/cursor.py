"""How far a partition was fetched and numbered. The fetching side's."""

from collections import deque
from collections.abc import Iterable

from strait.engine.partition.change_signal import ChangeSignal
from strait.reasons import Reason
from strait.state.offset_map import Gap


class OpenTransaction:
    """An open transaction of the source that holds back its records and those after it.

    Attributes:
        since: when the last stable offset was first seen below the high watermark, where it has stayed since, in the
            loop's seconds; ``since_ms``: when the transaction began, as well as it is known.
        is_reason: it has been open for so long that the partition shows it as its reason.
        detail: whose it is.
        look_at: when to ask again whose it is.
    """

    __slots__ = ("detail", "is_reason", "look_at", "since", "since_ms")

    def __init__(self, since: float, since_ms: int) -> None:
        self.since = self.look_at = since
        self.since_ms = since_ms
        self.is_reason = False
        self.detail = ""


_HOLD_SECONDS = 30.0  # at most; whoever is asked then answers or is given up long before


class Cursor:
    """The next source offset to fetch, the number that its record will get, and how to fetch it.

    Attributes:
        offset: next source offset to fetch; -1 before the first look-up.
        mapped: where the source goes on, as the map says it; -1: the map does not say it yet.
        sequence: number of the next record to stamp.
        last_epoch: the source's leader epoch of what lies before ``offset``; -1: not known exactly.
        epoch_unproven: ``last_epoch`` is from the map, and records of a later epoch may have been copied since.
        leader_epoch: of the source's leader, as its metadata has last said.
        end: the source's last stable offset as last seen.
        high_watermark: the source's, as last seen. What lies between the two waits for an open transaction.
        transaction: that transaction; None: nothing waits for one.
        log_start: the source's, as last seen.
        unfinished: what was fetched is not taken apart to its end yet, so nothing more is fetched.
        jumped: records before ``offset`` were not fetched since the last look-up.
        held: it is blocked for a moment, with nothing wrong; counts only while it is blocked.
        max_batch_bytes, apart, quarantined, checked_to: what the destination refuses; see `strait.wire.shapes.Rules`.
        left_out: so many records were not copied, being copies themselves.
    """

    __slots__ = (
        "_signal",
        "_told",
        "apart",
        "blocked_until",
        "checked_to",
        "end",
        "epoch_unproven",
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
        self.blocked_until = 0.0
        self.held = False
        self.unfinished = False
        self.jumped = False
        self.max_batch_bytes = max_batch_bytes
        self.apart = (0, 0)
        self.quarantined: dict[int, tuple[Reason, str]] = {}
        self.checked_to = 0
        self.left_out = 0
        self._told: deque[Gap] = deque()  # what the map said at the last look-up of records from `sequence` on

    def start(self, sequence: int, offset: int, epoch: int, told: Iterable[Gap], *, mapped: bool) -> None:
        """Go on at ``offset``, which holds record number ``sequence``. ``mapped``: the map says so."""
        self.sequence, self.offset = sequence, offset
        self.mapped = offset if mapped else -1
        self.last_epoch, self.epoch_unproven = epoch, True
        self._told = deque(told)
        self._signal.notify()
        self.jumped = False
        self.release()  # who was asked meanwhile may never answer

    def stamped(self, records: int, copied_to: int, offset: int, epoch: int) -> None:
        """So many records were numbered, up to source offset ``copied_to``; fetching goes on at ``offset``."""
        self.sequence += records
        self.mapped, self.offset = copied_to, offset
        self.last_epoch, self.epoch_unproven = epoch, False
        self._signal.notify()

    def skip(self, offset: int, epoch: int, left_out: int) -> None:
        """Nothing is to be copied before ``offset``."""
        self.offset = max(self.offset, offset)
        self.last_epoch, self.epoch_unproven = epoch, False
        self.left_out += left_out
        self._signal.notify()

    def step_over(self, offset: int) -> None:
        """The record there goes to quarantine."""
        self.offset = offset + 1
        self._signal.notify()

    def prove(self, epoch: int) -> None:
        """This is the source's leader epoch of what lies before the offset."""
        self.last_epoch, self.epoch_unproven = epoch, False
        self._signal.notify()

    def forget_epoch(self) -> None:
        self.last_epoch = -1
        self._signal.notify()

    def jump(self, offset: int) -> None:
        """Go on at another source offset; the map will say so before anything after it is sent."""
        self.jumped = True
        self.offset = offset
        self.last_epoch = -1
        if offset < self.mapped:
            self.mapped = -1
        self._signal.notify()

    def told(self, until: int) -> list[Gap]:
        """What the map says already of the records from the next one to before number ``until``, right or wrong. Once
        each."""
        said = []
        while self._told and self._told[0].sequence < until:
            said.append(self._told.popleft())
        return said

    # --- when it is fetched -------------------------------------------------------------------------------------------

    def led_at(self, epoch: int) -> None:
        if epoch != self.leader_epoch:
            self.leader_epoch = epoch
            self._signal.notify()

    def heard(self, end: int, high_watermark: int, log_start: int) -> None:
        """The source's leader has answered."""
        if end != self.end or high_watermark <= end:
            self.transaction = None  # another one, if any
        self.end, self.high_watermark, self.log_start = end, high_watermark, log_start
        if self.blocked_until:
            self.unblock()

    @property
    def held_back(self) -> int:
        """Source offsets that cannot be read before an open transaction ends."""
        return max(0, self.high_watermark - self.end)

    def block(self, until: float) -> None:
        """Fetch nothing until then."""
        self.blocked_until, self.held = until, False
        self._signal.notify()

    def unblock(self) -> None:
        self.blocked_until = 0.0
        self._signal.notify()

    def hold(self, now: float) -> None:
        """Fetch nothing until something is known that is being asked for, though nothing is wrong."""
        self.held, self.blocked_until = True, now + _HOLD_SECONDS
        self._signal.notify()

    def finish(self, *, finished: bool) -> None:
        """Whether what was fetched is taken apart to its end."""
        if self.unfinished is finished:
            self.unfinished = not finished
            self._signal.notify()

    def release(self) -> None:
        """It is known."""
        if self.held:
            self.held, self.blocked_until = False, 0.0
            self._signal.notify()

    # --- what the destination refuses ---------------------------------------------------------------------------------

    def limit(self, batch_bytes: int) -> None:
        """Make no batch larger than that, unless it is one record."""
        self.max_batch_bytes = batch_bytes

    def take_apart(self, first: int, end: int) -> None:
        """Send the records at source offsets [``first``, ``end``) one by one."""
        self.apart = first, end

    def put_aside(self, offset: int, reason: Reason, detail: str) -> None:
        """The record at this source offset goes to quarantine."""
        self.quarantined[offset] = reason, detail

    def check_to(self, offset: int) -> None:
        """Before this source offset checksums are checked here, too."""
        self.checked_to = offset

    def settle(self, offset: int) -> None:
        """All before this source offset is acknowledged, and is not fetched again."""
        if offset >= self.apart[1]:
            self.apart = (0, 0)
        self.quarantined = {at: why for at, why in self.quarantined.items() if at >= offset}
