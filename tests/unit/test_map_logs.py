"""What is compared of both logs: all that a reader sees, and nothing that a link rewrites."""

from collections.abc import Sequence

import pytest

from strait.control.map_logs import copy_log, copy_records, source_log, source_records
from strait.model import TopicPartition
from strait.net.partition_logs import WholePart
from strait.planning.map_rebuild.matching import Item, Open
from strait.wire.batch import Batch, parse, restamp
from strait.wire.records import Record, build_batch

PLACE = TopicPartition("orders", 0)
LINK = 77


def batch(first: int, values: Sequence[bytes], *, codec: int = 0, time_ms: int = 1000) -> Batch:
    records = [Record(at, time_ms + at, b"key", value, ()) for at, value in enumerate(values)]
    data = build_batch(records, codec)
    data[:8] = first.to_bytes(8, "big")
    return parse(memoryview(data))


def copied(original: Batch, first: int, sequence: int, producer_id: int = LINK) -> Batch:
    data = bytearray(original.view)
    restamp(parse(memoryview(data)), producer_id, sequence)
    data[:8] = first.to_bytes(8, "big")
    return parse(memoryview(data))


class Logs:
    """A broker that returns one batch at a time, from the one that holds the offset on."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches

    def read_whole(self, _: TopicPartition, offset: int, __: int, *, committed: bool) -> WholePart:
        left = [one for one in self._batches if one.next_offset > offset]
        start, end = self._batches[0].base_offset, self._batches[-1].next_offset
        return WholePart(tuple(left[:1]), left[0].next_offset if left else end, len(left) < 2, start)


def in_source(*batches: Batch) -> list[Item]:
    return source_log(Logs(batches), PLACE, lambda _: True, lambda *_: None).batches


def in_copy(*batches: Batch) -> list[Item]:
    return copy_log(Logs(batches), PLACE, LINK, lambda *_: None).batches


def test_a_batch_that_was_passed_on_is_equal_and_has_its_number() -> None:
    original = batch(40, [b"a", b"b"], codec=1)
    (there,), (here,) = in_source(original), in_copy(copied(original, 7, 5))
    assert there.digest == here.digest is not None
    assert (there.first, there.records, there.end) == (40, 2, 42)
    assert (here.first, here.records, here.end, here.number) == (7, 2, 9, 5)


@pytest.mark.parametrize("other", [batch(40, [b"a", b"c"]), batch(40, [b"a", b"b"], time_ms=1001)])
def test_another_batch_is_not_equal(other: Batch) -> None:
    assert in_source(batch(40, [b"a", b"b"]))[0].digest != in_source(other)[0].digest


def test_foreign_batches_of_the_destination_do_not_count() -> None:
    original = batch(0, [b"a"])
    found = in_copy(copied(original, 3, 0), copied(original, 4, 0, LINK + 1), copied(original, 5, 1))
    assert [(item.first, item.number) for item in found] == [(3, 0), (5, 1)]


def test_records_are_equal_in_other_batches_and_whatever_their_codec() -> None:
    there, rebuilt = batch(10, [b"a", b"b", b"c"]), batch(0, [b"a", b"b", b"c"], codec=1)
    here = copied(rebuilt, 20, 4)
    at = Open(11, 13, 21, 23, after=True, before=False)
    ours = copy_records(Logs([here]), PLACE, at, in_copy(here), LINK, with_time=True)
    theirs = source_records(Logs([there]), PLACE, at, lambda _: True, with_time=True)
    assert [item.digest for item in ours] == [item.digest for item in theirs]
    assert [(item.first, item.number) for item in ours] == [(21, 5), (22, 6)]
    assert [item.first for item in theirs] == [11, 12]


def digest(*, key: bytes | None, value: bytes | None, headers=(), time_ms: int = 5, with_time: bool = True):
    data = build_batch([Record(0, time_ms, key, value, headers)], 0)
    at = Open(0, 1, 0, 1, after=False, before=False)
    (item,) = source_records(Logs([parse(memoryview(data))]), PLACE, at, lambda _: True, with_time=with_time)
    return item.digest


def test_all_that_a_reader_sees_tells_records_apart() -> None:
    seen = [
        digest(key=b"k", value=b"v"),
        digest(key=b"kv", value=b""),
        digest(key=b"kv", value=None),
        digest(key=None, value=b"kv"),
        digest(key=b"k", value=b"v", headers=(("h", b""),)),
        digest(key=b"k", value=b"v", headers=(("h", None),)),
        digest(key=b"k", value=b"v", time_ms=6),
    ]
    assert len(set(seen)) == len(seen)
    assert digest(key=b"k", value=b"v", time_ms=5, with_time=False) == digest(
        key=b"k", value=b"v", time_ms=6, with_time=False
    )


def test_batches_that_the_link_skips_are_no_part_of_the_source() -> None:
    skipped = copied(batch(0, [b"x"]), 1, 0, 5)
    found = source_log(
        Logs([batch(0, [b"a"]), skipped, batch(2, [b"b"])]),
        PLACE,
        lambda one: one.producer_id != 5,
        lambda *_: None,
    )
    assert [item.first for item in found.batches] == [0, 2]
    assert (found.start, found.end) == (0, 3)
