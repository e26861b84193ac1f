"""Five source brokers with a backlog each, a destination that takes less than they give, and a live partition on each."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from confluent_kafka import Producer

from endurance.backlog import RECORD_BYTES, fill
from endurance.brokers import running
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes
from strait.embedded.kafka import Cluster
from strait.net.handshake import CLIENT_ID
from support.fixtures.waiting import eventually
from support.kafka.administration import put_on, quotas
from support.kafka.log_ends import LogEnds

BROKERS = 5
_LEAST_OF_MEAN = 0.7
_MOST_SECONDS_BEHIND = 1.0
_LOOK_SECONDS = 0.1
_BURST_SECONDS = 22.0
"""Two windows of a quota: a broker lets a burst pass, and then takes nothing for as long as a window."""


def starvation(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """The quota is such that the backlog lasts twice as long as it is observed."""
    source, destination = Cluster(folder / "source", BROKERS), Cluster(folder / "destination")
    backlogs = {f"backlog.{broker}": sizes.partitions for broker in source.broker_ids}
    live = {f"live.{broker}": 1 for broker in source.broker_ids}
    with running(source, destination):
        link = RigLink("shares", source, destination, folder, backlogs | live, slot_memory_bytes=128 << 20)
        link.begin()
        for broker in source.broker_ids:
            put_on(source, f"backlog.{broker}", [broker], sizes.partitions)
            put_on(source, f"live.{broker}", [broker])
        places = [(topic, number) for number in range(sizes.partitions) for topic in backlogs]
        fill(source, places, sizes.megabytes, sizes.seed)
        rate = sizes.megabytes * 1e6 / (2 * sizes.seconds)
        say(f"{sizes.megabytes} MB written; {rate / 1e6:.1f} MB/s are let through")
        with quotas(destination, CLIENT_ID, {"producer_byte_rate": round(rate)}):
            link.run_slot()
            try:
                return _observe(link, backlogs, live, sizes, say)
            finally:
                link.stop()


def _observe(link: RigLink, backlogs: dict[str, int], live: dict[str, int], sizes: Sizes, say: Say) -> list[Finding]:
    with closing(LogEnds(link.destination, backlogs)) as copied, closing(LogEnds(link.destination, live)) as arrived:
        eventually(lambda: sum(copied.now()) > 0, what="copying has begun")
        time.sleep(_BURST_SECONDS)
        behind = dict.fromkeys(live, 0.0)
        with _writing_each_second(link.source, live) as written_at:
            until = time.monotonic() + sizes.seconds
            while time.monotonic() < until:
                now = time.monotonic()
                for topic, end in zip(live, arrived.now(), strict=True):
                    waiting = written_at[topic][end:]
                    behind[topic] = max(behind[topic], now - waiting[0] if waiting else 0.0)
                time.sleep(_LOOK_SECONDS)
            each = copied.now()
    say(f"seconds behind, live partitions: {[round(one, 1) for one in behind.values()]}")
    by_broker = [sum(each[at : at + sizes.partitions]) for at in range(0, len(each), sizes.partitions)]
    mean = sum(by_broker) / len(by_broker)
    say(f"MB copied of each broker: {[round(one * RECORD_BYTES / 1e6, 1) for one in by_broker]}")
    return [
        Finding("copied from all brokers", sum(by_broker) * RECORD_BYTES / 1e6, "MB"),
        Finding("backlog left at the end", sizes.megabytes - sum(by_broker) * RECORD_BYTES / 1e6, "MB", 0.0, True),
        Finding("slowest broker, of the mean", min(by_broker) / max(1.0, mean), "times", _LEAST_OF_MEAN, True),
        Finding("live partitions, most behind", max(behind.values()), "s", _MOST_SECONDS_BEHIND),
    ]


@contextmanager
def _writing_each_second(source: Cluster, live: dict[str, int]) -> Iterator[dict[str, list[float]]]:
    """A small record a second into each topic; when each was acknowledged (monotonic), in the order of their offsets."""
    written_at: dict[str, list[float]] = {topic: [] for topic in live}
    ended = threading.Event()

    def write() -> None:
        producer = Producer(source.client_properties | {"linger.ms": 0})
        while not ended.wait(1.0):
            for topic in live:
                producer.produce(topic, b"live", partition=0)
            producer.flush(30)
            for times in written_at.values():
                times.append(time.monotonic())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield written_at
    finally:
        ended.set()
        thread.join()
