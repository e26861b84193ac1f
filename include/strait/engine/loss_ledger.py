"""A slot's entries in the loss log. Loss is never silent: each one is logged before copying continues."""

import time
from typing import Literal

from strait.engine.batch_stamper import BatchStamper
from strait.engine.partition.partition import Partition
from strait.model import topic_id_text
from strait.reasons import Reason
from strait.state.codec import run_key
from strait.state.schema import Loss, OffsetMapping
from strait.state.sink import StateSink
from strait.text import plural
from strait.waiting import unix_ms

Side = Literal["source", "destination"]
Action = Literal["halted", "continued", "restarted"]


FOREIGN_ENTRIES = 10
"""A partition's entries about single occurrences of foreign records, before further ones are combined. The last of them
states that."""
_HOUR_SECONDS = 3600.0
_DAY_SECONDS = 24 * _HOUR_SECONDS
_STEP_SECONDS = 10.0


class _Period:
    """A partition's foreign records since ``began`` (monotonic seconds): the number of entries about single
    occurrences, and the offsets that none of them names, for one entry at the end of the period."""

    __slots__ = ("began", "end", "entries", "records", "seconds", "start")

    def __init__(self, began: float, seconds: float = _HOUR_SECONDS, entries: int = 0) -> None:
        self.began = began
        self.seconds = seconds
        self.entries = entries
        self.records = 0
        self.start = self.end = -1

    @property
    def combines(self) -> bool:
        """Whether further occurrences are combined."""
        return self.entries >= FOREIGN_ENTRIES

    def add(self, foreign: tuple[int, int]) -> None:
        if not self.records:
            self.start = foreign[0]
        self.end = foreign[1]
        self.records += foreign[1] - foreign[0]

    def following(self, now: float) -> "_Period":
        """Return the next period, twice as long, in which all occurrences are combined: writers that alternate for
        weeks would fill the loss log."""
        return _Period(now, min(2 * self.seconds, _DAY_SECONDS), FOREIGN_ENTRIES)


class LossLedger:
    """Writes each loss once while the slot runs; the same loss of several slots has the same key."""

    def __init__(self, link: str, state_sink: StateSink, stamper: BatchStamper) -> None:
        self._link = link
        self._state_sink = state_sink
        self._stamper = stamper
        self._periods: dict[Partition, _Period] = {}
        self._step_at = 0.0

    def step(self, now: float) -> None:
        """Write the entries about periods that are over, and about partitions that were taken away. ``now`` is
        monotonic, in seconds."""
        if now < self._step_at:
            return
        self._step_at = now + _STEP_SECONDS
        for partition, period in tuple(self._periods.items()):
            if partition.retired:
                self._end_period(partition)
            elif now - period.began >= period.seconds:
                self._end_period(partition)
                if period.records:
                    self._periods[partition] = period.following(now)

    def close(self) -> None:
        """Write the entries about periods that are not over."""
        for partition in tuple(self._periods):
            self._end_period(partition)

    def source_lost(
        self, partition: Partition, cause: Reason, lost: tuple[int, int], action: Action, detail: str
    ) -> None:
        """Record that source offsets [from, to) were deleted, or were copied and no longer exist."""
        self._note(partition, "source", cause, lost, action, detail)

    def source_recreated(self, partition: Partition) -> None:
        """Record that the source topic was replaced by another one of the same name, which is copied from its first
        record.

        The entry has both topic IDs, so that the next replacement is a separate entry.
        """
        before = "" if partition.position.run is None else f" {partition.position.run.source_id}"
        text = (
            f"source topic{before} was deleted and created again; its successor {topic_id_text(partition.source_id)} "
            "is copied from its start"
        )
        self._note(partition, "source", Reason.SOURCE_RECREATED, (0, 0), "restarted", text)

    def destination_lost(self, partition: Partition, start: int, end: int) -> None:
        """Record that the destination lost acknowledged records, which are copied again, so that the destination topic
        is complete."""
        text = f"offsets {start} to {end - 1} were acknowledged and are no more; they are copied again"
        self._note(partition, "destination", Reason.DESTINATION_TRUNCATED, (start, end), "restarted", text)

    def position_unproven(self, partition: Partition, cause: Reason, detail: str, gone: tuple[int, int]) -> None:
        """Record that copying continues although nothing proves the position on the destination. ``gone``: the affected
        destination offsets."""
        action: Action = "restarted" if partition.cursor.mapped < 0 else "continued"
        self._note(partition, "destination", cause, gone, action, detail)

    def foreign_records_before(self, partition: Partition, sequence: int, source: int, offset: int) -> None:
        """Move the position past foreign records between the link's last record and record number ``sequence``.

        Occurrences that are logged one by one are in the map, too; it may be written after that record here. Of the
        others the map has the offsets of checkpoints.
        """
        position = partition.position
        foreign = position.expected_offset, offset
        position.shift_to(offset - sequence)
        if not self._note_foreign(partition, foreign, time.monotonic()) or position.run is None:
            return
        here = {"sequence_base": sequence, "source_base": source, "gaps": "", "sequence_end": sequence}
        moved = self._moved(position.run.model_copy(update=here | {"after_unknown": False}), position.shift)
        claims = list(position.claims)
        position.redraw(moved, [self._moved(run, position.shift) for run in claims])
        written = {run_key(run) for run in (moved, *position.claims)}
        for run in claims:  # only now: records after their gaps may be in flight
            if run_key(run) not in written:
                self._state_sink.forget_run(run)

    def _note_foreign(self, partition: Partition, foreign: tuple[int, int], now: float) -> bool:
        """Log the first FOREIGN_ENTRIES occurrences one by one, and the others in one entry per period. Return whether
        this one was logged."""
        period = self._periods.setdefault(partition, _Period(now))
        if period.combines:
            period.add(foreign)
            return False
        period.entries += 1
        text = f"offsets {foreign[0]} to {foreign[1] - 1} are not of this link"
        if period.combines:
            text += "; more of them are combined in one entry per hour, later per day, which is written after it"
        self._note_continued(partition, foreign, text)
        return True

    def _end_period(self, partition: Partition) -> None:
        period = self._periods.pop(partition)
        if period.records:
            text = f"{plural(period.records, 'record')} not of this link between offsets {period.start} and {period.end - 1}"
            self._note_continued(partition, (period.start, period.end), text)

    def _note_continued(self, partition: Partition, foreign: tuple[int, int], text: str) -> None:
        self._note(partition, "destination", Reason.FOREIGN_WRITER, foreign, "continued", text)

    def _moved(self, run: OffsetMapping, shift: int) -> OffsetMapping:
        moved = run.model_copy(update={"destination_base": run.sequence_base + shift})
        self._state_sink.write_run(moved)
        return moved

    def _note(
        self, partition: Partition, side: Side, cause: Reason, lost: tuple[int, int], action: Action, detail: str
    ) -> None:
        if not partition.notes_loss(cause, lost):
            return
        loss = Loss(
            link=self._link,
            topic=partition.topic,
            partition=partition.number,
            side=side,
            cause=cause.value,
            from_offset=lost[0],
            to_offset=lost[1],
            at_ms=unix_ms(),
            action=action,
            detail=detail,
        )
        self._stamper.note_loss(partition, loss)
