"""Several connections to one broker: who uses which."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strait.config.app_spec import AppSpec
from strait.engine.partition.send_queue import LINES, SLOW_LINE, SLOW_SECONDS
from strait.engine.replicator import Replicator
from strait.engine.slot_metrics import SlotMetrics
from strait.model import topic_id_text
from strait.net.buffers import BufferPool
from strait.net.cluster_client import ClusterClient, Line
from strait.net.event_loop import Loop
from strait.net.handshake import Connection
from strait.state.schema import Plan, PlannedTopic


@pytest.fixture
def cluster() -> Iterator[ClusterClient]:
    loop = Loop()
    found = ClusterClient(loop, BufferPool(1 << 20), "it", {"bootstrap.servers": "broker:1"})
    yield found
    found.close()
    loop.close()


def dialled(cluster: ClusterClient, line: Line) -> socket.socket:
    ours, peer = socket.socketpair()
    cluster._dialled(line, Connection("it", ("broker", 1), ours))
    return peer


def test_each_line_to_a_broker_is_a_connection_of_its_own(cluster: ClusterClient) -> None:
    one, other = dialled(cluster, Line(1)), dialled(cluster, Line(1, 1))
    with one, other:
        first, second = cluster.channel(1), cluster.channel(1, 1)
        assert first is not None
        assert second is not None
        second.close("the test")
        assert (cluster.channel(1), cluster.channel(1, 1)) == (first, None)
        assert (cluster.trouble(1), cluster.trouble(1, 1)) == ("", "the test")


@pytest.fixture
def replicator(tmp_path: Path) -> Iterator[Replicator]:
    brokers = {"bootstrap.servers": "127.0.0.1:1"}
    spec = AppSpec(
        link="l", group="default", source_name="a", source=brokers, destination_name="b", destination=brokers,
        slots=2, slot_memory_bytes=1 << 20, ledger_seconds=60, ledger_dir=str(tmp_path), checkpoint_dir=str(tmp_path),
    )  # fmt: skip
    state = cast(Any, SimpleNamespace(runs={}, map_end=0))
    with closing(Loop()) as loop:
        found = Replicator(loop, spec, 0, 1, state, cast(Any, None), SlotMetrics(spec, 0, "it"))
        yield found
        found.close()


def plan(*slots: int | None) -> Plan:
    one, other = topic_id_text(bytes([1]) * 16), topic_id_text(bytes([2]) * 16)
    topic = PlannedTopic(source="t", destination="t", source_id=one, destination_id=other, slots=slots)
    return Plan(link="l", group="default", version=1, producer_id=1, slots=2, topics=(topic,), published_at_ms=1)


def test_the_partitions_of_a_slot_are_dealt_out_over_the_lines_whatever_their_numbers(replicator: Replicator) -> None:
    replicator.follow(plan(0, 1, 0, 1, 0, 1, 0, 1))
    assert [partition.queue.line for partition in replicator.partitions] == [0, 1, 0, 1]
    assert LINES == 2


def test_a_partition_keeps_to_its_line_when_others_come_and_go(replicator: Replicator) -> None:
    replicator.follow(plan(0, 0, 0, 0))
    kept = replicator.partitions[3]
    replicator.follow(plan(1, 1, 1, 0))
    replicator.follow(plan(0, 0, 1, 0))
    assert replicator.partitions[-1] is kept
    assert kept.queue.line == 1


def test_a_partition_whose_followers_are_slow_holds_up_no_other_for_a_while(replicator: Replicator) -> None:
    """It changes its line only where nothing of it would be overtaken."""
    replicator.follow(plan(0, 0))
    queue = replicator.partitions[1].queue
    queue.followers_are_slow(10.0)
    for state in ({"in_flight": 1, "_waits": False}, {"in_flight": 0, "_waits": True}):
        for name, value in state.items():
            setattr(queue, name, value)
        queue.choose_line(10.0)
        assert queue.line == 1
    queue.in_flight, queue._waits = 0, False
    queue.choose_line(10.0)
    assert queue.line == SLOW_LINE
    queue.in_flight = 1
    queue.choose_line(11.0 + SLOW_SECONDS)
    assert queue.line == SLOW_LINE
    queue.in_flight = 0
    queue.choose_line(11.0 + SLOW_SECONDS)
    assert queue.line == 1
    assert replicator.partitions[0].queue.line == 0
