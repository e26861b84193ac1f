"""Old message formats and today's brokers: they take none from a client, and serve what lies on their disks as it lies
there.

Kafka 4 dropped writing and down-conversion of message formats v0 and v1 (KIP-724), not reading. So segments that were
written before an upgrade, and that retention or compaction has not removed since, come in a fetch reply as message
sets.
"""

from pathlib import Path

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.wire.batch import split_batches
from strait.wire.legacy import read_legacy
from strait.wire.records import Record, read_records
from support.fixtures.waiting import eventually
from support.kafka.raw import RawClient
from support.kafka.records import read_all

pytestmark = pytest.mark.broker

BASE_MS = 1_600_000_000_000
NONE, GZIP, SNAPPY, LZ4 = range(4)
FORMATS = [(0, NONE), (0, GZIP), (0, SNAPPY), (1, NONE), (1, GZIP), (1, SNAPPY), (1, LZ4)]
EACH = 10
INVALID_RECORD = 87


def old_segment() -> tuple[bytes, list[Record]]:
    """A log as brokers before 0.11 wrote it, and what readers see in it."""
    segment = bytearray()
    records: list[Record] = []
    for magic, codec in FORMATS:
        builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
        start = len(records)
        for number in range(EACH):
            relative = number if magic and codec else start + number
            key, value = (b"key %d" % number, b"value " * number) if number else (None, None)
            builder.append(relative, BASE_MS + number, key, value)
            records.append(Record(start + number, BASE_MS + number if magic else -1, key, value, ()))
        entries = bytearray(builder.build())
        if codec:  # the wrapper has the offset of its last message
            entries[0:8] = (start + EACH - 1).to_bytes(8, "big")
        segment += entries
    return bytes(segment), records


def test_a_broker_serves_the_old_formats_that_lie_on_its_disk(tmp_path: Path, topic_name: str) -> None:
    segment, records = old_segment()
    with Cluster(tmp_path / "cluster") as cluster:
        Admin(cluster.client_properties, "it").create([NewTopic(topic_name, 1, 1, {"retention.ms": "-1"})])
        cluster.stop_broker(1)
        (folder,) = (tmp_path / "cluster").glob(f"**/{topic_name}-0")
        for path in folder.glob("0*"):
            path.unlink()
        (folder / "leader-epoch-checkpoint").unlink(missing_ok=True)
        (folder / f"{0:020}.log").write_bytes(segment)
        cluster.start_broker(1)
        producer = Producer(cluster.client_properties)
        producer.produce(topic_name, b"of today", timestamp=BASE_MS)
        assert producer.flush(60) == 0
        with RawClient(cluster) as raw:
            topic_id = raw.topic_id(topic_name)
            found: list[Record] = []
            magics: set[int] = set()

            def all_came() -> bool:
                position = found[-1].offset + 1 if found else 0
                for batch in split_batches(raw.fetch_one(topic_id, 0, position).records):
                    magics.add(batch.magic)
                    found.extend(read_records(batch) if batch.magic == 2 else read_legacy(batch.view))
                return len(found) > len(records)

            eventually(all_came, what="the whole log is fetched")
            assert magics == {0, 1, 2}
            assert found[:-1] == records
            seen = read_all(cluster, topic_name, 1)[0]
            assert [(each.offset, each.key, each.value) for each in seen] == [(r.offset, r.key, r.value) for r in found]
            builder = LegacyRecordBatchBuilder(1, NONE, 1 << 30)
            builder.append(0, BASE_MS, b"key", b"value")
            assert raw.append(topic_id, 0, bytearray(builder.build())).error == INVALID_RECORD
