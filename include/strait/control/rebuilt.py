"""The result of `strait map rebuild` for one partition, its entry in the loss log, and its notes."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from strait.model import TopicPartition
from strait.planning.map_rebuild.matching import Unknown
from strait.reasons import Reason
from strait.state.schema import Loss, OffsetMapping
from strait.waiting import unix_ms

Verdict = Literal["ready", "written", "kept", "refused"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One partition of the source.

    Attributes:
        verdict: ``ready``: can be written; ``written``; ``kept``: the map has entries of it; ``refused``: nothing can
            be written, for the reason in ``detail``. For the others, ``detail`` names any step that remains.
        position: the next source offset to replicate; -1: unknown.
        records: those whose offsets on both sides are known.
        unknown: those on the destination whose source offsets stay unknown.
        again: destination offsets [from, to) of records that the link replicates again, as far as the source still has
            them; None: it replicates none again.
        end: the destination's end offset when it was read.
    """

    topic: str
    partition: int
    destination: str
    verdict: Verdict
    detail: str = ""
    position: int = -1
    records: int = 0
    unknown: tuple[Unknown, ...] = ()
    again: tuple[int, int] | None = None
    entries: tuple[OffsetMapping, ...] = field(default=(), repr=False)
    end: int = -1

    @property
    def place(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)

    def as_data(self) -> dict[str, Any]:
        """Return the same, machine-readable, with the number of the entries instead of the entries."""
        data = {name: value for name, value in asdict(self).items() if name not in ("entries", "end")}
        return data | {"unknown": [one._asdict() for one in self.unknown], "entries": len(self.entries)}


def copied_again(link: str, one: Rebuilt) -> Loss:
    """Return the entry in the loss log for a partition of which records are replicated again."""
    assert one.again is not None  # only for such a partition
    first, end = one.again
    return Loss(
        link=link,
        topic=one.topic,
        partition=one.partition,
        side="destination",
        cause=str(Reason.POSITION_UNVERIFIED),
        from_offset=first,
        to_offset=end,
        at_ms=unix_ms(),
        action="restarted",
        detail=f"strait map rebuild: {one.detail}",
    )


def dropped(found: Rebuilt, losses: Iterable[Loss]) -> str:
    """Return a note on the offsets that `strait tail drop` or `strait tail copy` skipped after the last record: the
    link's records in the log do not show them."""
    causes = (Reason.TAIL_DROPPED, Reason.TAIL_COPIED)
    tails = [loss for loss in losses if loss.cause in causes and loss.to_offset > found.position]
    if not tails:
        return ""
    first, end = min(loss.from_offset for loss in tails), max(loss.to_offset for loss in tails)
    which = (
        "dropped" if all(loss.cause == Reason.TAIL_DROPPED for loss in tails) else "dropped, or copied from elsewhere"
    )
    return f"source offsets {first} to {end - 1} were {which}; run `strait tail drop` again, or they are replicated"
