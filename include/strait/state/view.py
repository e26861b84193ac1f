"""The state of one link, updated from the records of its state topics. Pure: no Kafka, no clock.

A record that cannot be read changes nothing: the last valid value under its key stays active, and the error is kept
until a valid record or a tombstone arrives under the same key.
"""

from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from hashlib import blake2b
from typing import Literal, NamedTuple

from strait.config import naming
from strait.errors import StateError
from strait.state.codec import Unreadable, decode, decode_key, decode_report, is_acknowledgement
from strait.state.group_sync_records import GroupSyncReport
from strait.state.keys import PlanKey
from strait.state.report_changes import FailureReport
from strait.state.report_records import Report
from strait.state.runs import RunsByPartition
from strait.state.schema import Loss, LossAcknowledgement, OffsetMapping, Plan
from strait.state.signing import Headers, Keys, Proof
from strait.state.slot_reports import SlotReports
from strait.state.troubles import Troubles

Kind = Literal["plan", "map", "reports", "losses"]


class Place(NamedTuple):
    """The topic, partition and offset of a record."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic} partition {self.partition} offset {self.offset}"


_COMPARED = 10  # this many times ``most`` digests are remembered, to detect repeated losses


class _Entry(NamedTuple):
    """A loss, and its number in the loss log: among all, and among those of its topic."""

    loss: Loss
    number: int
    of_topic: int


class LossLog:
    """Losses in log order; a loss that several slots, or a restarted one, wrote again is included once.

    Attributes:
        counts: (cause, action) -> number of losses.

    Args:
        most: number of newest losses that are kept; repeats of ten times as many are detected. None: all.
    """

    def __init__(self, most: int | None = None) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._newest: deque[_Entry] = deque(maxlen=most)
        self._totals: Counter[str] = Counter()
        self._acknowledged: dict[str, list[LossAcknowledgement]] = defaultdict(list)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._most = most

    @property
    def newest(self) -> tuple[Loss, ...]:
        return tuple(entry.loss for entry in self._newest)

    @property
    def acknowledgements(self) -> tuple[LossAcknowledgement | None, ...]:
        """Of each of the newest, in the same order, its acknowledgement; None: it has none."""
        return tuple(map(self._acknowledgement, self._newest))

    def total(self, topic: str = "") -> int:
        """Return the number of all losses, or of those of one topic."""
        return self._totals[topic]

    def acknowledge(self, said: LossAcknowledgement) -> None:
        """Add an acknowledgement of losses that precede it in the log."""
        covers = min(said.count, self._totals[said.topic])
        before = self._acknowledged[said.topic]
        if covers > (before[-1].count if before else 0):
            before.append(said.model_copy(update={"count": covers}))

    def _acknowledgement(self, entry: "_Entry") -> LossAcknowledgement | None:
        numbers = (("", entry.number), (entry.loss.topic, entry.of_topic))
        covering = [
            said for scope, number in numbers for said in self._acknowledged.get(scope, ()) if number <= said.count
        ]
        return min(covering, key=lambda said: said.at_ms, default=None)

    def take(self, loss: Loss) -> None:
        """Add one entry, unless it repeats an earlier one."""
        told = loss.model_copy(update={"at_ms": 0}).model_dump_json()
        digest = blake2b(told.encode(), digest_size=16).digest()
        if digest in self._known:
            self._known.move_to_end(digest)
            return
        self._known[digest] = None
        if self._most is not None and len(self._known) > self._most * _COMPARED:
            self._known.popitem(last=False)
        self.counts[str(loss.cause), loss.action] += 1
        self._totals.update(("", loss.topic))
        self._newest.append(_Entry(loss, self._totals[""], self._totals[loss.topic]))


class StateView:
    """Plans, offset segments, reports and losses of one link.

    Attributes:
        plans: task group -> its current plan. ``proofs``: task group -> whether that plan is proven by the keys.
        runs: (source topic, partition) -> its offset segments, by sequence_base.
        reports: (task group, slot) -> the newest report of every application that runs this slot, combined from all
            its records.
        group_sync: state of the consumer groups at their last synchronization; None: no report was read.
        losses: the loss log.

    Args:
        most_losses: number of newest losses that are kept; None: all.
        keys: those of the link's plans, as far as this process has them.
    """

    def __init__(self, link: str, most_losses: int | None = None, keys: Keys | None = None) -> None:
        self._link = link
        self.keys = keys or Keys(())
        self.plans: dict[str, Plan] = {}
        self.proofs: dict[str, Proof] = {}
        self.runs = RunsByPartition(self._run_not_read)
        self.reports = SlotReports()
        self.group_sync: GroupSyncReport | None = None
        self.losses = LossLog(most_losses)
        self._troubles: dict[Kind, Troubles[StateError]] = defaultdict(Troubles)

    def trouble(self, *kinds: Kind) -> StateError | None:
        """Return the error for the first record of these kinds that could not be read and was not replaced since."""
        return next((error for kind in kinds if (error := self._troubles[kind].first) is not None), None)

    def apply(
        self, kind: Kind, raw_key: bytes | None, raw_value: bytes | None, place: Place, headers: Headers = ()
    ) -> bool:
        """Apply one record; return whether anything changed, including errors."""
        had_trouble = self._troubles[kind].end(raw_key)
        if raw_value is None:
            return self._forget(kind, raw_key) or had_trouble
        try:
            if kind == "plan":
                plan = decode(Plan, raw_key, raw_value)
                self._take_plan(plan, self.keys.proof(place.topic, raw_key, raw_value, headers))
            elif kind == "map":
                self.runs.put(raw_key, raw_value, place.offset)
            elif kind == "losses":
                self._take_of_losses(raw_key, raw_value)
            elif isinstance(report := decode_report(raw_key, raw_value), GroupSyncReport):
                self.group_sync = report
            else:
                self.reports.take(report)
        except Unreadable as error:
            self._not_read(kind, raw_key, place, error)
        return True

    def _run_not_read(self, raw_key: bytes, offset: int, error: Unreadable) -> None:
        self._not_read("map", raw_key, Place(naming.map_topic(self._link), 0, offset), error)

    def _not_read(self, kind: Kind, raw_key: bytes | None, place: Place, error: Unreadable) -> None:
        trouble = StateError(
            f"link {self._link}: reading its state: the record at {place} cannot be read: {error}",
            hint="the last good state stays active; upgrade Strait if a newer one wrote it, "
            "else write a good record or a tombstone under the same key",
        )
        self._troubles[kind].add(raw_key, trouble)

    def _take_plan(self, plan: Plan, proof: Proof) -> None:
        if plan.link != self._link:
            raise Unreadable(f"it is a plan of link {plan.link!r}")
        self.plans[plan.group] = plan
        self.proofs[plan.group] = proof

    def _take_of_losses(self, raw_key: bytes | None, raw_value: bytes) -> None:
        acknowledged = is_acknowledgement(raw_key)
        found = decode(LossAcknowledgement, raw_key, raw_value) if acknowledged else decode(Loss, raw_key, raw_value)
        if found.link != self._link:
            raise Unreadable(f"it is a record of link {found.link!r}")
        if isinstance(found, Loss):
            self.losses.take(found)
        else:
            self.losses.acknowledge(found)

    def _forget(self, kind: Kind, raw_key: bytes | None) -> bool:
        if kind == "map":
            return self.runs.drop(raw_key)
        try:
            group = decode_key(PlanKey, raw_key).group
        except Unreadable:
            return False  # an unreadable record was never applied
        self.proofs.pop(group, None)
        return self.plans.pop(group, None) is not None


class ReadState(ABC):
    """The state of a link as far as a reader has read it."""

    @property
    @abstractmethod
    def view(self) -> StateView:
        """All of it; another object after the topics were read again from their start."""

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Task group -> its current plan."""
        return self.view.plans

    @property
    def proofs(self) -> Mapping[str, Proof]:
        """Task group -> whether its current plan is proven by the keys in the cluster's properties."""
        return self.view.proofs

    @property
    def runs(self) -> Mapping[tuple[str, int], tuple[OffsetMapping, ...]]:
        """(source topic, partition) -> its offset segments, by sequence_base."""
        return self.view.runs

    @property
    def reports(self) -> Mapping[tuple[str, int], tuple[Report, ...]]:
        """(task group, slot) -> the newest report of each application that runs this slot, with all its partitions."""
        return self.view.reports

    @property
    def heard(self) -> Mapping[tuple[str, int], int]:
        """When each slot has last reported anything, be it a failure, in ms since 1970."""
        return self.view.reports.heard()

    @property
    def failures(self) -> Mapping[tuple[str, int], FailureReport]:
        """The failures of slots that have not reported anything since."""
        return self.view.reports.failures()

    @property
    def earlier_reports(self) -> Mapping[tuple[str, int], tuple[Report, ...]]:
        """The reports from some seconds before, from which the slots' throughput is computed."""
        return self.view.reports.earlier()

    @property
    def group_sync(self) -> GroupSyncReport | None:
        """State of the consumer groups at their last synchronization; None: no recent report."""
        return self.view.group_sync

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The loss log, in log order: the newest entries, or all of them."""
        return self.view.losses.newest

    @property
    def loss_acknowledgements(self) -> tuple[LossAcknowledgement | None, ...]:
        """Of each of the ``losses``, in the same order, its acknowledgement; None: it is new."""
        return self.view.losses.acknowledgements

    @property
    def loss_counts(self) -> Mapping[tuple[str, str], int]:
        """(cause, action) -> number of entries in the loss log."""
        return self.view.losses.counts
