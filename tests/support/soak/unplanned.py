"""``make soak ARGS="--failovers 20 --unplanned"``: sources of three brokers are lost, some while their topics are led by
a replica that is alone, some for a partition that is paused or behind; what each report says is compared with what the
clients of that cluster know."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from strait.control import pausing
from strait.control.failover import failover
from strait.control.failover.turn import Settings
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, ConfigChange
from strait.planning.plan.pauses import Scope
from strait.state.failover_records import Failover
from support.fixtures.clusters import running
from support.fixtures.waiting import eventually
from support.kafka.administration import in_sync, put_on
from support.kafka.groups import committed
from support.kafka.records import read_all
from support.links.mesh import Mesh
from support.links.synchronized import synchronized

_LINK = ("a", "b")
_PARTITIONS = 3
_BROKERS = (1, 2, 3)
_TROUBLES = ("nothing", "slot killed", "partition paused", "followers lost before", "slow")
_SLOW = {"budget": {"bytes_per_second": 20_000}}

Say = Callable[[str], None]


@dataclass
class Known:
    """What the clients of the source know. Guarded by its lock.

    Attributes:
        written: (partition, offset) -> key, and when the source acknowledged it, in milliseconds since 1970.
        commits: (group, partition) -> every offset that was committed.
    """

    written: dict[tuple[int, int], tuple[bytes, int]] = field(default_factory=dict)
    commits: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(self, error: Any, message: Message) -> None:
        if error is None:
            with self.lock:
                place = message.partition() or 0, message.offset() or 0
                self.written[place] = bytes(message.key() or b""), time.time_ns() // 1_000_000


@contextmanager
def _at_work(cluster: Cluster, topic: str, groups: list[str], known: Known) -> Iterator[threading.Event]:
    """A producer, and a consumer of each group, until the event is set or their cluster is lost."""
    over = threading.Event()
    quiet = cluster.client_properties | {"log_level": 0, "socket.connection.setup.timeout.ms": 2_000}

    def write() -> None:
        producer = Producer(quiet | {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": 120_000})
        number = 0
        while not over.is_set():
            producer.produce(topic, b"x" * 200, b"%d" % number, number % _PARTITIONS, on_delivery=known.acknowledged)
            number += 1
            producer.poll(0.002)
        producer.purge()
        producer.flush(5)

    def consume(group: str, every: float) -> None:
        consumer = Consumer(quiet | {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        at: dict[int, int] = {}
        commit_at = time.monotonic() + every
        while not over.is_set():
            for message in consumer.consume(50, timeout=0.1):
                if message.error() is None:
                    at[message.partition() or 0] = (message.offset() or 0) + 1
            if at and time.monotonic() >= commit_at:
                commit_at = time.monotonic() + every
                with known.lock:  # before it is: a commit may be kept though its answer is lost
                    for partition, offset in at.items():
                        known.commits.setdefault((group, partition), set()).add(offset)
                try:
                    consumer.commit(offsets=[Place(topic, *item) for item in at.items()], asynchronous=False)
                except KafkaException:
                    continue

    works: list[Callable[[], None]] = [write]
    works += [lambda group=group, n=n: consume(group, 0.3 * n) for n, group in enumerate(groups, 1)]  # type: ignore[misc]
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield over
    finally:
        over.set()
        for thread in threads:  # a commit that nobody answers returns late
            thread.join(5)


def unplanned_rounds(folder: Path, count: int, seed: int, say: Say) -> int:
    """Returns the number of records that were missing in all. Fails where a report names fewer than are missing, or a
    group continues elsewhere than where it once was."""
    say(f"seed {seed}, {count} unplanned failovers")
    rng, began = random.Random(seed), time.monotonic()
    source, destination = Cluster(folder / "a", len(_BROKERS)), Cluster(folder / "b")
    lost = 0
    with running(source, destination):
        for number in range(1, count + 1):
            trouble = rng.choice(_TROUBLES)
            lost += _round({"a": source, "b": destination}, folder, number, trouble, rng, say)
            for broker in _BROKERS:
                source.start_broker(broker)
    say(
        f"{count} unplanned failovers in {time.monotonic() - began:.0f} s, {lost} records missing, all named; seed {seed}"
    )
    return lost


def _round(clusters: dict[str, Cluster], folder: Path, number: int, trouble: str, rng: random.Random, say: Say) -> int:
    topic, source = f"soak.unplanned.{number:08d}", clusters["a"]
    groups = [f"{topic}.group{each}" for each in range(3)]
    mesh = Mesh(
        clusters=clusters,
        links=[_LINK],
        topic=topic,
        folder=folder,
        rule={},
        topics=_SLOW if trouble == "slow" else {},
        partitions=_PARTITIONS,
        settings={"consumer_groups": {"include": [f"{topic}.*"], "interval_seconds": 1}},
    )
    mesh.make_topics()
    alone = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    assert not Admin(source.client_properties, "a").alter_each({topic: ConfigChange(alone)}).failures
    put_on(source, topic, _BROKERS, _PARTITIONS)
    known = Known()
    try:
        mesh.start(_LINK)
        with synchronized(mesh), _at_work(source, topic, groups, known) as over:
            mesh.until_ready(_LINK)
            eventually(lambda: all((group, 0) in known.commits for group in groups), what="all groups are at work")
            time.sleep(rng.uniform(2.0, 5.0))
            _trouble(mesh, trouble)
            time.sleep(rng.uniform(0.0, 3.0))
            for broker in rng.sample(_BROKERS, len(_BROKERS)):
                if source.pid(broker) is not None:
                    source.kill(broker)
            over.set()
            record = failover.run(mesh.handle(_LINK), "unplanned", Settings(by="soak"), lambda _: None)
    finally:
        mesh.stop()
    assert record.outcome == "done", record
    missing = _all_that_is_missing_is_told(record, known, clusters["b"], topic)
    _groups_continue_where_they_were(record, known, clusters["b"], topic, groups)
    told = "unknown" if record.rpo_records is None else str(record.rpo_records)
    say(
        f"round {number}: {trouble}; {len(known.written)} written, {missing} missing; told: {told} offsets, at most "
        f"{record.rpo_seconds} s"
    )
    if trouble == "followers lost before":
        for broker in (2, 3, 1):  # one that knows less than the source had acknowledged leads
            source.start_broker(broker)
    return missing


def _trouble(mesh: Mesh, trouble: str) -> None:
    if trouble == "slot killed":
        mesh.kill(_LINK)
    elif trouble == "partition paused":
        pausing.pause(mesh.handle(_LINK), Scope(mesh.topic, 1), by="soak", reason="")
    elif trouble == "followers lost before":
        source = mesh.clusters["a"]
        for broker in (2, 3):
            source.kill(broker)
        alone = [{1}] * _PARTITIONS
        eventually(lambda: in_sync(source, mesh.topic) == alone, what="the last replica is alone")


def _all_that_is_missing_is_told(record: Failover, known: Known, destination: Cluster, topic: str) -> int:
    """Each record that the source had acknowledged and the destination has not got is named, or of a topic of which it
    is not known, or younger than the report says."""
    held = [{record.key for record in log} for log in read_all(destination, topic, _PARTITIONS)]
    missing = {
        (partition, offset): at_ms
        for (partition, offset), (key, at_ms) in known.written.items()
        if key not in held[partition]
    }
    (of_topic,) = record.topics
    stopped_ms = next(step.began_at_ms for step in record.steps if step.name == "stop")
    for (partition, offset), at_ms in missing.items():
        named = any(
            item.partition == partition and item.from_offset <= offset < item.to_offset for item in record.missing
        )
        bound = of_topic.seconds
        young = bound is None or at_ms >= stopped_ms - bound * 1000
        assert named or young, f"{topic}-{partition} {offset}, of {stopped_ms - at_ms} ms before the stop: {record}"
    if of_topic.not_copied:
        assert record.rpo_records is None, record
    return len(missing)


def _groups_continue_where_they_were(
    record: Failover, known: Known, destination: Cluster, topic: str, groups: list[str]
) -> None:
    """Each at an offset that it had committed on the source, or, if that is told, before one whose records have not all
    come: logs have no gaps, so their offsets are the same."""
    named = {item.group: item for item in record.group_list}
    for group in groups:
        for partition, offset in committed(destination, group, topic).items():
            commits = known.commits.get((group, partition), set())
            said = named[group]
            told = said.continues == "unknown" or (said.continues == "elsewhere" and "ahead" in said.why)
            assert offset == 0 or offset in commits or (told and offset < max(commits)), (
                f"{group} continues at {offset} of {topic}-{partition}, where it never was: {record}"
            )
