"""A group that moves between two clusters that copy a topic to each other: compared with both logs, record by record."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.net.partition_logs import LoggedBatch, LogPart
from strait.planning.two_way import Copies, Log, NotExact, Progress, Writer, continuation, obstacle
from strait.state.offset_map import Gap, pack, wire_sequence
from strait.state.schema import OffsetMapping, PlannedTopic, Registration, TopicPolicy
from strait.state.translation import Fit, Translator
from support.model.reports import plain_run

LINKS = {"a": 101, "b": 202}
"""Cluster -> producer ID of the link into it."""


@dataclass
class Side:
    """One cluster's log, and the link into it. ``records``: offset -> who wrote it first, and which one it is."""

    name: str
    batches: list[LoggedBatch] = field(default_factory=list)
    records: dict[int, tuple[str, int]] = field(default_factory=dict)
    born: int = 0
    end: int = 0
    position: int = 0
    started: int = 0
    sources: list[int] = field(default_factory=list)
    copied: list[int] = field(default_factory=list)
    points: list[tuple[int, int]] = field(default_factory=list)

    def append(
        self, producer: int, records: list[tuple[str, int]], *, sequence: int = 0, size: int = 0, **kind: bool
    ) -> None:
        size = size or len(records)
        self.batches.append(LoggedBatch(self.end, self.end + size, producer, sequence, **kind))
        self.records |= {self.end + at: record for at, record in enumerate(records)}
        self.end += size

    def write(self, size: int) -> None:
        self.append(7, [(self.name, self.born + number) for number in range(size)])
        self.born += size

    def copy(self, source: "Side", most: int) -> None:
        """The link takes up to so many of the source's own records, in batches as it likes."""
        while most and self.position < source.end:
            record = source.records.get(self.position)
            if record is not None and record[0] == source.name:
                wire = wire_sequence(len(self.sources))
                self.sources.append(self.position)
                self.copied.append(self.end)
                self.append(LINKS[self.name], [record], sequence=wire)
                most -= 1
            self.position += 1

    def checkpoint(self) -> None:
        self.points.append((len(self.sources), self.copied[-1] + 1 if self.copied else self.end))

    def read(self, offset: int, most_bytes: int) -> LogPart:
        """A batch for every 64 KiB."""
        found = [batch for batch in self.batches if batch.next > offset][: max(1, most_bytes >> 16)]
        following = max([offset, *(batch.next for batch in found)])
        ended = following >= self.end
        return LogPart(tuple(found), max(following, self.end) if ended else following, ended, 0)

    def translator(self) -> Translator:
        """As the map, packed at the last checkpoint, and the last report tell."""
        gaps = [Gap(0, self.started)]
        for number, source in enumerate(self.sources):
            if source - number > gaps[-1].source - gaps[-1].sequence:
                gaps.append(Gap(number, source))
        if gaps[1:] and gaps[1].sequence == 0:
            base, gaps = gaps[1], gaps[2:]
        else:
            base, gaps = gaps[0], gaps[1:]
        runs: list[OffsetMapping] = [run(base, gaps, 0, 0)]
        runs += [run(base, gaps, number, max(0, offset - number)) for number, offset in self.points if number]
        return Translator(runs, len(self.sources), self.position, shared=True, log_end=self.end)

    def copies(self, past: Translator) -> Copies:
        log = Log(self.read)
        return Copies(log, LINKS[self.name], self.translator().checkpoints(), past.replicated_from)


def run(base: Gap, gaps: list[Gap], end: int, destination: int) -> OffsetMapping:
    packed = pack(gaps, sequence_base=0, source_base=base.source)
    return plain_run(
        source_base=base.source, destination_base=destination, sequence_base=0, sequence_end=end, gaps=packed,
        checkpoint_at_ms=end, shared=True,
    )  # fmt: skip


def history(random: Random, steps: int, *, markers: bool) -> tuple[Side, Side]:
    """Records of both sides, copied at different speeds."""
    a, b = Side("a"), Side("b")
    weights = [random.choice((0, 1, 5)) for _ in range(4)]
    for _ in range(steps):
        side, other = random.sample((a, b), 2)
        (what,) = random.choices(("write a", "write b", "copy", "checkpoint"), [*weights[:2], 1 + weights[2], 1])
        if what == "copy":
            side.copy(other, random.randint(1, 6))
        elif what == "checkpoint":
            side.checkpoint()
        else:
            {"write a": a, "write b": b}[what].write(random.randint(1, 4))
            if markers and random.random() < 0.3:
                side.append(7, [], size=1, control=True)
    return a, b


def moved(here: Side, there: Side, offset: int, progress: Progress | None) -> tuple[int, Fit, int]:
    forward, backward = there.translator(), here.translator()
    arrived = (copies_here := here.copies(forward)).before(offset)
    assert arrived == bisect_left(here.copied, offset)
    copies = there.copies(backward)
    return tuple(continuation(offset, arrived, forward, backward, copies, copies_here, progress))  # type: ignore[return-value]


def every_position(here: Side, there: Side) -> Iterator[tuple[int, set[tuple[str, int]]]]:
    for offset in range(here.end + 1):
        yield offset, {record for at, record in here.records.items() if at < offset}


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 40), st.booleans(), st.booleans())
def test_no_record_is_skipped_and_what_is_read_again_is_counted(
    seed: int, steps: int, markers: bool, reported: bool
) -> None:
    """A group at every offset of each side. Both logs know what it has seen and what is before it after the move."""
    for here, there in (sides := history(Random(seed), steps, markers=markers), sides[::-1]):
        progress = Progress(here.position, len(here.sources)) if reported else None
        for offset, seen in every_position(here, there):
            result, fit, rereads = moved(here, there, offset, progress)
            skipped = [at for at, record in there.records.items() if at < result and record not in seen]
            again = [at for at, record in there.records.items() if at >= result and record in seen]
            assert not skipped
            if offset <= there.position:
                assert (fit, rereads) == (Fit.OVERLAP if again else Fit.EXACT, len(again))
                unseen = [at for at, record in there.records.items() if at >= result and record not in seen]
                assert result == min(unseen, default=there.end)  # no later one would do
            else:
                assert fit is Fit.AHEAD


def both_written(rounds: int) -> tuple[Side, Side]:
    """Each side's records reach the other in the next round."""
    a, b = Side("a"), Side("b")
    for _ in range(rounds):
        a.write(1)
        b.write(1)
        a.copy(b, 9)
        b.copy(a, 9)
        a.checkpoint()
        b.checkpoint()
    return a, b


def test_records_that_interleave_differently_are_read_again() -> None:
    a, b = both_written(10)  # a0 b0 a1 b1 ... and b0 a0 b1 a1 ...
    assert moved(a, b, 0, None) == (0, Fit.EXACT, 0)
    assert moved(a, b, 1, None) == (0, Fit.OVERLAP, 1)  # a0, which is after b0 there
    assert moved(a, b, 2, None) == (2, Fit.EXACT, 0)
    assert moved(b, a, 1, None) == (0, Fit.OVERLAP, 1)
    assert moved(a, b, 20, None) == (20, Fit.EXACT, 0)


def test_what_the_link_back_has_not_copied_yet_is_read() -> None:
    a, b = both_written(10)
    b.write(3)
    a.write(2)
    b.copy(a, 2)
    assert moved(a, b, a.end, None) == (20, Fit.OVERLAP, 2)
    b.write(1)
    a.copy(b, 9)
    b.copy(a, 9)
    assert moved(a, b, a.end, None) == (b.end, Fit.EXACT, 0)


def test_records_that_the_link_back_began_after_are_not_the_groups() -> None:
    """It would skip them. A link back that begins after copies alone leaves nothing out."""
    a, b = Side("a"), Side("b")
    b.write(3)
    a.started = a.position = 3
    a.write(5)
    b.copy(a, 5)
    a.checkpoint()
    b.checkpoint()
    with pytest.raises(NotExact, match="began at offset 3"):
        moved(a, b, 5, None)
    a, b = Side("a"), Side("b")
    a.write(500)
    b.copy(a, 500)
    a.started = a.position = 500
    a.checkpoint()
    b.checkpoint()
    assert moved(a, b, 20, None) == (20, Fit.EXACT, 0)


@pytest.mark.parametrize("aborts", [True, False])
def test_an_aborted_transaction_before_the_first_record_is_left_out(aborts: bool) -> None:
    a, b = Side("a"), Side("b")
    b.append(8, [], size=3, transactional=True)
    b.append(8, [], size=1, control=True, aborts=aborts)
    b.write(2)
    a.copy(b, 2)
    b.copy(a, 2)
    b.checkpoint()
    if aborts:
        assert moved(a, b, 1, None) == (5, Fit.EXACT, 0)
    else:
        with pytest.raises(NotExact, match="began at offset 4"):
            moved(a, b, 1, None)


def test_a_link_that_is_rare_in_a_long_log_is_not_searched_for() -> None:
    """The map of the other link says where its copies cannot be; else all of the log would be read."""
    a, b = Side("a"), Side("b")
    b.write(1)
    a.copy(b, 1)
    a.checkpoint()
    for _ in range(3000):
        a.write(1)
    b.copy(a, 3000)
    b.write(1)
    a.copy(b, 1)
    b.copy(a, 9)
    reads: list[int] = []

    def counted(offset: int, most_bytes: int) -> LogPart:
        reads.append(offset)
        return a.read(offset, most_bytes)

    copies = Copies(Log(counted), LINKS["a"], a.translator().checkpoints(), b.translator().replicated_from)
    assert copies.before(1500) == 1
    assert len(reads) < 5
    bounded = Copies(Log(counted, most_bytes=1 << 20), LINKS["a"], a.translator().checkpoints())
    with pytest.raises(NotExact, match="1 MiB"):
        bounded.before(1500)


@pytest.mark.parametrize("turns", [1, 2])
def test_numbers_wrap_on_the_wire(turns: int) -> None:
    behind = turns * (1 << 31)
    batches = tuple(LoggedBatch(at, at + 10, 5, wire_sequence(behind - 50 + at)) for at in range(0, 100, 10))

    def read(offset: int, _: int) -> LogPart:
        return LogPart(tuple(batch for batch in batches if batch.next > offset), 100, True, 0)

    copies = Copies(Log(read), 5, [(100, behind + 50)])
    assert [copies.before(at) - behind for at in (0, 44, 50, 51, 99)] == [-50, -6, 0, 1, 49]
    assert copies.offset_of(behind + 7, 100) == 57


def test_what_was_deleted_cannot_be_counted() -> None:
    def read(offset: int, _: int) -> LogPart:
        return LogPart((LoggedBatch(60, 61, 9, 0),), 61, True, 60) if offset >= 60 else LogPart((), 60, False, 60)

    for offset in (30, 61):
        with pytest.raises(NotExact, match="deleted"):
            Copies(Log(read), 5, [(0, 0)]).before(offset)


def test_an_offset_after_the_end_of_a_log_is_not_guessed() -> None:
    """Unclean elections cut logs."""
    copies = Copies(Log(lambda _offset, _bytes: LogPart((), 7, True, 0)), 5, [(0, 0)])
    with pytest.raises(NotExact, match="ends at offset 7"):
        copies.before(9)


def planned(copies: str = "skip", source: str = "a", destination: str = "b") -> PlannedTopic:
    policy = TopicPolicy(on_foreign="expect", copies=copies)  # type: ignore[arg-type]
    return PlannedTopic(
        source="t", destination="t", source_id=f"{source}-t", destination_id=f"{destination}-t", slots=(0,),
        policy=policy,
    )  # fmt: skip


def writer(link: str, topic: PlannedTopic | None) -> Writer:
    source, destination = link.split("-")
    registration = Registration(producer_id=hash(link) % 1000, link=link, source=source, destination=destination)
    return Writer(registration, topic)


def test_only_two_links_that_carry_over_everything_tell() -> None:
    there, back = writer("a-b", planned()), writer("b-a", planned(source="b", destination="a"))
    forwarding = writer("a-b", planned("forward"))
    assert obstacle(there, back, [], []) == ""
    assert obstacle(forwarding, back, [writer("c-a", planned())], []) == ""
    assert "does not replicate" in obstacle(there, back, [writer("c-a", planned())], [])
    assert "does not replicate" in obstacle(forwarding, back, [writer("b-a", planned())], [])
    assert "does not replicate" in obstacle(there, back, [], [writer("c-b", planned())])
    assert "not known" in obstacle(there, back, [], [writer("c-b", None)])
    assert "`copies: all`" in obstacle(writer("a-b", planned("all")), back, [], [])
    assert "another topic" in obstacle(there, writer("b-a", planned(source="b", destination="x")), [], [])
