"""Fingerprints of batches and digests of records: what they are equal for, and what they see."""

import random
import struct

import pytest

from strait.errors import CorruptBatch
from strait.wire import digests
from strait.wire.batch import CRC_FROM, HEADER_BYTES, parse, restamp
from strait.wire.digests import fingerprint, record_digests
from support.audited import batch_at, flipped, log_of, record


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("codec", range(5))
def test_a_passed_batch_has_the_fingerprint_of_its_source(codec, strong):
    chance = random.Random(codec)
    source = batch_at(900, [record(n, chance) for n in range(50)], codec)
    copy = bytearray(source.view)
    restamp(parse(memoryview(copy)), 12, 345)
    struct.pack_into(">q", copy, 0, 17)
    one, other = (fingerprint(batch, strong=strong) for batch in (source, parse(memoryview(copy))))
    assert one == other
    assert one.intact


def test_every_bit_that_flips_is_seen():
    """Those of the offset and the leader epoch, which no checksum covers, show in the order of the log instead."""
    chance = random.Random(3)
    batch = batch_at(5, [record(n, chance) for n in range(20)], 3, producer=(7, 7))
    for bit in range(CRC_FROM * 8 - 32, len(batch.view) * 8):
        assert not fingerprint(flipped(batch, bit)).intact, bit


def test_a_changed_record_has_another_fingerprint_though_its_checksum_matches():
    chance = random.Random(4)
    records = [record(n, chance) for n in range(20)]
    changed = [*records[:7], records[7]._replace(timestamp_ms=records[7].timestamp_ms + 1), *records[8:]]
    one, other = fingerprint(batch_at(0, records)), fingerprint(batch_at(0, changed))
    assert one.intact and other.intact
    assert one.fingerprint != other.fingerprint


def test_without_times_batches_with_other_times_are_equal_but_for_their_bytes():
    chance = random.Random(5)
    records = [record(n, chance) for n in range(20)]
    later = [one._replace(timestamp_ms=one.timestamp_ms + 1000) for one in records]
    assert fingerprint(batch_at(0, records), timed=False) == fingerprint(batch_at(0, later), timed=False)
    assert fingerprint(batch_at(0, records)) != fingerprint(batch_at(0, later))


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("timed", [False, True])
def test_the_compiled_digests_are_those_of_python(monkeypatch, strong, timed):
    batches = log_of([record(n, random.Random(6)) for n in range(500)], random.Random(7))
    assert digests.digested is not None
    compiled = [record_digests(batch, timed=timed, strong=strong) for batch in batches]
    monkeypatch.setattr(digests, "digested", None)
    for batch, found in zip(batches, compiled, strict=True):
        slowly = record_digests(batch, timed=timed, strong=strong)
        assert (found.offsets == slowly.offsets).all()
        assert (found.digests == slowly.digests).all()
        assert len({one.tobytes() for one in found.digests}) == len(found)


@pytest.mark.parametrize("part", ["timestamp_ms", "key", "value", "headers"])
def test_each_part_of_a_record_is_in_its_digest(part):
    one = record(1, random.Random(8))._replace(key=b"k", value=b"v", headers=(("a", b"b"),))
    other = one._replace(**{part: {"timestamp_ms": 5, "key": None, "value": b"", "headers": (("a", None),)}[part]})
    found = [record_digests(batch_at(0, [it])).digests[0] for it in (one, other)]
    assert found[0] != found[1]


def test_damaged_bytes_are_an_error_or_other_records_never_a_crash():
    chance = random.Random(9)
    batch = batch_at(0, [record(n, chance) for n in range(30)], 3)
    seen = set()
    for _ in range(3000):
        damaged = flipped(batch, chance.randrange(HEADER_BYTES * 8 - 32, len(batch.view) * 8))
        try:
            seen.add(len(record_digests(damaged)))
        except CorruptBatch:
            seen.add(-1)
    assert -1 in seen
