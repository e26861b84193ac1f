"""What does a partition cost in a slot?

The real partitions, fetcher and reports, with brokers that answer at once; CPU on one core.

    python benchmarks/slot_size.py [--partitions 10000]

Appends a row to results-slot-size.md.
"""

import argparse
import gc
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import add_row
from strait.engine.partition.partition import Partition
from strait.engine.partition.report import report_of
from strait.net.buffers import Buffer, BufferPool
from strait.wire.fetch import Fetched
from strait.wire.primitives import encode_uvarint
from support.model.fetching import NO_TOPICS, Source, caught_up, fetcher

RESULTS = Path(__file__).parent / "results-slot-size.md"
INTRODUCTION = (
    "# What a partition costs in a slot\n\nMade by `slot_size.py`: CPU on one core. A round is one fetch request and its "
    "reply. `MOST_PARTITIONS_PER_SLOT` follows from it."
)
HEAD = (
    "partitions",
    "memory",
    "round without news",
    "round with news of one",
    "a batch, of 200 in a round",
    "round when all have news",
    "report rows of all",
)
BATCH_BYTES = 100
MANY = 200


class Taking:
    """Stands in for the stamper: what came is copied."""

    def take(self, partition: Partition, item: Fetched, _: Buffer, *, tailing: bool) -> bool:
        offset = partition.cursor.offset + 1
        partition.cursor.stamped(1, offset, offset, 0)
        return not tailing or bool(item.records)


def reply(news: int, offset: int) -> bytes:
    """A reply with a batch of each of the first partitions."""
    if not news:
        return bytes(NO_TOPICS)
    parts = [NO_TOPICS[:-2], encode_uvarint(2), encode_uvarint(2), b"t", encode_uvarint(news + 1)]
    for number in range(news):
        parts.append(struct.pack(">ihqqq", number, 0, offset, offset, 0) + b"\1" + struct.pack(">i", -1))
        parts += [encode_uvarint(BATCH_BYTES + 1), bytes(BATCH_BYTES), b"\0"]
    return b"".join([*parts, b"\0\0"])


def microseconds(action: Callable[[int], object], times: int) -> float:
    """CPU of one call, on average."""
    began = time.process_time()
    for turn in range(times):
        action(turn)
    return (time.process_time() - began) / times * 1e6


class Broker(Source):  # type: ignore[misc]
    """Does not read what it is asked for: that would be its own CPU."""

    def send(self, *_: object, on_reply: Callable[[Buffer], None], **__: object) -> None:
        self.open.append(on_reply)


class Rounds:
    """A fetcher and its broker."""

    def __init__(self, partitions: list[Partition]) -> None:
        self._source, self._frames = Broker(), BufferPool(1 << 30)
        self._fetcher = fetcher(self._source, partitions, stamper=Taking())
        self._offset = 0
        for _ in range(3):
            self.turn(0)

    def turn(self, news: int) -> None:
        self._offset += 1
        self._fetcher.ask()
        self._source.open.pop()(self._frames.adopt(bytearray(reply(news, self._offset))))


def memory_of(partitions: int) -> int:
    """Bytes, fetcher and all."""
    tracemalloc.start()
    _ = Rounds(caught_up(partitions))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    count: int = parser.parse_args().partitions
    memory = memory_of(count)
    partitions = caught_up(count)
    rounds = Rounds(partitions)
    gc.collect()
    gc.freeze()  # as a slot does
    row = (
        f"{count:,}",
        f"{memory / 1e6:.0f} MB",
        f"{microseconds(lambda _: rounds.turn(0), 300):.0f} µs",
        f"{microseconds(lambda _: rounds.turn(1), 300):.0f} µs",
        f"{microseconds(lambda _: rounds.turn(MANY), 50) / MANY:.1f} µs",
        f"{microseconds(lambda _: rounds.turn(count), 5) / 1e3:.0f} ms",
        f"{microseconds(lambda _: [report_of(one, 0) for one in partitions], 5) / 1e3:.0f} ms",
    )
    add_row(RESULTS, INTRODUCTION, HEAD, row)


if __name__ == "__main__":
    main()
