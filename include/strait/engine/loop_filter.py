"""Prevents replication loops: determines which producers' batches are skipped because a link wrote them (I5).

A link is registered in its destination's `strait.producers` before it writes its first batch. If a producer ID is not
registered when the topic has been read to its end after one of its batches was fetched, it does not belong to a link
and never will. Until that is known, the batch and all following ones of its partition are held back. A cluster never
assigns a producer ID twice, so each is judged once. If the topic does not exist, it may have been deleted, so its
existence is checked again.
"""

import contextlib
import random
from collections.abc import Iterable, Mapping

from strait.engine.partition.partition import Partition
from strait.engine.producer_registry import ProducerRegistry, Unread
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import run
from strait.reasons import Reason
from strait.state.schema import Registration, TopicPolicy

MOST_JUDGED = 100_000
"""Above this number the producer IDs are discarded and judged again; each takes some hundred bytes."""

MISSING_SECONDS = 10.0
"""A topic that did not exist is checked again after this time."""

_NO_PRODUCER = -1


class LoopFilter:
    """Judges the producer IDs of one slot: one read of the registry at a time, for all waiting partitions."""

    def __init__(self, loop: Loop, source: ClusterClient, destination: ClusterClient) -> None:
        self._loop = loop
        self._source = source
        self._destination = destination
        self._registry = ProducerRegistry(loop, source)
        self._skip: dict[int, bool] = {_NO_PRODUCER: False}
        self._forward: dict[int, bool] = {_NO_PRODUCER: False}
        self._asked: set[int] = set()
        self._waiting: set[Partition] = set()
        self._looking = False
        self._comes_again = False
        self._near: Partition | None = None

    def left_out(self, policy: TopicPolicy) -> Mapping[int, bool] | None:
        """Return, for each producer ID, whether its batches are skipped under a policy; None if all are copied."""
        if policy.copies == "all":
            return None
        return self._skip if policy.copies == "skip" else self._forward

    def judge(self, partition: Partition, producer_ids: frozenset[int]) -> None:
        """Determine whether links own these producer IDs. The partition is fetched again once that is known."""
        partition.cursor.hold(self._loop.now)
        self._asked |= producer_ids
        self._waiting.add(partition)
        if not self._looking:
            run(self._look())

    async def _look(self) -> None:
        self._looking = True
        while self._waiting:
            asked, self._asked = self._asked, set()
            waiting, self._waiting = self._waiting, set()
            self._near = next(iter(waiting))
            try:
                await self._read_on(self._near)
                self._learn(asked)
            except Unread as trouble:
                wait = random.uniform(*error_policy.wait_for(trouble.reason))  # noqa: S311
                for partition in waiting:
                    partition.block(trouble.reason, trouble.detail, self._loop.now + wait)
            else:
                for partition in waiting:
                    partition.cursor.release()
        self._looking = False
        if self._registry.missing and not self._comes_again:
            self._comes_again = True
            self._loop.call_later(MISSING_SECONDS, self._look_again)

    async def _read_on(self, near: Partition) -> None:
        await self._registry.read_on(self._source.leader(*near.source_place).node)

    def _look_again(self) -> None:
        self._comes_again = False
        if not self._looking:
            run(self._learn_what_came())

    async def _learn_what_came(self) -> None:
        self._looking = True
        assert self._near is not None  # set by the read before
        with contextlib.suppress(Unread):  # then the next partition that asks waits for it
            await self._read_on(self._near)
            self._learn(())
        await self._look()

    def _learn(self, asked: Iterable[int]) -> None:
        known = self._registry.known
        if known.trouble:
            raise Unread(Reason.PRODUCERS_UNREADABLE, known.trouble)
        if len(self._skip) > MOST_JUDGED:
            for verdicts in (self._skip, self._forward):
                verdicts.clear()
                verdicts[_NO_PRODUCER] = False
        self._skip.update(dict.fromkeys(asked, False))
        self._forward.update(dict.fromkeys(asked, False))
        for registration in known.all():
            self._skip[registration.producer_id] = True
            self._forward[registration.producer_id] = self._came_from_destination(registration)

    def _came_from_destination(self, registration: Registration) -> bool:
        """Return whether the registered link copies from our destination cluster; False within one cluster. There every
        link does, and only topic names show which topic is replicated from which."""
        ends = self._source.cluster_id, self._destination.cluster_id
        return ends[0] != ends[1] and registration.source == ends[1]
