"""Chunks cover every record once, and every source offset between the first and the last; samples are what the seed says."""

import random
from itertools import pairwise

import pytest

from strait.audit.chunks import chunk_records, chunks_of, sampled
from strait.audit.plan import AuditedPartition, OnRecord
from strait.config.audit import AuditRequest
from strait.state.offset_map import Gap, pack, source_offset
from strait.state.schema import OffsetMapping
from strait.state.translation import Translator

ALL = AuditRequest()


def run_of(gaps, *, base=0, source=50, copy=300, end=1000):
    return OffsetMapping(
        topic="t",
        partition=0,
        destination="t",
        source_id="s",
        destination_id="d",
        source_base=source,
        destination_base=copy,
        sequence_base=base,
        gaps=pack(gaps, sequence_base=base, source_base=source),
        sequence_end=end,
        checkpoint_at_ms=1,
    )


def some_gaps(chance, count):
    found, missing = [], 0
    for number in sorted(chance.sample(range(1, 1000), count)):
        missing += chance.randrange(1, 5)
        found.append(Gap(number, 50 + number + missing))
    return found


def partition(**changed):
    return AuditedPartition(
        **{"topic": "t", "partition": 0, "copy_topic": "t", "end": 1000, "chunk_records": 64} | changed
    )


@pytest.mark.parametrize("seed", range(10))
def test_chunks_of_a_link_s_partition_cover_all_of_it(seed):
    chance = random.Random(seed)
    run = run_of(some_gaps(chance, 40))
    translator = Translator([run], 1000)
    chunks = chunks_of(partition(), ALL, translator)
    assert (chunks[0].bounds.first, chunks[-1].bounds.end) == (0, 1000)
    assert chunks[0].bounds.source_from == 50
    for one, other in pairwise(chunks):
        assert one.bounds.end == other.bounds.first
        assert one.bounds.source_to == other.bounds.source_from, "what lies in gaps is looked at, too"
        assert one.copy_to == other.copy_from
    for chunk in chunks:
        assert chunk.shift == -300
        numbers = [number for piece in chunk.pieces for number in range(piece.number, piece.number + piece.records)]
        assert numbers == sorted(set(numbers))
        assert set(numbers) >= set(range(chunk.bounds.first, chunk.bounds.end))
        for number, source, records in chunk.pieces:
            assert [source_offset(run, number + step) for step in range(records)] == [*range(source, source + records)]


def test_records_whose_source_is_unknown_are_in_no_chunk():
    runs = [run_of([], end=100), run_of([], base=400, source=900, copy=700).model_copy(update={"after_unknown": True})]
    chunks = chunks_of(partition(), ALL, Translator(runs, 1000))
    covered = sorted({number for chunk in chunks for number in range(chunk.bounds.first, chunk.bounds.end)})
    assert covered == [*range(100), *range(400, 1000)]


def test_a_partition_that_others_write_to_is_one_chunk():
    (chunk,) = chunks_of(partition(whole=True, copy_end=2000), ALL, Translator([run_of([])], 1000, shared=True))
    assert (chunk.bounds.first, chunk.bounds.end, chunk.copy_from, chunk.copy_to, chunk.shift) == (
        0,
        1000,
        0,
        2000,
        None,
    )


def test_equal_offsets_are_cut_at_them_and_order_is_one_chunk():
    chunks = chunks_of(partition(first=5), AuditRequest(relation="offset"))
    assert [chunk.bounds.first for chunk in chunks] == list(range(5, 1000, 64))
    (chunk,) = chunks_of(partition(source_end=900, copy_end=800), AuditRequest(relation="order"))
    assert (chunk.bounds.source_to, chunk.copy_to) == (900, 800)


def test_what_has_a_problem_has_no_chunks():
    assert chunks_of(partition(problem="denied"), ALL, Translator([run_of([])], 1000)) == []


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_sample_has_its_share_the_edges_and_what_is_on_record(rate):
    on_record = (OnRecord(side="source", first=700, end=701, cause="quarantine"),)
    whole = chunks_of(
        partition(end=100_000, chunk_records=100, on_record=on_record),
        ALL,
        Translator([run_of([], end=100_000)], 100_000),
    )
    one, again, other = (sampled(whole, rate, seed) for seed in ("1", "1", "2"))
    assert one == again != other
    assert {whole[0].key, whole[-1].key} <= {chunk.key for chunk in one}
    assert any(chunk.on_record for chunk in one)
    assert abs(len(one) / len(whole) - rate) < 0.06


def test_few_chunks_with_gaps_are_always_in_a_sample_many_are_not():
    few = chunks_of(partition(chunk_records=5), ALL, Translator([run_of(some_gaps(random.Random(1), 4))], 1000))
    with_gaps = {c.key for c in few if c.bounds.source_to - c.bounds.source_from != c.bounds.end - c.bounds.first}
    assert with_gaps <= {chunk.key for chunk in sampled(few, 0.05, "1")}
    many = chunks_of(partition(chunk_records=5), ALL, Translator([run_of(some_gaps(random.Random(1), 400))], 1000))
    assert len(sampled(many, 0.05, "1")) < len(many) / 5


def test_a_chunk_has_about_the_bytes_that_were_asked_for():
    assert chunk_records(64 << 20, 10_000_000, 100_000) == 1 << 19
    assert chunk_records(64 << 20, 0, 0) > 0
    assert chunk_records(1, 10_000_000, 10) == 512
