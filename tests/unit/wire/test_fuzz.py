"""Damaged bytes: each reader ends in a typed error or in what the undamaged bytes said, never otherwise and never
without end.

Deterministic: every run tries the same examples. To look further, raise ``EXAMPLES``.
"""

import random
from collections.abc import Callable
from uuid import UUID

from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from crc32c import crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.producer import ProduceResponse

from strait.errors import CorruptBatch, StraitError
from strait.wire import batch as batches
from strait.wire import fetch, produce
from strait.wire.joining import Row
from strait.wire.legacy import read_legacy
from strait.wire.records import Record, build_batch, read_records

EXAMPLES = 1000
BASE_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=2**127 + 5)

tried = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def damage(draw: st.DrawFn) -> Callable[[bytes], bytearray]:
    """Cut, then change, repeat, remove or insert a few stretches."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    cut, strokes = draw(st.sampled_from([0.0, 0.0, 0.5])), draw(st.integers(1, 4))

    def apply(original: bytes) -> bytearray:
        raw = bytearray(original[: rng.randrange(len(original) + 1)] if rng.random() < cut else original)
        for _ in range(strokes):
            at = rng.randrange(len(raw) + 1)
            behind = min(len(raw), at + rng.choice((1, 1, 2, 4, 8, 60)))
            kind = rng.randrange(5)
            if kind == 0:
                raw[at:behind] = rng.randbytes(behind - at)
            elif kind == 1:
                raw[at:behind] = rng.choice((b"\x00", b"\xff", b"\x7f", b"\x80")) * (behind - at)
            elif kind == 2:
                del raw[at:behind]
            elif kind == 3:
                raw[at:at] = raw[at:behind]
            elif at < len(raw):
                raw[at] ^= 1 << rng.randrange(8)
        return raw

    return apply


def some_records(seed: int) -> list[Record]:
    rng = random.Random(seed)
    return [
        Record(
            number,
            BASE_MS + rng.randrange(1000),
            rng.choice([None, b"", b"key"]),
            rng.choice([None, b"", rng.randbytes(rng.randrange(50)), b"x" * rng.randrange(300)]),
            rng.choice([(), (("h", b"1"), ("ü", None))]),
        )
        for number in range(rng.randrange(1, 8))
    ]


def resealed(raw: bytearray) -> bytearray:
    """With a length and a checksum that hold, as if the producer had made it so: what the checksum cannot find."""
    if len(raw) >= batches.HEADER_BYTES:
        raw[8:12] = (len(raw) - 12).to_bytes(4, "big")
        raw[16] = 2
        raw[17:21] = crc32c(bytes(raw[21:])).to_bytes(4, "big")
    return raw


def reply_parts(version: int) -> tuple[bytes, list[bytes]]:
    """A fetch reply with every optional thing in it, and the record sets that it holds."""
    topic_class = FetchResponse.FetchableTopicResponse
    part = topic_class.PartitionData
    held = [bytes(build_batch(some_records(n), n % 5)) + bytes(build_batch(some_records(n + 9), 0)) for n in range(3)]
    parts = [
        part(
            partition_index=number,
            error_code=0,
            high_watermark=100,
            last_stable_offset=90,
            log_start_offset=10,
            aborted_transactions=[part.AbortedTransaction(producer_id=9, first_offset=5)] * number,
            preferred_read_replica=-1,
            records=records,
            diverging_epoch=part.EpochEndOffset(epoch=number - 1, end_offset=-1 if number == 0 else 50),
            current_leader=part.LeaderIdAndEpoch(leader_id=number - 1, leader_epoch=number - 1),
        )
        for number, records in enumerate(held)
    ]
    topic = topic_class(topic_id=TOPIC_ID, topic="orders", partitions=parts)
    reply = FetchResponse(version=version, throttle_time_ms=7, error_code=0, session_id=5, responses=[topic, topic])
    reply.with_header(correlation_id=1)
    return bytes(reply.encode(header=True)), held


FETCH_REPLIES = {version: reply_parts(version) for version in range(fetch.VERSIONS[0], fetch.VERSIONS[1] + 1)}


@given(st.sampled_from(sorted(FETCH_REPLIES)), damage())
@tried
def test_no_batch_comes_out_of_a_damaged_fetch_reply_but_those_that_were_in_it(
    version: int, damaged: Callable[[bytes], bytearray]
) -> None:
    original, held = FETCH_REPLIES[version]
    written = {bytes(batch.view[16:]) for each in held for batch in batches.split_batches(memoryview(each))}
    frame = memoryview(damaged(original))
    try:
        _, _, fetched = fetch.decode_reply(version, frame)
        fetch.session_id(frame)
    except StraitError:
        return
    for item in fetched:
        try:
            for batch in batches.split_batches(item.records):
                if batch.magic == 2:
                    assert (
                        bytes(batch.view[16:]) in written
                    )  # before it: base offset and epoch, which no checksum covers
                    read_records(batch)
                else:
                    read_legacy(batch.view)
        except StraitError:
            continue


def produce_reply(version: int) -> bytes:
    topic_class = ProduceResponse.TopicProduceResponse
    part = topic_class.PartitionProduceResponse
    parts = [
        part(
            index=number,
            error_code=87 * (number % 2),
            base_offset=2**40,
            log_append_time_ms=-1,
            log_start_offset=0,
            record_errors=[part.BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="ü")] * number,
            error_message="whole" if number else None,
        )
        for number in range(3)
    ]
    reply = ProduceResponse(
        version=version,
        responses=[topic_class(name="orders", topic_id=TOPIC_ID, partition_responses=parts)] * 2,
        throttle_time_ms=11,
    )
    reply.with_header(correlation_id=1)
    return bytes(reply.encode(header=True))


PRODUCE_REPLIES = {version: produce_reply(version) for version in range(produce.VERSIONS[0], produce.VERSIONS[1] + 1)}


@given(st.sampled_from(sorted(PRODUCE_REPLIES)), damage())
@tried
def test_a_damaged_produce_reply_is_a_reply_or_a_typed_error(
    version: int, damaged: Callable[[bytes], bytearray]
) -> None:
    try:
        _, results = produce.decode_reply(version, memoryview(damaged(PRODUCE_REPLIES[version])))
    except StraitError:
        return
    assert all(isinstance(result, produce.Produced) for result in results)


@given(st.integers(0, 4), st.integers(0, 20), st.booleans(), damage())
@tried
def test_a_damaged_batch_is_corrupt_or_holds_as_many_records_as_it_says(
    codec: int, seed: int, seal: bool, damaged: Callable[[bytes], bytearray]
) -> None:
    original = build_batch(some_records(seed), codec)
    raw = damaged(bytes(original))
    if seal:
        resealed(raw)
    try:
        for batch in batches.split_batches(memoryview(raw)):
            if batch.magic < 2:
                read_legacy(batch.view)
                continue
            if not seal:
                assert batch.view[16:] == original[16:]
            records = read_records(batch)
            assert len(records) == batch.records
            if records:  # what is read can be written, and reads the same
                (again,) = batches.split_batches(memoryview(build_batch(records, codec)))
                assert [record[1:] for record in read_records(again)] == [record[1:] for record in records]
    except StraitError:
        return


@given(st.integers(0, 20), damage())
@tried
def test_damaged_records_under_a_right_checksum_are_corrupt_or_are_read(
    seed: int, damaged: Callable[[bytes], bytearray]
) -> None:
    """Only what is behind the header is damaged: most of the others die of a header."""
    original = build_batch(some_records(seed), 0)
    raw = resealed(original[: batches.HEADER_BYTES] + damaged(bytes(original[batches.HEADER_BYTES :])))
    (batch,) = batches.split_batches(memoryview(raw))
    try:
        assert len(read_records(batch)) == batch.records
    except StraitError:
        return


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=5), damage())
@tried
def test_damaged_batches_joined_are_what_each_of_them_is(
    each: list[tuple[int, bool]], damaged: Callable[[bytes], bytearray]
) -> None:
    """Or they are not joined."""
    data, behind = bytearray(), 0
    for seed, harmed in each:
        original = build_batch(some_records(seed), 0)
        rest = bytes(original[batches.HEADER_BYTES :])
        raw = resealed(original[: batches.HEADER_BYTES] + (damaged(rest) if harmed else rest))
        raw[:8] = behind.to_bytes(8, "big")
        behind += len(some_records(seed))
        data += raw
    row = Row.of(memoryview(data), 1)
    made = None if row is None else row.joined(0, len(each))
    if made is None:
        return
    assert all_records(made) == all_records(data)


def all_records(data: bytes | bytearray) -> list[Record] | None:
    """None: they cannot be read."""
    try:
        return [record for batch in batches.split_batches(memoryview(data)) for record in read_records(batch)]
    except CorruptBatch:
        return None


def legacy_set(magic: int, codec: int) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    for number in range(4):
        builder.append(number, BASE_MS, b"key" if number % 2 else None, b"value" * number)
    raw = bytearray(builder.build())
    if codec:
        raw[0:8] = (3).to_bytes(8, "big")
    return bytes(raw)


LEGACY_SETS = [legacy_set(magic, codec) for magic in range(2) for codec in range(4) if (magic, codec) != (0, 3)]


@given(st.sampled_from(LEGACY_SETS), damage())
@tried
def test_nothing_comes_out_of_a_damaged_message_set_but_what_was_in_it(
    original: bytes, damaged: Callable[[bytes], bytearray]
) -> None:
    written = {record[1:] for record in read_legacy(memoryview(original))}
    try:
        found = read_legacy(memoryview(damaged(original)))
    except StraitError:
        return
    assert {record[1:] for record in found} <= written  # the offset before a message is under no checksum


@given(st.binary(max_size=400), st.sampled_from(sorted(FETCH_REPLIES)), st.sampled_from(sorted(PRODUCE_REPLIES)))
@tried
def test_noise_is_nothing_or_a_typed_error(raw: bytes, fetch_version: int, produce_version: int) -> None:
    view = memoryview(bytearray(raw))
    for read in (
        lambda: fetch.decode_reply(fetch_version, view),
        lambda: produce.decode_reply(produce_version, view),
        lambda: list(batches.split_batches(view)),
        lambda: read_legacy(view),
    ):
        try:
            read()
        except StraitError:
            continue
