"""Batches that cannot pass as they are, or that cost too much as they are: merged, split, rebuilt, quarantined."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strait.config import naming
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from strait.wire.batch import CODEC_MASK, Batch, split_batches
from strait.wire.records import Record, build_batch
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.raw import RawClient
from support.kafka.records import read_all
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LZ4 = CODECS.index("lz4")
_SECONDS = 60.0


def produce(link: EngineLink, topic: str, records: int, size: int = 100, **settings: Any) -> None:
    """Records of ``size`` bytes that do not compress, dealt out to the partitions."""
    rng = random.Random(f"{topic} {records} {size}")
    producer = Producer(link.source.client_properties | {"message.max.bytes": 100_000_000} | settings)
    for number in range(records):
        producer.produce(
            topic,
            rng.randbytes(size),
            b"%d" % number,
            number % link.topics[topic],
            timestamp=1_700_000_000_000 + number,
            headers=[("n", b"%d" % number)] if number % 10 == 0 else None,
        )
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(_SECONDS) == 0


def batches(link: EngineLink, topic: str, partition: int = 0) -> Iterator[Batch]:
    """The copy's batches."""
    offset, end = 0, ends(link.destination, topic, link.topics[topic])[partition]
    with RawClient(link.destination) as client:
        topic_id = client.topic_id(topic)
        while offset < end:
            for batch in split_batches(client.fetch_one(topic_id, partition, offset).records):
                yield batch
                offset = batch.next_offset


def append(link: EngineLink, topic: str, *batches_of: tuple[list[Record], int]) -> None:
    """Give the source batches of these records, each in a codec."""
    with RawClient(link.source) as client:
        topic_id = client.topic_id(topic)
        for records, codec in batches_of:
            assert client.append(topic_id, 0, build_batch(records, codec)).error == 0


def record(value: bytes, timestamp_ms: int = 1_700_000_000_000) -> Record:
    return Record(0, timestamp_ms, b"key", value, (("ü", b"1"), ("", None)))


def quarantined(link: EngineLink) -> list[Any]:
    return read_all(link.destination, naming.quarantine_topic(link.name), 1)[0]


def test_batches_of_one_record_are_merged(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    produce(link, topic_name, 4_000, **{"batch.num.messages": 1, "compression.type": "lz4"})
    link.publish()
    link.start_slot()
    link.until_copied()
    link.assert_equal()
    assert sum(1 for _ in batches(link, topic_name)) < 400


def test_single_records_that_come_one_by_one_are_not_waited_for(make_link: MakeLink, topic_name: str) -> None:
    """Merging is for backlogs: each of these is there before the next one is written."""
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    link.start_slot()
    for number in range(1, 20):
        produce(link, topic_name, 1)
        link.until_copied(number)
    link.assert_equal()


def test_small_batches_of_all_codecs_in_a_row_keep_their_codecs(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    rng = random.Random(5)
    made: list[tuple[list[Record], int]] = []
    for _ in range(60):
        codec = rng.randrange(len(CODECS))
        for _ in range(rng.randrange(1, 12)):
            count = rng.randrange(1, 4)
            made.append(([record(rng.randbytes(50), 1_600_000_000_000 + n) for n in range(count)], codec))
    append(link, topic_name, *made)
    link.publish()
    link.start_slot()
    link.until_copied()
    link.assert_equal()
    expected, found = Counter[int](), Counter[int]()
    for records, codec in made:
        expected[codec] += len(records)
    for batch in batches(link, topic_name):
        found[batch.attributes & CODEC_MASK] += batch.records
    assert found == expected


def test_what_is_rebuilt_is_compressed_as_the_policy_says(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(compression="zstd"))
    link.make_topics()
    produce(link, topic_name, 2_000, **{"batch.num.messages": 1})
    link.publish()
    link.start_slot()
    link.until_copied()
    link.assert_equal()
    assert {batch.attributes & CODEC_MASK for batch in batches(link, topic_name)} == {CODECS.index("zstd")}


def test_a_batch_of_a_hundred_thousand_records_and_one_record_of_ten_megabytes(
    make_link: MakeLink, topic_name: str
) -> None:
    limit = 12 << 20
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(max_message_bytes=limit), slot_memory_bytes=16 << 20)
    link.make_topics(
        source_configs={"max.message.bytes": str(limit)}, destination_configs={"max.message.bytes": str(limit)}
    )
    for _ in range(2):
        append(link, topic_name, ([record(b"%d" % number) for number in range(100_000)], LZ4))
        produce(link, topic_name, 3, size=10 << 20)
        produce(link, topic_name, 3)
    link.publish()
    link.start_slot()
    link.until_copied()
    link.assert_equal()


def test_a_batch_over_the_destinations_limit_is_split(make_link: MakeLink, topic_name: str) -> None:
    """Also where the plan does not know the limit, so that the destination has to say it."""
    limit = 20_000
    known, unknown = f"{topic_name}.known", f"{topic_name}.unknown"
    link = make_link(topics={known: 2, unknown: 2}, policy=TopicPolicy(max_message_bytes=limit))
    link.make_topics(destination_configs={"max.message.bytes": str(limit)})
    for topic in link.topics:
        produce(link, topic, 1_000, size=1_000, **{"linger.ms": 100, "batch.size": 200_000})
    link.publish([known])
    link.start_slot()
    eventually(lambda: ends(link.destination, known, 2) == [500, 500], what=lambda: f"split: {link.log()}")
    link.policy = TopicPolicy()
    link.publish()
    link.until_copied()
    link.assert_equal()


def test_a_record_too_large_halts_its_partition_until_the_policy_changes(make_link: MakeLink, topic_name: str) -> None:
    limit = 20_000
    link = make_link(topics={topic_name: 2}, policy=TopicPolicy(max_message_bytes=limit))
    link.make_topics(destination_configs={"max.message.bytes": str(limit)})
    large_value = random.Random(1).randbytes(50_000)
    append(link, topic_name, ([record(b"before"), record(large_value), record(b"behind")], 0))
    produce(link, topic_name, 10)
    link.publish()
    link.start_slot()
    row = link.until_waiting(topic_name, 0, Reason.BATCH_TOO_LARGE)
    assert "offset 1 " in row.detail
    eventually(lambda: ends(link.destination, topic_name, 2) == [1, 5], what="all before it, and the other partition")
    link.policy = TopicPolicy(max_message_bytes=limit, on_refused="quarantine")
    link.publish()
    link.until_copied(12)
    written, copied = read_all(link.source, topic_name, 2), read_all(link.destination, topic_name, 2)
    (large,) = quarantined(link)
    assert (large.key, large.value) == (b"key", large_value)
    del written[0][1]
    assert [one[1:] for partition in copied for one in partition] == [
        one[1:] for partition in written for one in partition
    ]
    headers = dict(large.headers)
    assert large.headers[:2] == (("ü", b"1"), ("", None))
    assert (headers["strait.topic"], headers["strait.partition"], headers["strait.offset"]) == (
        topic_name.encode(),
        b"0",
        b"1",
    )
    assert headers["strait.timestamp_ms"] == b"1700000000000"
    assert headers["strait.reason"] == str(Reason.BATCH_TOO_LARGE).encode()


@pytest.mark.parametrize("codec", [0, LZ4])
def test_a_timestamp_that_the_destination_refuses_takes_only_its_own_record_out(
    make_link: MakeLink, topic_name: str, codec: int
) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics(
        source_configs={"message.timestamp.after.max.ms": str(1 << 62)},
        destination_configs={"message.timestamp.after.max.ms": "3600000"},
    )
    now_ms = int(time.time() * 1000)
    good = [record(b"%d" % number, now_ms) for number in range(10)]
    records = [record(b"%d" % number, now_ms + 10**9 * (number == 60)) for number in range(100)]
    append(link, topic_name, (good, 0), (records, codec), (good, 0))
    link.publish()
    link.start_slot()
    row = link.until_waiting(topic_name, 0, Reason.BATCH_REFUSED)
    assert "offset 70" in row.detail
    assert ends(link.destination, topic_name, 1) == [70]
    link.policy = TopicPolicy(on_refused="quarantine")
    link.publish()
    link.until_copied(119)
    written, copied = read_all(link.source, topic_name, 1)[0], read_all(link.destination, topic_name, 1)[0]
    assert [one.value for one in quarantined(link)] == [written.pop(70).value]
    assert [one[1:] for one in copied] == [one[1:] for one in written]


def test_what_the_sources_clock_stamped_arrives_as_the_records_own_time(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 2}, policy=TopicPolicy(source_append_time=True))
    link.make_topics(source_configs={"message.timestamp.type": "LogAppendTime"})
    for codec in CODECS:
        produce(link, topic_name, 500, **{"compression.type": codec, "linger.ms": 20})
        produce(link, topic_name, 50, **{"compression.type": codec, "batch.num.messages": 1})
    link.publish()
    link.start_slot()
    link.until_copied()
    link.assert_same_records()


def test_a_destination_that_stamps_its_own_time_keeps_nothing_of_ours(make_link: MakeLink, topic_name: str) -> None:
    """A broker with LogAppendTime overwrites the time of every batch, whatever the batch says of it: all else is
    equal."""
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(destination_append_time=True))
    link.make_topics(destination_configs={"message.timestamp.type": "LogAppendTime"})
    produce(link, topic_name, 100)
    since_ms = int(time.time() * 1000)
    link.publish()
    link.start_slot()
    link.until_copied()
    written, copied = read_all(link.source, topic_name, 1)[0], read_all(link.destination, topic_name, 1)[0]
    assert [one[:-1] for one in copied] == [one[:-1] for one in written]
    assert all(kind == TIMESTAMP_LOG_APPEND_TIME and at >= since_ms for *_, (kind, at) in copied)


def test_a_log_that_starts_inside_a_batch_is_copied_from_there(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(on_loss="continue"))
    link.make_topics()
    ten = [record(b"%d" % number) for number in range(10)]
    append(link, topic_name, (ten, LZ4), (ten, LZ4))
    admin = AdminClient(link.source.client_properties)
    for future in admin.delete_records([TopicPartition(topic_name, 0, 5)]).values():
        future.result()
    link.publish()
    link.start_slot()
    link.until_copied(15)
    link.assert_same_records()
    assert [record.value for record in read_all(link.destination, topic_name, 1)[0]][:6] == [
        *(b"%d" % number for number in range(5, 10)),
        b"0",
    ]
