"""Records, markers and what a fetch says besides, held against what Kafka's ordinary clients write and read on real
brokers."""

import random
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.wire import batch as batches
from strait.wire import fetch
from strait.wire.records import Record, build_batch, read_records
from support.kafka.raw import RawClient
from support.kafka.records import read_all

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_MS = 1_700_000_000_000
OUT_OF_RANGE = 1


def make_topic(cluster: Cluster, topic: str, **configs: str) -> None:
    keep = {"retention.ms": "-1"} | {name.replace("_", "."): value for name, value in configs.items()}
    Admin(cluster.client_properties, "it").create([NewTopic(topic, 1, 1, keep)])


def write(cluster: Cluster, topic: str, records: int, **settings: Any) -> None:
    """Records of every awkward shape, from Kafka's ordinary client."""
    rng = random.Random(topic)
    producer = Producer(cluster.client_properties | {"linger.ms": 20} | settings)
    for number in range(records):
        producer.produce(
            topic,
            value=rng.choice([None, b"", rng.randbytes(rng.randrange(2000)), b"x" * rng.randrange(5000)]),
            key=rng.choice([None, b"", f"key {number}".encode()]),
            headers=rng.choice([None, [("a", b"1"), ("a", b"2"), ("ü", None)], [("empty", b"")]]),
            timestamp=rng.choice([0, BASE_MS + number]),
        )
        producer.poll(0)
    assert producer.flush(60) == 0


def fetched_batches(raw: RawClient, topic_id: bytes, *, isolation: int = fetch.READ_UNCOMMITTED) -> list[batches.Batch]:
    found: list[batches.Batch] = []
    while True:
        part = raw.fetch_one(topic_id, 0, found[-1].next_offset if found else 0, isolation=isolation)
        more = list(batches.split_batches(part.records))
        if not more:
            return found
        found += more


def as_read(cluster: Cluster, topic: str) -> list[Record]:
    """What Kafka's ordinary client reads."""
    (records,) = read_all(cluster, topic, 1)
    return [Record(each.offset, each.timestamp[1], each.key, each.value, each.headers) for each in records]


@pytest.mark.core
@pytest.mark.parametrize("stamped_by", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_as_the_ordinary_client_reads_them(
    cluster: Cluster, raw: RawClient, topic_name: str, codec: str, stamped_by: str
) -> None:
    make_topic(cluster, topic_name, message_timestamp_type=stamped_by)
    write(cluster, topic_name, 1000, **{"compression.type": codec})
    write(cluster, topic_name, 20, **{"compression.type": codec, "batch.num.messages": 1})
    found = fetched_batches(raw, raw.topic_id(topic_name))
    used = {batch.attributes & batches.CODEC_MASK for batch in found}
    assert CODECS.index(codec) in used and used <= {
        0,
        CODECS.index(codec),
    }  # 0: what compression would not make smaller
    assert [record for batch in found for record in read_records(batch)] == as_read(cluster, topic_name)


@pytest.mark.core
@pytest.mark.parametrize("codec", CODECS)
def test_the_ordinary_client_reads_what_was_built(
    cluster: Cluster, raw: RawClient, topic_name: str, codec: str
) -> None:
    """And the broker keeps it byte for byte: it finds nothing to put right."""
    make_topic(cluster, topic_name)
    rng = random.Random(codec)
    records = [
        Record(
            number,
            rng.choice([-1, 0, BASE_MS, BASE_MS + number]),
            rng.choice([None, b"", b"key %d" % number]),
            rng.choice([None, b"", rng.randbytes(rng.randrange(300)), b"x" * rng.randrange(3000)]),
            rng.choice([(), (("a", b"1"), ("a", None)), (("ü", b""),)]),
        )
        for number in range(2000)
    ]
    topic_id, sent = raw.topic_id(topic_name), []
    for start in range(0, len(records), 100):
        built = build_batch(records[start : start + 100], CODECS.index(codec))
        produced = raw.append(topic_id, 0, built)
        assert (produced.error, produced.base_offset) == (0, start), produced.message
        sent.append(built)
    kept = fetched_batches(raw, topic_id)
    assert [bytes(batch.view[16:]) for batch in kept] == [bytes(built[16:]) for built in sent]
    assert [record for batch in kept for record in read_records(batch)] == records
    assert as_read(cluster, topic_name) == records


@pytest.mark.parametrize("codec", [0, 3])
def test_header_keys_that_are_not_text_survive(cluster: Cluster, raw: RawClient, topic_name: str, codec: int) -> None:
    """Brokers keep any bytes, and clients in C may write them."""
    make_topic(cluster, topic_name)
    names = [b"\xff", b"\xed\xa0\x80", "ü".encode(), b""]
    headers = tuple((name.decode(errors="surrogateescape"), b"%d" % n) for n, name in enumerate(names))
    records = [Record(n, BASE_MS, b"k", b"v", headers) for n in range(3)]
    topic_id = raw.topic_id(topic_name)
    assert raw.append(topic_id, 0, build_batch(records, codec)).error == 0
    (batch,) = fetched_batches(raw, topic_id)
    assert read_records(batch) == records


def test_transactions_show_as_markers_and_as_a_list_of_those_aborted(
    cluster: Cluster, raw: RawClient, topic_name: str
) -> None:
    make_topic(cluster, topic_name)
    producer = Producer(cluster.client_properties | {"transactional.id": topic_name})
    producer.init_transactions(60)
    for number, end in enumerate(("commit", "abort", "abort", "commit")):
        producer.begin_transaction()
        producer.produce(topic_name, f"{number} {end}")
        producer.flush(30)
        (producer.commit_transaction if end == "commit" else producer.abort_transaction)(60)
    topic_id = raw.topic_id(topic_name)
    everything = fetched_batches(raw, topic_id)
    assert [bool(batch.attributes & batches.CONTROL) for batch in everything] == [False, True] * 4
    part = raw.fetch_one(topic_id, 0, 0, isolation=fetch.READ_COMMITTED)
    assert part.aborted == ((everything[0].producer_id, 2), (everything[0].producer_id, 4))
    assert raw.fetch_one(topic_id, 0, 0).aborted == ()


def test_a_history_that_is_not_the_brokers_shows(cluster: Cluster, raw: RawClient, topic_name: str) -> None:
    make_topic(cluster, topic_name)
    write(cluster, topic_name, 10)
    topic_id = raw.topic_id(topic_name)
    epoch = fetched_batches(raw, topic_id)[0].leader_epoch

    def outcome(offset: int, last_epoch: int) -> tuple[int, tuple[int, int] | None]:
        _, _, (part,) = raw.fetch_many([(topic_id, [fetch.FetchPosition(0, -1, offset, 1 << 20, last_epoch)])])
        return part.error, part.diverging

    assert outcome(10, epoch) == (0, None)
    assert outcome(15, epoch) == (0, (epoch, 10))  # the log is shorter than what was read in this epoch
    assert outcome(15, -1) == (OUT_OF_RANGE, None)
    assert outcome(10, epoch + 1) == (OUT_OF_RANGE, None)  # an epoch that this log never had
