"""Whose turn it is to send under a quota, while a partition of old records is looked up."""

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strait.engine.destination_quota import DestinationQuota
from strait.engine.partition.partition import Partition
from strait.engine.sender import Sender
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from support.model.partitions import batch_of, placed


@pytest.fixture
def loop() -> Iterator[Loop]:
    with closing(Loop()) as loop:
        yield loop


class Line:
    """A sender over the only connection to a broker; by ``throttled`` it has a quota, whose pause is over. Partition 0 is to
    be looked up before it sends, and ``may_continue`` as soon as it is."""

    def __init__(self, loop: Loop, *, throttled: bool, may_continue: bool) -> None:
        self.requests = 0
        self.looks = {0}
        quota = DestinationQuota()
        if throttled:
            quota.answered(1 << 30, 1, loop.now - 30.0)
        channel = SimpleNamespace(unsent_bytes=0, version=lambda _, versions: versions[1], send=self._take)
        self.sender = Sender(
            loop,
            cast(ClusterClient, SimpleNamespace(channel=lambda *_: channel)),
            1,
            quota=quota,
            looks_first=lambda partition: partition.number in self.looks,
            may_continue=lambda _: may_continue,
            on_result=cast(Any, None),
            on_lost=cast(Any, None),
        )

    def _take(self, *_: Any, **__: Any) -> None:
        self.requests += 1


def with_a_batch(number: int) -> Partition:
    partition = placed(5, number=number)
    partition.queue.route(1)
    partition.queue.append(batch_of(partition, 0))
    return partition


@pytest.mark.parametrize(("throttled", "may_continue"), [(False, True), (True, True), (True, False)])
def test_others_wait_only_for_a_lookup_after_which_the_partition_may_send_at_once(
    loop: Loop, throttled: bool, may_continue: bool
) -> None:
    line = Line(loop, throttled=throttled, may_continue=may_continue)
    looked_up, other = with_a_batch(0), with_a_batch(1)
    for partition in (looked_up, other):
        line.sender.schedule(partition)
    line.sender.send()
    waits = throttled and may_continue
    assert len(other.queue.batches) == waits
    line.looks.clear()
    line.sender.schedule(looked_up)
    line.sender.send()
    assert not looked_up.queue.batches
    assert not other.queue.batches
    assert line.requests == (1 if waits else 2)
