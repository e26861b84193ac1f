"""Copies records that a lost source held from the destination of another link, which has them, into a link's own
destination topics, each once.

Each transaction holds records, and the map entry by which the link passes over them: if interrupted, the next run
resumes after the last transaction, and a source that comes back is not replicated twice. The writer is registered, so links in other directions
recognize the records as copies.
"""

from collections import Counter
from collections.abc import Sequence

from strait.config import naming
from strait.control.held_elsewhere import HeldRecords
from strait.control.registration import register_repair
from strait.control.tail_drop import Decision, passed_over, require_at_rest
from strait.errors import ClusterUnavailable, PlanConflict
from strait.kafka.admin import Admin
from strait.kafka.transactions import chunks
from strait.model import TopicPartition
from strait.planning.held_elsewhere import Held
from strait.reasons import Reason
from strait.state.publisher import CopiedRecord, Publication
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping
from strait.state.tail_records import TailRecord
from strait.text import plural
from strait.waiting import tries, unix_ms

_CHUNK_RECORDS = 5_000
_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


def copy(reader: HeldRecords, found: Sequence[Held], decision: Decision) -> Counter[TopicPartition]:
    """Copy the records; return their number by partition.

    Raises:
        ConfigError: see `require_at_rest`.
        PlanConflict: another process has taken over the control of the link; records copied before stay.
        ClusterError: the destination rejects a record; nothing of its transaction was written.
    """
    link = reader.link
    doing = f"copying records of {reader.theirs.admin.cluster}"
    require_at_rest(link, [one.part for one in found], doing)
    # Its transactional ID is that of the control plane, so that nothing else publishes map entries meanwhile.
    register_repair(reader.mine.admin, link.name, naming.control_transactional_id(link.name))
    counted: Counter[TopicPartition] = Counter()
    with link.state() as state, link.publisher().exclusive(state) as publication:
        if not all(plan.stopped for plan in state.plans.values()):
            raise PlanConflict(
                f"link {link.name}: {doing}: it was started; nothing was copied",
                hint=f"run `strait stop {link.name}`, then `strait wait {link.name} --for stopped`",
            )
        for one in found:
            work = _Copying(reader, one, publication, state, decision)
            for chunk in chunks(reader.records([one]), lambda record: record.bytes, _CHUNK_RECORDS):
                work.write(chunk)
                counted[one.part.place] += len(chunk)
            work.finish()
    return counted


class _Copying:
    """The copying of one partition."""

    def __init__(
        self, reader: HeldRecords, one: Held, publication: Publication, state: StateReader, decision: Decision
    ) -> None:
        self._reader = reader
        self._one = one
        self._publication = publication
        self._decision = decision
        point = reader.mine.points[one.part.place]
        self._copy = point.copy
        self._runs: Sequence[OffsetMapping] = sorted(point.runs, key=lambda run: run.sequence_base)
        self._at = one.part.range[0]
        self._number = one.first
        self._end = settled_end(reader.mine.admin, point.copy)

    def write(self, chunk: Sequence[TailRecord]) -> None:
        """Write some of the records, and that the link passes over them."""
        records = [
            CopiedRecord(*self._copy, record.key, record.value, record.headers, record.timestamp_ms) for record in chunk
        ]
        number = self._number + len(chunk)
        self._end += len(chunk) + 1  # and the transaction's marker
        self._publish(number, self._reader.next_offset(self._one, number), records)

    def finish(self) -> None:
        """Pass over offsets without a record after the last one."""
        if self._at < self._one.part.to_offset:
            self._publish(self._number, self._one.part.to_offset, ())

    def _publish(self, number: int, to_offset: int, records: Sequence[CopiedRecord]) -> None:
        now_ms = unix_ms()
        change = passed_over(self._runs, self._one.part.written, to_offset, now_ms, self._end)
        losses = [self._loss(to_offset, len(records), now_ms)] if to_offset > self._at else []
        self._publication.publish((), change.written, losses, change.forgotten, records)
        self._runs = sorted(change.runs, key=lambda run: run.sequence_base)
        self._at, self._number = to_offset, number

    def _loss(self, to_offset: int, records: int, now_ms: int) -> Loss:
        return Loss(
            link=self._reader.link.name,
            topic=self._one.part.topic,
            partition=self._one.part.partition,
            side="source",
            cause=str(Reason.TAIL_COPIED),
            from_offset=self._at,
            to_offset=to_offset,
            at_ms=now_ms,
            action="continued",
            detail=f"{self._decision.by}: {self._decision.reason} ({plural(records, 'record')} from link {self._reader.other})",
        )


def settled_end(admin: Admin, copy: TopicPartition) -> int:
    """Return the log end offset once no transaction is open: an interrupted copy may have left one."""
    for _ in tries(_SECONDS, _PAUSE_SECONDS):
        end, stable = (admin.offsets([copy], where)[copy] for where in ("end", "latest"))
        if end == stable:
            return end
    raise ClusterUnavailable(admin.cluster, f"{copy}: a transaction is open at offset {stable}")
