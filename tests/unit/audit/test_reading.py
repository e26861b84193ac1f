"""A log is read batch by batch; what cannot be read is a hole, and reading goes on after it."""

import random
import struct
import zlib

import pytest

from strait.audit.feed import Hole
from strait.audit.reading import LogSide, Pace
from strait.errors import CorruptBatch
from strait.model import TopicPartition
from strait.net.partition_logs import RawPart
from strait.wire.batch import CONTROL, TRANSACTIONAL, parse, split_batches
from support.audited import PRODUCER, batch_at, flipped, log_of, record, resealed

PLACE = TopicPartition("t", 0)


class Log:
    """A broker's log: it finds batches by offset, and sends some bytes from there on."""

    def __init__(self, batches, *, aborted=(), start=0, most=3000, empty=0):
        self.batches, self.aborted, self.start, self.most = list(batches), aborted, start, most
        self.empty = empty
        self.reads = 0

    def read_raw(self, place, offset, most_bytes, *, committed):
        self.reads += 1
        end = self.batches[-1].next_offset
        if offset < self.start:
            return RawPart(memoryview(b""), (), self.start, end, (self.start, False, self.start))
        if offset > end:
            return RawPart(memoryview(b""), (), self.start, end, (end, True, self.start))
        if self.empty:
            self.empty -= 1
            return RawPart(memoryview(b""), (), self.start, end)
        found = [batch for batch in self.batches if batch.next_offset > offset]
        data = b"".join(bytes(batch.view) for batch in found)[: max(self.most, len(found[0].view) if found else 0)]
        return RawPart(memoryview(data), self.aborted, self.start, end)


def some(seed=1, count=400):
    chance = random.Random(seed)
    return log_of([record(n, chance) for n in range(count)], chance)


def side(log, **changed):
    return LogSide(log, Pace(0, sleep=lambda _: None), **changed)


def read(log, first=0, end=10_000, **changed):
    return list(side(log, **changed).items(PLACE, first, end))


def test_every_batch_that_holds_an_offset_of_the_range_comes_once():
    batches = some()
    assert [one.base_offset for one in read(Log(batches))] == [one.base_offset for one in batches]
    first, end = batches[4].base_offset + 1, batches[9].base_offset + 1
    assert [one.base_offset for one in read(Log(batches), first, end)] == [one.base_offset for one in batches[4:10]]


def test_a_broker_that_sends_nothing_is_asked_again():
    batches, slept = some(), []
    log = Log(batches, empty=2)
    found = list(LogSide(log, Pace(0, sleep=slept.append)).items(PLACE, 0, 10_000))
    assert len(found) == len(batches)
    assert len(slept) == 2


def test_what_retention_has_removed_is_a_hole():
    batches = some()
    log = Log(batches[5:], start=batches[5].base_offset)
    assert read(log)[0] == Hole(0, batches[5].base_offset, "deleted")


def test_records_that_are_deleted_up_to_one_inside_a_batch_while_the_log_is_read_are_no_damage():
    batches = some()
    held = next(number for number, one in enumerate(batches) if number > 5 and one.records > 5)
    log = Log(batches)
    items = side(log).items(PLACE, batches[2].base_offset, 10_000)
    before = [next(items)]
    log.start = batches[held].base_offset + 3
    found = [*before, *items]
    (hole,) = [one for one in found if isinstance(one, Hole)] or [None]
    assert hole is None or (hole.why, hole.end) == ("deleted", log.start)
    later = read(log, batches[held - 1].base_offset)
    assert later[0] == Hole(batches[held - 1].base_offset, log.start, "deleted")
    assert [one.base_offset for one in later[1:]] == [one.base_offset for one in batches[held:]]


def test_markers_and_aborted_transactions_have_no_records():
    chance = random.Random(2)
    batches = some()
    at = batches[-1].next_offset
    aborted = batch_at(at, [record(1, chance)], producer=(55, 0))
    aborted = resealed(aborted, 21, struct.pack(">h", TRANSACTIONAL))
    marker = batch_at(
        at + 1, [record(2, chance)._replace(key=b"\0\0\0\0", value=b"\0" * 6, headers=())], producer=(55, 0)
    )
    marker = resealed(marker, 21, struct.pack(">h", TRANSACTIONAL | CONTROL))
    found = read(Log([*batches, aborted, marker], aborted=[(55, at)]))
    assert [one.records for one in found[-2:]] == [0, 0]


def test_batches_of_skipped_producers_are_counted_without_records():
    batches = [*some(), batch_at(400, [record(1, random.Random(3))] * 3, producer=(PRODUCER, 0))]
    one = side(Log(batches), skipped_producers={PRODUCER})
    assert list(one.items(PLACE, 0, 10_000))[-1].records == 0
    assert one.skipped == 3


@pytest.mark.parametrize("seed", range(30))
def test_a_header_that_hides_where_the_next_batch_starts_is_a_hole_of_its_batch(seed):
    """A flipped bit in the length or the format; the broker itself still finds the batches by its index."""
    chance = random.Random(seed)
    batches = some(seed)
    at = chance.randrange(1, len(batches) - 1)
    broken = bytearray(batches[at].view)
    bit = chance.choice([*range(8 * 8, 12 * 8), *range(16 * 8 + 4, 16 * 8 + 7)])
    broken[bit // 8] ^= 1 << bit % 8
    damaged = batches[at]._replace(view=memoryview(broken))
    found = read(Log([*batches[:at], damaged, *batches[at + 1 :]]))
    holes = [one for one in found if isinstance(one, Hole)]
    named = [one.base_offset for one in found if not isinstance(one, Hole)]
    assert len(holes) <= 1 and all(hole.why == "damaged" for hole in holes)
    assert all((hole.first, hole.end) == (batches[at].base_offset, batches[at].next_offset) for hole in holes)
    missing = [one for one in batches if one.base_offset not in named]
    covered = [
        one for one in missing if any(hole.first < one.next_offset and one.base_offset < hole.end for hole in holes)
    ]
    assert missing == covered, "nothing is left out silently"


def test_a_damaged_batch_is_passed_on_even_if_it_looks_like_a_marker():
    batches = some()
    large = max(range(len(batches)), key=lambda n: batches[n].records)
    batches[large] = flipped(batches[large], 22 * 8 + 5)
    assert batches[large].attributes & CONTROL
    found = read(Log(batches))
    assert found[large].records == parse(batches[large].view).records > 0


def test_a_broker_that_finds_its_log_damaged_is_asked_for_the_next_offsets():
    batches = some()

    class Damaged(Log):
        def read_raw(self, place, offset, most_bytes, *, committed):
            if batches[3].base_offset <= offset < batches[3].next_offset:
                raise CorruptBatch("the broker")
            return super().read_raw(place, offset, most_bytes, committed=committed)

    found = read(Damaged(batches, most=1))
    assert Hole(batches[3].base_offset, batches[3].next_offset, "damaged") in found
    assert len(found) == len(batches)


@pytest.mark.parametrize(("reply_seconds", "at_once"), [(0.001, 1_000_000), (0.1, 2_000_000), (5.0, 4 << 20)])
def test_reading_keeps_to_its_rate_by_small_requests_however_long_replies_take(reply_seconds, at_once):
    """Also from far away, unless a reply takes longer than its bytes may."""
    now, slept = [0.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(20_000_000, lambda: now[0], sleep)
    total = 0
    for turn in range(60):
        with pace.spending() as spend:
            now[0] += reply_seconds * (1 + turn % 3)
            spend(pace.bytes_at_once)
            total += pace.bytes_at_once
    assert pace.bytes_at_once == pytest.approx(at_once, abs=1)
    assert total / now[0] <= 20_000_000 * 1.001
    if reply_seconds < 0.01:
        assert total / now[0] == pytest.approx(20_000_000, rel=0.01)
        assert max(slept) <= 0.06, "no bursts"
    assert Pace(1000).bytes_at_once == 1 << 16
    assert Pace(0).bytes_at_once == 4 << 20


def test_a_broker_that_finds_the_next_batch_only_by_its_last_offset_hides_one_batch_alone():
    """Its index has the last offset of each batch with the position of that batch, so a search for an earlier one starts at
    the damaged batch before it. Wherever the range ends, or starts after the damage."""
    batches = some(count=2000)
    damaged, following = batches[9], batches[10]

    class Indexed(Log):
        def read_raw(self, place, offset, most_bytes, *, committed):
            if damaged.base_offset <= offset < following.next_offset - 1:
                raise CorruptBatch("the broker")
            part = super().read_raw(place, offset, most_bytes, committed=committed)
            if offset >= damaged.next_offset:
                return part
            size = sum(len(one.view) for one in batches[:9] if one.next_offset > offset)
            return part._replace(records=part.records[:size])

    hole = Hole(damaged.base_offset, damaged.next_offset, "damaged")
    for end in (10_000, following.base_offset + 1, damaged.next_offset, damaged.base_offset + 1):
        found = read(Indexed(batches), 0, end)
        assert [one for one in found if isinstance(one, Hole)] == [hole._replace(end=min(hole.end, end))]
        named = [one.base_offset for one in found if not isinstance(one, Hole)]
        assert named == [one.base_offset for one in batches if one is not damaged and one.base_offset < end]
    found = read(Indexed(batches), following.base_offset + 1)
    assert [one.base_offset for one in found] == [one.base_offset for one in batches[10:]], "nothing is damaged there"


def test_messages_of_an_old_format_are_read_to_the_last_however_small():
    def message(offset):
        body = struct.pack(">bbqiiB", 1, 0, 1_700_000_000_000, -1, 1, 7)
        return next(split_batches(memoryview(struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body)))

    log = Log([message(offset) for offset in range(5)])
    assert [one.base_offset for one in read(log)] == [0, 1, 2, 3, 4]
    assert log.reads == 2, "nothing was searched for"
