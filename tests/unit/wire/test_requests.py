"""Fetch and Produce against kafka-python's generated messages, which know every version from Kafka's own
definitions."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from strait.errors import ProtocolError
from strait.wire import fetch, produce
from strait.wire.primitives import encode_uvarint, read_uvarint

TOPIC_ID = UUID(int=2**127 + 5)  # as kafka-python has it
FETCH_VERSIONS = range(fetch.VERSIONS[0], fetch.VERSIONS[1] + 1)
PRODUCE_VERSIONS = range(produce.VERSIONS[0], produce.VERSIONS[1] + 1)


@given(st.integers(0, 2**35 - 1))
def test_varints_come_back(value: int) -> None:
    raw = encode_uvarint(value)
    assert read_uvarint(memoryview(raw + b"x"), 0) == (value, len(raw))


def test_endless_varints_are_an_error() -> None:
    with pytest.raises(ProtocolError):
        read_uvarint(memoryview(b"\xff" * 20), 0)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_request_reads_as_meant(version: int) -> None:
    key = TOPIC_ID.bytes if version >= 13 else "orders"
    positions = [fetch.FetchPosition(3, 7, 2**40, 1 << 20, 6), fetch.FetchPosition(4, -1, 0, 5)]
    body = fetch.encode_request(version, [(key, positions)], max_wait_ms=500, max_bytes=1 << 24)
    request = FetchRequest.decode(body, version=version)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 1 << 24)
    assert (request.isolation_level, request.session_id, request.session_epoch) == (1, 0, -1)
    (topic,) = request.topics
    assert (topic.topic_id.bytes if version >= 13 else topic.topic) == key
    assert [
        (p.partition, p.current_leader_epoch, p.fetch_offset, p.partition_max_bytes, p.last_fetched_epoch)
        for p in topic.partitions
    ] == [tuple(position) for position in positions]
    assert request.forgotten_topics_data == []


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_request_names_its_rack_and_a_reply_the_replica_to_read_from(version: int) -> None:
    for rack in ("", "eu-central-1a", "Zürich"):
        body = fetch.encode_request(version, [], max_wait_ms=5, max_bytes=9, rack=rack)
        assert FetchRequest.decode(body, version=version).rack_id == rack
    _, _, items = fetch.decode_reply(version, memoryview(fetch_reply(version, b"", preferred_read_replica=2**31 - 1)))
    assert [item.preferred for item in items] == [2**31 - 1] * 2


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_request_names_its_session_and_what_to_forget(version: int) -> None:
    key, other = (TOPIC_ID.bytes, bytes([6]) * 16) if version >= 13 else ("orders", "payments")
    forgotten = [(key, [3, 200]), (other, [0])]
    body = fetch.encode_request(version, [], max_wait_ms=5, max_bytes=9, session=(2**31 - 1, 8), forgotten=forgotten)
    request = FetchRequest.decode(body, version=version)
    assert (request.session_id, request.session_epoch, request.topics) == (2**31 - 1, 8, [])
    assert [
        (topic.topic_id.bytes if version >= 13 else topic.topic, topic.partitions)
        for topic in request.forgotten_topics_data
    ] == forgotten


def fetch_reply(version: int, records: bytes, **fields: Any) -> bytes:
    topic_class = FetchResponse.FetchableTopicResponse
    partition_class = topic_class.PartitionData
    aborted = [partition_class.AbortedTransaction(producer_id=p, first_offset=o) for p, o in ((9, 5), (2**40, 2**41))]
    plain = {
        "partition_index": 3,
        "error_code": 0,
        "high_watermark": 100,
        "last_stable_offset": 90,
        "log_start_offset": 10,
        "aborted_transactions": aborted,
        "preferred_read_replica": -1,
        "records": records,
    }
    partition = partition_class(**plain | fields)
    topic = topic_class(topic_id=TOPIC_ID, topic="orders", partitions=[partition, partition])
    reply = FetchResponse(version=version, throttle_time_ms=7, error_code=0, session_id=77, responses=[topic])
    reply.with_header(correlation_id=1)
    return bytes(reply.encode(header=True))


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_reply_is_walked_without_a_copy(version: int) -> None:
    raw = bytearray(fetch_reply(version, b"the records"))
    error, throttle_ms, fetched = fetch.decode_reply(version, memoryview(raw))
    assert (error, throttle_ms, len(fetched)) == (0, 7, 2)
    item = fetched[1]
    assert item.topic == (TOPIC_ID.bytes if version >= 13 else "orders")
    assert (item.partition, item.error, item.high_watermark, item.last_stable_offset, item.log_start) == (
        3,
        0,
        100,
        90,
        10,
    )
    assert (item.aborted, item.diverging) == (((9, 5), (2**40, 2**41)), None)
    assert fetch.session_id(memoryview(raw)) == 77
    assert bytes(item.records) == b"the records"
    item.records[0] = ord("T")
    assert b"The records" in raw


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_reply_says_where_histories_part(version: int) -> None:
    partition_class = FetchResponse.FetchableTopicResponse.PartitionData
    fields = {
        "current_leader": partition_class.LeaderIdAndEpoch(leader_id=2, leader_epoch=9),
        "diverging_epoch": partition_class.EpochEndOffset(epoch=7, end_offset=2**40),
    }
    for names in (["diverging_epoch"], ["current_leader"], [*fields]):
        raw = fetch_reply(version, b"the records", **{name: fields[name] for name in names})
        _, _, fetched = fetch.decode_reply(version, memoryview(raw))
        assert [item.diverging for item in fetched] == [(7, 2**40) if "diverging_epoch" in names else None] * 2


@pytest.mark.parametrize("version", [fetch.VERSIONS[0], fetch.VERSIONS[1]])
def test_a_fetch_reply_cut_anywhere_or_with_more_behind_it_is_a_typed_error(version: int) -> None:
    raw = fetch_reply(version, b"the records")
    for cut in range(len(raw)):
        with pytest.raises(ProtocolError):
            fetch.decode_reply(version, memoryview(raw)[:cut])
    with pytest.raises(ProtocolError, match="1 bytes behind"):
        fetch.decode_reply(version, memoryview(raw + b"\0"))


@given(st.binary(max_size=200), st.sampled_from(list(FETCH_VERSIONS)))
def test_random_bytes_are_a_fetch_reply_or_a_typed_error(raw: bytes, version: int) -> None:
    try:
        fetch.decode_reply(version, memoryview(raw))
    except ProtocolError:
        return


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_request_reads_as_meant(version: int) -> None:
    key = TOPIC_ID.bytes if version >= 13 else "orders"
    other = bytes([6]) * 16 if version >= 13 else "payments"
    pieces = produce.encode_request(
        {key: [(0, memoryview(b"batch 0")), (200, memoryview(b"b" * 500))], other: [(1, memoryview(b"batch 1"))]},
        30_000,
    )
    request = ProduceRequest.decode(b"".join(pieces), version=version)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (None, -1, 30_000)
    found = {
        (topic.topic_id.bytes if version >= 13 else topic.name): [
            (p.index, bytes(p.records)) for p in topic.partition_data
        ]
        for topic in request.topic_data
    }
    assert found == {key: [(0, b"batch 0"), (200, b"b" * 500)], other: [(1, b"batch 1")]}


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_reply_is_read_with_its_messages(version: int) -> None:
    topic_class = ProduceResponse.TopicProduceResponse
    partition_class = topic_class.PartitionProduceResponse
    good = partition_class(
        index=0,
        error_code=0,
        base_offset=2**40,
        log_append_time_ms=-1,
        log_start_offset=2**33,
        record_errors=[],
        error_message=None,
    )
    bad = partition_class(
        index=1,
        error_code=87,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=0,
        record_errors=[partition_class.BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="first")],
        error_message="whole",
    )
    reply = ProduceResponse(
        version=version,
        responses=[topic_class(name="orders", topic_id=TOPIC_ID, partition_responses=[good, bad])],
        throttle_time_ms=11,
    )
    reply.with_header(correlation_id=1)
    raw = reply.encode(header=True)
    throttle_ms, results = produce.decode_reply(version, memoryview(raw))
    key = TOPIC_ID.bytes if version >= 13 else "orders"
    assert throttle_ms == 11
    assert results == [
        produce.Produced(key, 0, 0, 2**40, -1, 2**33, None),
        produce.Produced(key, 1, 87, -1, -1, 0, "whole"),
    ]
    for cut in range(len(raw)):
        with pytest.raises(ProtocolError):
            produce.decode_reply(version, memoryview(raw)[:cut])
