"""Asks a destination broker where partitions stand: end offsets, then producer states, then if need be the log's tail."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse

from strait.engine import recovery
from strait.engine.channel import Channel
from strait.engine.offsets import LATEST, Offsets, ask_offsets
from strait.engine.partition import Partition, Phase
from strait.engine.reading import read_at
from strait.offset_map import wire_sequence
from strait.state.schema import Run
from strait.wire import batch as batches
from strait.wire import fetch

_DESCRIBE_PRODUCERS_API_KEY = 61
_SCAN_BYTES = 4 << 20
_OFFSET_OUT_OF_RANGE = 1

Outcome = recovery.Found | recovery.Refused
OnFailed = Callable[[Partition, int, str], None]


class Lookup:
    """One round for some partitions led by one broker. Each of them ends in ``on_outcome`` or ``on_failed``, once.

    ``on_failed(partition, error code or 0, cause)``. A partition doubted again or retired meanwhile is left out.
    """

    def __init__(
        self,
        channel: Channel,
        producer_id: int,
        partitions: Iterable[Partition],
        runs: Callable[[Partition], Sequence[Run]],
        *,
        on_outcome: Callable[[Partition, Outcome], None],
        on_failed: OnFailed,
    ) -> None:
        self._channel = channel
        self._producer_id = producer_id
        self._partitions = {(p.destination, p.number): p for p in partitions}
        self._runs = runs
        self._generations = {p: p.generation for p in self._partitions.values()}
        self._on_outcome = on_outcome
        self._on_failed = on_failed
        self._ends: dict[Partition, int] = {}

    def start(self) -> None:
        """The end offsets first: whatever of ours lies before them is then in the producer states asked for after."""
        for partition in self._partitions.values():
            partition.phase = Phase.LOOKING
        ask_offsets(self._channel, self._partitions, LATEST, on_offsets=self._take_ends, on_lost=self._lost)

    def _take_ends(self, offsets: Offsets) -> None:
        for (topic, number), (error, offset) in offsets.items():
            partition = self._partitions[topic, number]
            if error:
                self._fail(partition, error, "its end offset")
            else:
                self._ends[partition] = offset
        low, high = self._channel.served(_DESCRIBE_PRODUCERS_API_KEY)
        if low <= 0 <= high:
            self._ask_producers()
        else:  # a broker before 2.8
            for partition, end in self._ends.items():
                self._decide(partition, self._from_leader(partition, end, None))

    def _ask_producers(self) -> None:
        topics: dict[str, list[int]] = defaultdict(list)
        for partition in self._ends:
            topics[partition.destination].append(partition.number)
        request = DescribeProducersRequest(
            version=0,
            topics=[
                DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=numbers)
                for topic, numbers in topics.items()
            ],
        )
        self._channel.ask(request, DescribeProducersResponse, on_reply=self._take_producers, on_lost=self._lost)

    def _take_producers(self, reply: Any) -> None:
        for topic in reply.topics:
            for item in topic.partitions:
                partition = self._partitions[topic.name, item.partition_index]
                if item.error_code:
                    self._fail(partition, item.error_code, "its producers")
                    continue
                ours = [
                    state.last_sequence for state in item.active_producers if state.producer_id == self._producer_id
                ]
                known = ours[0] if ours and ours[0] >= 0 else None
                self._decide(partition, self._from_leader(partition, self._ends[partition], known))

    def _decide(self, partition: Partition, outcome: recovery.Found | recovery.Scan | recovery.Refused) -> None:
        if isinstance(outcome, recovery.Scan):
            self._scan(partition, outcome.down_to, window=1)
        elif self._still_asked(partition):
            self._on_outcome(partition, outcome)

    def _from_leader(
        self, partition: Partition, end: int, last: int | None
    ) -> recovery.Found | recovery.Scan | recovery.Refused:
        return recovery.from_leader(
            self._runs(partition), end, last, strangers_allowed=partition.policy.on_foreign != "halt"
        )

    def _from_tail(self, partition: Partition, end: int, log_start: int, last: int | None) -> Outcome:
        return recovery.from_tail(
            self._runs(partition), end, log_start, last, strangers_allowed=partition.policy.on_foreign != "halt"
        )

    def _scan(self, partition: Partition, down_to: int, window: int) -> None:
        """Read [end - window, end); without a batch of ours in it, twice as far back."""
        end = self._ends[partition]
        start = max(down_to, end - window, 0)
        self._read(partition, start, down_to, window, last=None)

    def _read(self, partition: Partition, offset: int, down_to: int, window: int, last: int | None) -> None:
        read_at(
            self._channel,
            partition.destination,
            partition.destination_id,
            partition.number,
            offset,
            _SCAN_BYTES,
            on_read=lambda code, item: self._take_tail(partition, offset, down_to, window, last, code, item),
            on_lost=lambda cause: self._fail(partition, 0, cause),
        )

    def _take_tail(
        self,
        partition: Partition,
        offset: int,
        down_to: int,
        window: int,
        last: int | None,
        code: int,
        item: fetch.Fetched | None,
    ) -> None:
        end = self._ends[partition]
        if code == _OFFSET_OUT_OF_RANGE and offset == end - 1:  # not even the last record is kept
            self._settle(partition, self._from_tail(partition, end, end, None))
            return
        if code or item is None:
            self._fail(partition, code, "the tail of its log")
            return
        behind = offset
        for batch in batches.split_batches(item.records):
            behind = batch.next_offset
            if batch.producer_id == self._producer_id:
                last = wire_sequence(batch.base_sequence + batch.records - 1)
        if offset < behind < end:
            self._read(partition, behind, down_to, window, last)
        elif last is None and end - window > max(down_to, item.log_start):
            self._scan(partition, max(down_to, item.log_start), window * 16)
        else:
            self._settle(partition, self._from_tail(partition, end, item.log_start, last))

    def _settle(self, partition: Partition, outcome: Outcome) -> None:
        if self._still_asked(partition):
            self._on_outcome(partition, outcome)

    def _fail(self, partition: Partition, code: int, cause: str) -> None:
        if self._still_asked(partition):
            self._on_failed(partition, code, cause)

    def _lost(self, cause: str) -> None:
        for partition in self._partitions.values():
            self._fail(partition, 0, cause)

    def _still_asked(self, partition: Partition) -> bool:
        return (
            partition.phase is Phase.LOOKING
            and partition.generation == self._generations[partition]
            and not partition.retired
        )
