"""The parts of `make bench` against real brokers: what it loads, reads back and times."""

from dataclasses import replace

import pytest
from confluent_kafka import Producer

from mm2 import live_relay, load
from mm2.content import digests
from mm2.copier import running
from mm2.latency import measure_latency, probe
from mm2.relay import measure_relay
from mm2.topics import Topics
from mm2.workloads import PARTITIONS, Drain, Trickle, choose
from strait.errors import MeasurementError
from support.fixtures.waiting import eventually

pytestmark = pytest.mark.broker


def drain(name: str, scale: float) -> Drain:
    workload = choose([name])[0].scaled(scale)
    assert isinstance(workload, Drain)
    return workload


def nothing(_: float) -> None:
    """Progress that nobody looks at."""


@pytest.mark.parametrize(
    ("name", "scale"),
    [("1kib-lz4", 0.02), ("100b-lz4", 0.02), ("1kib-defaults", 0.01), ("100b-defaults", 0.02), ("single", 0.002)],
)
def test_a_loaded_workload_has_the_batches_it_promises(clusters, topic_name, name, scale):
    workload = drain(name, scale)
    Topics("source", clusters.source.client_properties).create(topic_name)
    load.fill(clusters.source.client_properties, topic_name, workload, nothing)
    facts = load.read_batches(clusters.source.directory, topic_name)
    load.check(facts, workload)
    if workload.batch_bytes is None:
        assert facts.batches == workload.records
    else:
        assert facts.mean_batch_bytes == pytest.approx(workload.batch_bytes, rel=0.2)


def test_a_load_that_is_not_the_workload_is_refused(clusters, topic_name):
    workload = drain("1kib-lz4", 0.02)
    Topics("source", clusters.source.client_properties).create(topic_name)
    load.fill(clusters.source.client_properties, topic_name, workload, nothing)
    facts = load.read_batches(clusters.source.directory, topic_name)
    with pytest.raises(MeasurementError, match="records were written"):
        load.check(facts, replace(workload, records=workload.records + 1))
    with pytest.raises(MeasurementError, match="bytes on average"):
        load.check(facts, replace(workload, batch_bytes=workload.batch_bytes * 2))
    with pytest.raises(MeasurementError, match="codecs"):
        load.check(facts, replace(workload, compression="none"))
    with pytest.raises(MeasurementError, match="batches"):
        load.check(facts, replace(workload, batch_bytes=None))


def test_digests_see_a_changed_key_value_time_or_order(clusters, topic_name):
    records = [(b"k1", b"v1", 1000), (b"k2", b"v2", 2000), (None, b"v3", 3000), (b"k4", None, 4000)]
    others = {
        "same": records,
        "key": [(b"K1", *records[0][1:]), *records[1:]],
        "value": [records[0], (b"k2", b"V2", 2000), *records[2:]],
        "time": [*records[:3], (b"k4", None, 4001)],
        "order": [records[1], records[0], *records[2:]],
        "null key": [*records[:2], (b"", b"v3", 3000), records[3]],
        "null value": [*records[:3], (b"k4", b"", 4000)],
    }
    properties = clusters.source.client_properties
    topics = Topics("source", properties)
    producer = Producer(properties)
    found = {}
    for what, content in others.items():
        topic = f"{topic_name}.{what.replace(' ', '-')}"
        topics.create(topic)
        for key, value, timestamp in content:
            producer.produce(topic, value, key, partition=2, timestamp=timestamp)
        assert producer.flush(60) == 0
        found[what] = digests("source", properties, topic, len(content), nothing)
    assert len(found["same"]) == PARTITIONS
    assert len(set(found.values())) == len(others)


def test_the_trickle_is_measured_at_its_pace_without_its_warming_up(clusters, topic_name):
    trickle = Trickle("t", "", records_per_second=200, value_bytes=100, warm_up_seconds=1.0, seconds=2.0)
    properties = clusters.source.client_properties
    Topics("source", properties).create(topic_name)
    probe(properties, topic_name)
    found = measure_latency(properties, topic_name, properties, topic_name, trickle, nothing)
    assert 0 < found.p50_ms <= found.p99_ms <= found.max_ms
    assert 0 < found.records < 600 - 100  # the rest warmed up


@pytest.mark.parametrize("at_once", [1, 2])
def test_relays_move_every_byte_and_cost_something(at_once: int):
    found = measure_relay(10**9, at_once=at_once)
    assert found.bytes == 10**9
    assert found.cpu_seconds_per_gb > 0


def test_the_live_relay_passes_on_what_is_there_and_what_comes(clusters, topic_name, tmp_path):
    source, destination = (
        Topics(name, getattr(clusters, name).client_properties) for name in ("source", "destination")
    )
    command = live_relay.command(tmp_path, clusters.source, clusters.destination, topic_name)
    source.create(topic_name)
    destination.create(command.destination_topic)
    producer = Producer(clusters.source.client_properties | {"linger.ms": "1"})
    with running(command, tmp_path) as relay:
        for written in (1_000, 2_000):
            for number in range(written - 1_000, written):
                producer.produce(topic_name, f"value {number}", f"key {number}", partition=number % PARTITIONS)
            assert producer.flush(60) == 0
            eventually(
                lambda written=written: destination.count(command.destination_topic) >= written,
                what=lambda: f"all are passed on: {relay.last_words()}",
            )
        relay.require_alive()
    copied = digests("destination", clusters.destination.client_properties, command.destination_topic, 2_000, nothing)
    assert copied == digests("source", clusters.source.client_properties, topic_name, 2_000, nothing)
