"""Can a destination topic have its source's offsets, on brokers that are not modified?

Three methods are tried on a real broker: filler records that are deleted again, for a history that starts above offset
0; empty transactions and markers written directly, for offsets that hold no record of the source; and aborted
transactions of filler records, for longer gaps. Each row of the table was observed or measured. ADR 19 decides.

    python benchmarks/same_offsets.py [--release 2.8.2-zookeeper] [--history 10000000] [--gaps 300] [--restarts 8]

Appends a table to results-same-offsets.md.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka import errors
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import append_table
from strait.embedded.kafka import Cluster
from strait.errors import SetupError
from strait.kafka.admin import Admin, NewTopic
from strait.net.addresses import parse_addresses
from strait.net.handshake import Connection, dial
from strait.net.producer_id import allocate_producer_id
from strait.net.security import Security
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from strait.wire.batch import CRC_FROM, HEADER_BYTES, TRANSACTIONAL, parse, restamp, seal
from strait.wire.compression import GZIP, LZ4, NONE, ZSTD
from strait.wire.records import Record, build_batch
from support.fixtures.waiting import eventually
from support.kafka.administration import elect_preferred, in_sync, leaders
from support.kafka.releases import NEWEST, RELEASES, Release
from support.kafka.topics import create, produce
from support.links.engine_link import EngineLink

RESULTS = Path(__file__).parent / "results-same-offsets.md"
LATEST, EARLIEST = -1, -2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
BY_NAME = (9, 12)  # of Produce: topics by name
CLIENTS_OWN = (3, 3)  # of AddPartitionsToTxn: later versions are between brokers
SEQUENCES = 1 << 31
FEW = 20
MANY_PARTITIONS = 100
MARKERS_IN_A_REQUEST = 1000
EPOCHS = 32_000  # of a producer, which are of 16 bits
PATIENCE_SECONDS = 60.0
CHECKPOINT_SECONDS = 75
SESSION_SECONDS = 6  # of a broker, with ZooKeeper
CODECS = {NONE: "none", GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}
RELEASES_BY_NAME = {release.name: release for release in RELEASES}
PASSING = {
    "ConcurrentTransactionsError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "NotCoordinatorError",
    "NotLeaderForPartitionError",
    "LeaderNotAvailableError",
    "UnknownTopicOrPartitionError",
}
NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._NOENT)  # noqa: SLF001 - its public name of that code
Rows = list[tuple[str, str]]
"""What was tried, and what was found."""


class Broker:
    """Requests to the only broker of a cluster, one at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        (address,) = parse_addresses("it", cluster.bootstrap)
        security = Security("it", cluster.client_properties)
        self.connection: Connection = dial("it", address, security, timeout_seconds=PATIENCE_SECONDS)

    def producer_id(self) -> int:
        """As a link's: of no transaction."""
        return allocate_producer_id(self.cluster.client_properties, "it")

    def append(self, topic: str, batch: bytes | bytearray, transactional_id: str | None = None) -> tuple[str, int]:
        """Error and base offset of one batch for partition 0."""
        topic_class = ProduceRequest.TopicProduceData
        data = topic_class.PartitionProduceData(index=0, records=bytes(batch))
        request = ProduceRequest(
            version=self.connection.version(0, *BY_NAME),
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[topic_class(name=topic, partition_data=[data])],
        )
        answer = self.connection.ask(request, ProduceResponse).responses[0].partition_responses[0]
        return name(answer.error_code), int(answer.base_offset)

    def fence(self, transactional_id: str, timeout_ms: int = 60_000) -> tuple[int, int]:
        """Producer id and epoch; ends what a predecessor had begun, and returns when that is written."""
        find = FindCoordinatorRequest(version=3, key=transactional_id, key_type=1)  # makes Kafka's topic for them, too
        self._settled(lambda: self.connection.ask(find, FindCoordinatorResponse), lambda it: it.error_code)
        request = InitProducerIdRequest(
            version=self.connection.version(22, 2, 4),
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        answer = self._settled(lambda: self.connection.ask(request, InitProducerIdResponse), lambda it: it.error_code)
        return int(answer.producer_id), int(answer.producer_epoch)

    def add(self, transactional_id: str, producer: tuple[int, int], topic: str, partitions: int = 1) -> str:
        """Add partitions to a transaction. The error."""
        request = AddPartitionsToTxnRequest(
            version=self.connection.version(24, *CLIENTS_OWN),
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(range(partitions)))
            ],
        )
        answer = self._settled(
            lambda: self.connection.ask(request, AddPartitionsToTxnResponse),
            lambda it: it.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )
        return name(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def end(self, transactional_id: str, producer: tuple[int, int], version: int, *, commit: bool) -> tuple[int, int]:
        """End a transaction. The producer for the next one: from version 5 on its epoch is another."""
        request = EndTxnRequest(
            version=version,
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        answer = self._settled(lambda: self.connection.ask(request, EndTxnResponse), lambda it: it.error_code)
        require(answer.error_code == 0, f"EndTxn: {name(answer.error_code)}")
        return (int(answer.producer_id), int(answer.producer_epoch)) if version >= 5 else producer

    def mark(self, topic: str, producer_id: int, epochs: Sequence[int]) -> list[str]:
        """Write markers without a transaction, one for each epoch, by one request. The errors, where there are more
        markers only the last one's: the reply has one for each producer."""
        version = self.connection.version(27, 1, 2)
        marker_class = WriteTxnMarkersRequest.WritableTxnMarker
        topics = [marker_class.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])]
        strict = {"transaction_version": 2} if version >= 2 else {}
        markers = [
            marker_class(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=True,
                topics=topics,
                coordinator_epoch=0,
                **strict,
            )
            for epoch in epochs
        ]
        answer = self.connection.ask(WriteTxnMarkersRequest(version=version, markers=markers), WriteTxnMarkersResponse)
        return [name(it.topics[0].partitions[0].error_code) for it in answer.markers]

    def offset(self, topic: str, at: int = LATEST, isolation: int = READ_UNCOMMITTED, partition: int = 0) -> int:
        """Where a partition begins or ends."""
        topic_class = ListOffsetsRequest.ListOffsetsTopic
        asked = topic_class.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=at)
        request = ListOffsetsRequest(
            version=self.connection.version(2, 6, 7),
            replica_id=-1,
            isolation_level=isolation,
            topics=[topic_class(name=topic, partitions=[asked])],
        )
        answer = self._settled(
            lambda: self.connection.ask(request, ListOffsetsResponse), lambda it: it.topics[0].partitions[0].error_code
        )
        found = answer.topics[0].partitions[0]
        require(found.error_code == 0, f"ListOffsets: {name(found.error_code)}")
        return int(found.offset)

    def until_end(self, topic: str, end: int, partition: int = 0) -> None:
        """EndTxn returns before the markers are written."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.offset(topic, partition=partition) < end:
            require(time.monotonic() < deadline, f"{topic} does not come to {end}")

    def _settled(self, ask: Callable[[], Any], code: Callable[[Any], int]) -> Any:
        """A broker asks for patience while it ends the transaction before, or becomes a leader or coordinator."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = ask()
            if name(code(answer)) not in PASSING:
                return answer
            require(time.monotonic() < deadline, name(code(answer)))
            time.sleep(0.001)


def name(code: int) -> str:
    """Of an error of Kafka's, as kafka-python has it; "taken" where there is none."""
    return str(errors.for_code(code).__name__) if code else "taken"


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def records(count: int) -> list[Record]:
    """Fillers: without key and value, and young, so that no broker drops the state of their producer."""
    return [Record(0, int(time.time() * 1000), None, None, ())] * count


def stamped(batch: bytearray, producer_id: int, sequence: int) -> bytearray:
    """The batch as the link's own."""
    restamp(parse(memoryview(batch)), producer_id, sequence % SEQUENCES)
    return batch


def as_transactional(batch: bytearray, producer: tuple[int, int], sequence: int) -> bytearray:
    """The batch as part of this producer's transaction."""
    batch[CRC_FROM : CRC_FROM + 2] = (batch[CRC_FROM + 1] | TRANSACTIONAL).to_bytes(2)
    batch[43:57] = producer[0].to_bytes(8) + producer[1].to_bytes(2) + sequence.to_bytes(4)
    seal(batch)
    return batch


def read(cluster: Cluster, topic: str, isolation: str) -> list[int]:
    """The offsets that an ordinary consumer sees, from the first to the end."""
    settings = {"group.id": "it", "isolation.level": isolation, "enable.partition.eof": True, "log_level": 0}
    consumer = Consumer(cluster.client_properties | settings | {"auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    try:
        while True:
            message = consumer.poll(PATIENCE_SECONDS)
            require(message is not None, f"{topic}: nothing came")
            if message.error() is not None:
                return found
            found.append(message.offset())
    finally:
        consumer.close()


def lying(broker: Broker) -> Rows:
    """A batch that spans more offsets than it has records."""
    topic = "lying"
    create_and_wait(broker, topic)
    rows: Rows = []
    for codec, called in CODECS.items():
        answers = []
        for claimed in (1, 1000):
            batch = build_batch(records(1), codec)
            batch[CRC_FROM + 2 : CRC_FROM + 6] = (999).to_bytes(4)  # last offset delta
            batch[HEADER_BYTES - 4 : HEADER_BYTES] = claimed.to_bytes(4)
            seal(batch)
            answers.append(broker.append(topic, batch)[0])
        rows.append((f"one record, {called}, at 1,000 offsets; claimed count 1, 1,000", ", ".join(answers)))
    require(broker.offset(topic) == 0, "a batch that lies was taken")
    return rows


def history(broker: Broker, offsets: int) -> Rows:
    """A log that begins at ``offsets``, and its first record there."""
    rows: Rows = []
    link = broker.producer_id()
    for size, total in ((1_000, offsets // 10), (10_000, offsets), (100_000, offsets), (1_000_000, offsets)):
        topic = f"history-{size}"
        create_and_wait(broker, topic)
        batch = build_batch(records(size), ZSTD)
        begun = time.monotonic()
        for at in range(0, total, size):
            answer = broker.append(topic, stamped(batch, link, at))
            require(answer == ("taken", at), f"fillers at {at}: {answer}")
        seconds = time.monotonic() - begun
        figures = f"{total / seconds / 1e6:.2f} million offsets/s, {len(batch) / size:.2f} bytes each"
        rows.append((f"fillers, {size:,} in a batch", figures))
    topic = "history-100000"
    repeated = broker.append(topic, stamped(build_batch(records(100_000), ZSTD), link, offsets - 100_000))
    rows.append(("the last batch of fillers sent again", f"{repeated[0]}, end {broker.offset(topic):,}"))
    early = broker.append(topic, stamped(build_batch(records(100_000), ZSTD), link, offsets + 100_000))
    rows.append(("a batch of fillers that leaves one out", f"{early[0]}, end {broker.offset(topic):,}"))
    begun = time.monotonic()
    delete_records(broker.cluster, topic, offsets)
    seconds = time.monotonic() - begun
    begins, ends = broker.offset(topic, EARLIEST), broker.offset(topic)
    rows.append(("DeleteRecords", f"{seconds * 1000:.0f} ms; log from {begins:,} to {ends:,}"))
    early = broker.append(topic, stamped(build_batch(records(5), LZ4), link, offsets + 5))
    rows.append(("a batch of the link after it that leaves one out", early[0]))
    first = broker.append(topic, stamped(build_batch(records(5), LZ4), link, offsets))
    rows.append(("the link's first batch after it", f"{first[0]} at {first[1]:,}"))
    rows.append(("a consumer from the beginning", f"reads offsets {read(broker.cluster, topic, 'read_committed')}"))
    create_and_wait(broker, "compacted", cleanup_policy="compact")
    try:
        delete_records(broker.cluster, "compacted", 0)
    except KafkaException as error:
        rows.append(("DeleteRecords on a compacted topic", str(error).split('"')[1]))
    return rows


def transactions(broker: Broker, gaps: int, version: int) -> Rows:
    """Empty transactions, each for an offset without a record, between batches of the link."""
    topic, identity = f"transactions-{version}", f"filler-{version}"
    create_and_wait(broker, topic)
    link = broker.producer_id()
    producer = broker.fence(identity)
    times, end = [], 0
    for number in range(gaps):
        answer = broker.append(topic, stamped(build_batch(records(1), NONE), link, number))
        require(answer == ("taken", end), f"record {number} at {end}: {answer}")
        begun = time.monotonic()
        require(broker.add(identity, producer, topic) == "taken", "AddPartitionsToTxn")
        producer = broker.end(identity, producer, version, commit=True)
        broker.until_end(topic, end + 2)
        times.append(time.monotonic() - begun)
        end += 2
    seen = [read(broker.cluster, topic, isolation) for isolation in ("read_uncommitted", "read_committed")]
    require(seen[0] == seen[1] == list(range(0, end, 2)), "a consumer sees something else")
    called = f"empty transaction, EndTxn {version}"
    rows = [
        (f"{called}: offsets it takes; seen by consumers", "1; never"),
        (f"{called}: until its marker is written", milliseconds(times)),
    ]
    many = f"partitions-{version}"
    create_and_wait(broker, many, partitions=MANY_PARTITIONS)
    times = []
    for number in range(FEW):
        begun = time.monotonic()
        require(broker.add(identity, producer, many, MANY_PARTITIONS) == "taken", "AddPartitionsToTxn")
        producer = broker.end(identity, producer, version, commit=True)
        for partition in range(MANY_PARTITIONS):
            broker.until_end(many, number + 1, partition)
        times.append(time.monotonic() - begun)
    return [*rows, (f"{called}: of {MANY_PARTITIONS} partitions at once", milliseconds(times))]


def open_ones(broker: Broker) -> Rows:
    """What an instance leaves behind that dies in the middle of an empty transaction."""
    topic = "open"
    create_and_wait(broker, topic)
    link = broker.producer_id()
    old = broker.fence("open")
    broker.add("open", old, topic)
    broker.append(topic, stamped(build_batch(records(3), NONE), link, 0))
    stable, end = broker.offset(topic, isolation=READ_COMMITTED), broker.offset(topic)
    rows = [("while it is open, after 3 records of the link", f"last stable offset {stable}, end {end}")]
    broker.fence("open")
    stable, end = broker.offset(topic, isolation=READ_COMMITTED), broker.offset(topic)
    rows.append(("a successor fences it (InitProducerId)", f"its marker is written before the answer: end {end}"))
    rows.append(("the fenced one goes on", broker.add("open", old, topic)))
    timing = broker.fence("late", timeout_ms=1000)
    broker.add("late", timing, topic)
    begun = time.monotonic()
    broker.until_end(topic, end + 1)
    rows.append(("none comes: its time-out of 1 s", f"a marker all the same, after {time.monotonic() - begun:.0f} s"))
    return rows


def markers(broker: Broker, gaps: int) -> Rows:
    """Markers without a transaction (WriteTxnMarkers), which take the right to alter the cluster."""
    topic = "markers"
    create_and_wait(broker, topic)
    link, filler = (broker.producer_id() for _ in range(2))
    times, end = [], 0
    for number in range(gaps):
        answer = broker.append(topic, stamped(build_batch(records(1), NONE), link, number))
        require(answer == ("taken", end), f"record {number} at {end}: {answer}")
        begun = time.monotonic()
        require(broker.mark(topic, filler, [number]) == ["taken"], "WriteTxnMarkers")
        times.append(time.monotonic() - begun)
        end += 2
        require(broker.offset(topic) == end, "it was not one offset")
    rows = [("marker without a transaction", f"1 offset, {milliseconds(times)}")]
    again, end = broker.mark(topic, filler, [gaps - 1])[0], broker.offset(topic) - end
    rows.append(("the same marker sent again", f"{again}, {end} offset more"))
    rows.append(("a marker of an earlier epoch", broker.mark(topic, filler, [0])[0]))
    before, size = broker.offset(topic), log_bytes(broker.cluster, topic)
    begun = time.monotonic()
    requests = EPOCHS // MARKERS_IN_A_REQUEST
    for first in range(1000, 1000 + (requests - 1) * MARKERS_IN_A_REQUEST, MARKERS_IN_A_REQUEST):
        broker.mark(topic, filler, range(first, first + MARKERS_IN_A_REQUEST))
    seconds, written = time.monotonic() - begun, broker.offset(topic) - before
    rows.append(
        (
            f"{MARKERS_IN_A_REQUEST:,} markers in a request, for longer gaps",
            f"{written / seconds:,.0f} offsets/s, {(log_bytes(broker.cluster, topic) - size) / written:.0f} bytes each",
        )
    )
    seen = read(broker.cluster, topic, "read_uncommitted")
    require(seen == list(range(0, 2 * gaps, 2)), "a consumer sees something else")
    rows.append(("the same, to consumers", "never seen"))
    return rows


def aborted(broker: Broker) -> Rows:
    """A gap of 10 offsets: 9 fillers in a transaction that is aborted, and its marker."""
    topic = "aborted"
    create_and_wait(broker, topic)
    producer = broker.fence("aborted")
    broker.add("aborted", producer, topic)
    batch = as_transactional(build_batch(records(9), NONE), producer, 0)
    answer = broker.append(topic, batch, "aborted")
    require(answer == ("taken", 0), f"fillers: {answer}")
    stable = broker.offset(topic, isolation=READ_COMMITTED)
    broker.end("aborted", producer, 3, commit=False)
    broker.until_end(topic, 10)
    link = broker.producer_id()
    broker.append(topic, stamped(build_batch(records(1), NONE), link, 0))
    seen = {
        isolation: len(read(broker.cluster, topic, isolation)) for isolation in ("read_committed", "read_uncommitted")
    }
    shown = ", ".join(f"{isolation} {count}" for isolation, count in seen.items())
    return [
        ("9 aborted fillers, marker, 1 record: consumers read", shown),
        ("last stable offset before the abort", f"{stable}"),
    ]


def written_twice(cluster: Cluster, times: int) -> Rows:
    """End the broker as soon as a marker is on its log: does the coordinator write it again?"""
    rows: Rows = []
    for called, end in (("killed", cluster.kill), ("stopped", cluster.stop_broker)):
        topic, more = called, 0
        create_and_wait(Broker(cluster), topic)
        for number in range(times):
            broker, identity = Broker(cluster), f"{called}-{number}"
            producer, before = broker.fence(identity), broker.offset(topic)
            broker.add(identity, producer, topic)
            broker.end(identity, producer, 3, commit=True)
            broker.until_end(topic, before + 1)
            end(1)
            start(cluster, 1)
            broker = Broker(cluster)
            broker.fence(identity)  # answers when nothing of it is under way any more
            more += broker.offset(topic) - before - 1
        rows.append((f"{times} empty transactions, broker {called} at each marker: markers too many", f"{more}"))
    return rows


def restarted(cluster: Cluster) -> Rows:
    """A broker persists where its logs begin once a minute (`log.flush.start.offset.checkpoint.interval.ms`)."""
    rows: Rows = []
    for wait_seconds in (0, CHECKPOINT_SECONDS):
        topic, offsets = f"restarted-{wait_seconds}", 1000
        create_and_wait(Broker(cluster), topic)
        produce(cluster, topic, offsets)
        delete_records(cluster, topic, offsets)
        time.sleep(wait_seconds)
        cluster.kill(1)
        start(cluster, 1)
        begins = Broker(cluster).offset(topic, EARLIEST)
        rows.append((f"1,000 offsets, broker killed {wait_seconds} s after DeleteRecords", f"log from {begins:,}"))
    return rows


def replicas(release: Release, folder: Path) -> Rows:
    """The same where two other brokers know where the log begins."""
    topic, offsets, rows = "three", 1000, []
    with Cluster(folder / "three", 3, version=release.version, zookeeper=release.zookeeper) as cluster:
        Admin(cluster.client_properties, "it").create([NewTopic(topic, 1, 3, {"retention.ms": "-1"})])
        produce(cluster, topic, offsets)
        delete_records(cluster, topic, offsets)
        (leader,) = leaders(cluster, topic)
        cluster.kill(leader)
        eventually(lambda: leaders(cluster, topic)[0] not in (leader, -1), what="another leader")
        rows.append(("the leader of 3 replicas killed at once", f"log from {first_offset(cluster, topic):,}"))
        start(cluster, leader)
        eventually(lambda: len(in_sync(cluster, topic)[0]) == 3, what="all in sync")
        elect_preferred(cluster, topic)
        eventually(lambda: leaders(cluster, topic) == [leader], what="the first leader")
        rows.append(("the same broker, leader again", f"log from {first_offset(cluster, topic):,}"))
    return rows


def first_offset(cluster: Cluster, topic: str) -> int:
    place = TopicPartition(topic, 0)
    client = AdminClient(cluster.client_properties)
    return int(client.list_offsets({place: OffsetSpec.earliest()}, request_timeout=30)[place].result().offset)


def links(cluster: Cluster, folder: Path) -> Rows:
    """What a link makes of a marker between its records today."""
    rows: Rows = []
    with Cluster(folder / "source") as source:
        for policy in ("halt", "continue"):
            topic = f"link-{policy}"
            link = EngineLink(topic, source, cluster, folder, {topic: 1}, policy=TopicPolicy(on_foreign=policy))
            link.make_topics()
            link.publish()
            link.start_slot()
            try:
                produce(source, topic, 5)
                link.until_copied()
                broker = Broker(cluster)
                producer = broker.fence(topic)
                broker.add(topic, producer, topic)
                broker.end(topic, producer, 3, commit=True)
                broker.until_end(topic, 6)
                produce(source, topic, 5)
                if policy == "halt":
                    said = link.until_waiting(topic, 0, Reason.FOREIGN_WRITER).detail or ""
                    rows.append((f"marker in a link's topic, on_foreign {policy}", f"foreign_writer: {said}"))
                else:
                    link.until_copied(11)
                    found = read(cluster, topic, "read_committed")
                    rows.append((f"marker in a link's topic, on_foreign {policy}", f"goes on: {found}"))
            finally:
                link.stop()
    return rows


def start(cluster: Cluster, broker: int) -> None:
    try:
        cluster.start_broker(broker)
    except SetupError:  # ZooKeeper still has its former session
        time.sleep(SESSION_SECONDS)
        cluster.start_broker(broker)


def create_and_wait(broker: Broker, topic: str, partitions: int = 1, **configs: str) -> None:
    create(broker.cluster, topic, partitions, retention_ms="-1", **configs)
    for partition in range(partitions):
        broker.until_end(topic, 0, partition)


def delete_records(cluster: Cluster, topic: str, before: int) -> None:
    place = TopicPartition(topic, 0, before)
    client = AdminClient(cluster.client_properties)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            client.delete_records([place])[place].result(60)
        except KafkaException as error:  # a broker that has just started leads nothing yet
            if error.args[0].code() not in NO_LEADER or time.monotonic() > deadline:
                raise
        else:
            return


def log_bytes(cluster: Cluster, topic: str) -> int:
    return sum(file.stat().st_size for file in cluster.directory.glob(f"*/data/{topic}-0/*.log"))


def milliseconds(times: Sequence[float]) -> str:
    inside = sorted(1000 * each for each in times)
    return f"median {statistics.median(inside):.1f} ms, 90th percentile {inside[len(inside) * 9 // 10]:.1f} ms"


SECTIONS: dict[str, Callable[[Broker, argparse.Namespace], Rows]] = {
    "lying": lambda broker, _: lying(broker),
    "history": lambda broker, asked: history(broker, asked.history),
    "transactions": lambda broker, asked: transactions(broker, asked.gaps, 3),
    "epochs": lambda broker, asked: transactions(broker, asked.gaps, 5) if serves(broker, 26, 5) else [],
    "open": lambda broker, _: open_ones(broker),
    "markers": lambda broker, asked: markers(broker, asked.gaps),
    "aborted": lambda broker, _: aborted(broker),
    "restarted": lambda broker, _: restarted(broker.cluster),
    "links": lambda broker, _: links(broker.cluster, broker.cluster.directory.parent),
    "replicas": lambda broker, asked: replicas(RELEASES_BY_NAME[asked.release], broker.cluster.directory.parent),
    "twice": lambda broker, asked: written_twice(broker.cluster, asked.restarts),
}


def serves(broker: Broker, api_key: int, version: int) -> bool:
    return broker.connection.versions[api_key][1] >= version


def main() -> None:
    parser = argparse.ArgumentParser(description="Can a copy have its source's offsets on plain Kafka?")
    parser.add_argument("--release", choices=RELEASES_BY_NAME, default=NEWEST.name)
    parser.add_argument("--history", type=int, default=10_000_000, help="the offset at which the source begins")
    parser.add_argument("--gaps", type=int, default=300)
    parser.add_argument("--restarts", type=int, default=8)
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=[*SECTIONS])
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    release = RELEASES_BY_NAME[asked.release]
    load, rows = os.getloadavg()[0], []
    with (
        tempfile.TemporaryDirectory(prefix="strait-offsets-") as directory,
        Cluster(
            Path(directory) / "destination", heap_mib=1024, version=release.version, zookeeper=release.zookeeper
        ) as cluster,
    ):
        for section in asked.only:
            for what, found in SECTIONS[section](Broker(cluster), asked):
                rows.append(f"| {what} | {found} |")
                print(rows[-1], flush=True)
    if not asked.no_record:
        measured = f"Kafka {release.name}, one broker; load average before {load:.2f}."
        append_table(RESULTS, measured, ("on the destination", "found"), rows)


if __name__ == "__main__":
    main()
