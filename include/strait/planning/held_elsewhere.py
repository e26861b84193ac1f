"""Records of a source that one destination lacks and another one has, as after the loss of one cluster of a mesh. Pure.

Two links from the same source number its records alike, each in its own offset map. So the source offset up to which
one link has replicated determines which records of the other link come after it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from strait.model import TopicPartition
from strait.planning.failover import Check, Verdict
from strait.planning.tail import TailPart, doubted
from strait.reasons import Reason
from strait.state.failover_records import HeldElsewhere
from strait.state.schema import Loss
from strait.state.translation import Translator
from strait.text import listed, plural


class Reach(NamedTuple):
    """How far a link has replicated a partition: the next source offset, whether that is exact, why not, and the number
    of its records. ``source_id``: of the source topic."""

    offset: int | None
    exact: bool
    detail: str
    written: int
    source_id: str


class Held(NamedTuple):
    """``part``: the source offsets. ``first``, ``end``: the numbers [first, end) that their records have as records of
    the other link."""

    part: TailPart
    first: int
    end: int

    @property
    def records(self) -> int:
        return self.end - self.first

    def doubted(self, why: str) -> "Held":
        """Return the same, marked as not exact."""
        return self._replace(part=doubted(self.part, why))


def held(
    place: TopicPartition, destination: str, mine: Reach, theirs: Reach, translator: Translator, losses: Iterable[Loss]
) -> Held | None:
    """Return the records that only the other link has; None if there are none.

    Args:
        destination: this link's destination topic.
        translator: of the other link.
        losses: entries of the other link's loss log about the partition.
    """
    if theirs.offset is None or (mine.offset is not None and mine.offset >= theirs.offset):
        return None
    first = None if mine.offset is None else translator.records_before(mine.offset)
    notes = list(_doubts(mine, theirs))
    if first is not None and not first.exact:
        notes.append("the other link's offset map does not determine its first record")
    notes += _absent(mine.offset or 0, theirs.offset, losses)
    begin = theirs.written if first is None else first.number
    part = TailPart(*place, destination, mine.offset, theirs.offset, not notes, "; ".join(notes), mine.written)
    return Held(part, begin, theirs.written)


def by_topic(link: str, found: Iterable[Held]) -> tuple[HeldElsewhere, ...]:
    """Return the number of records of each topic that the other link ``link`` has, for a report."""
    counted: dict[str, int] = {}
    for one in found:
        counted[one.part.topic] = counted.get(one.part.topic, 0) + one.records
    return tuple(HeldElsewhere(link=link, topic=topic, records=count) for topic, count in counted.items() if count)


def elsewhere(link: str, found: Sequence[HeldElsewhere], unknown: Mapping[str, str]) -> Check:
    """Report missing records that the destinations of other links have.

    Args:
        unknown: link -> why that is unknown.
    """
    texts = [*described(link, found), *(f"unknown of link {other}: {why}" for other, why in unknown.items())]
    if texts:
        return Check(Verdict.WARNING, "; ".join(texts))
    return Check(Verdict.DONE, "no other cluster has records of the source that are missing here")


def described(link: str, found: Sequence[HeldElsewhere]) -> list[str]:
    """Return for each other link the missing records that its destination has, and how to copy them."""
    return [
        f"link {other} has {plural(sum(one.records for one in found if one.link == other), 'missing record')} "
        f"({listed([f'{one.topic} {one.records:,}' for one in found if one.link == other])}): "
        f"strait tail copy {link} --from {other} --reason …"
        for other in dict.fromkeys(one.link for one in found)
    ]


def _doubts(mine: Reach, theirs: Reach) -> Iterator[str]:
    if mine.offset is None or not mine.exact:
        yield mine.detail or "the position of this link is not exact"
    if not theirs.exact:
        yield theirs.detail or "the position of the other link is not exact"
    if mine.source_id != theirs.source_id:
        yield "the two links have replicated different source topics of this name"


def _absent(start: int, end: int, losses: Iterable[Loss]) -> Iterator[str]:
    """Yield the offsets that the other link has passed over."""
    for loss in losses:
        if loss.side == "source" and loss.from_offset < end and loss.to_offset > start:
            offsets = f"source offsets {loss.from_offset:,} to {loss.to_offset - 1:,}"
            yield f"the other link did not replicate {offsets} ({Reason(loss.cause)})"
