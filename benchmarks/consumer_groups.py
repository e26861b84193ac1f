"""How long do consumer groups take, for very many of them?

Groups commit an offset of each partition of a replicated topic on the source. Then all of them are looked at, all are
committed on the destination, and looked at again, when nothing changes.

    python benchmarks/consumer_groups.py [--groups 5000] [--partitions 100]

Appends a row to results-consumer-groups.md.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import add_row
from strait.config.links import parse
from strait.consumer_groups.sync import RETENTION_MS, GroupSync
from strait.embedded.kafka import Cluster
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, ConsumerGroups
from strait.state.link_handle import ConfiguredLink
from support.links.engine_link import EngineLink
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "results-consumer-groups.md"
INTRODUCTION = (
    "# Consumer groups\n\nMade by `consumer_groups.py`: seconds until all groups of a link were looked at, were "
    "committed on the destination, and were looked at again. One broker on each side, on the same machine. Bounds for "
    "5,000 groups of 100 partitions: 30 s, and 2 s when nothing changes."
)
HEAD = ("groups", "partitions", "look", "commit", "nothing new", "CPU of the last")
RECORDS = 10
T = TypeVar("T")


def replicated(source: Cluster, destination: Cluster, folder: Path, partitions: int) -> EngineLink:
    link = EngineLink("groups", source, destination, folder, {"orders": partitions})
    link.make_topics()
    producer = Producer(source.client_properties | {"linger.ms": 20})
    for number in range(partitions * RECORDS):
        producer.produce("orders", b"%d" % number, partition=number % partitions)
    if left := producer.flush(120):
        raise TimeoutError(f"{left} records were not taken")
    link.publish()
    link.start_slot()
    link.until_copied()
    link.until_seen()
    return link


def commit_on_source(source: Cluster, groups: int, partitions: int) -> None:
    offsets = {TopicPartition("orders", number): Committed(number % RECORDS, "") for number in range(partitions)}
    with ConsumerGroups(source.client_properties, "a") as there:
        there.commit({f"group-{number:05}": offsets for number in range(groups)}, RETENTION_MS)


def timed(call: Callable[[], T]) -> tuple[T, float]:
    begun = time.monotonic()
    answer = call()
    return answer, time.monotonic() - begun


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=5000)
    parser.add_argument("--partitions", type=int, default=100)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        Cluster(Path(name) / "source") as source,
        Cluster(Path(name) / "destination") as destination,
    ):
        link = replicated(source, destination, Path(name), asked.partitions)
        try:
            commit_on_source(source, asked.groups, asked.partitions)
            clusters = ConfiguredLink.of(parse(link.settings, where="links file"), link.name)
            _, look = timed(GroupSync(clusters).status)
            with GroupSync(clusters) as sync:  # as the application does: it remembers
                found, commit = timed(sync.sync)
                if len(found) != asked.groups or not all(status.synced for status in found):
                    raise AssertionError("not all groups were committed")
                sync.sync()  # sees that what it has committed is there
                cpu = time.process_time()
                _, again = timed(sync.sync)
                cpu = time.process_time() - cpu
        finally:
            link.stop()
    row = (f"{asked.groups:,}", f"{asked.partitions:,}", *(f"{each:.1f} s" for each in (look, commit, again, cpu)))
    add_row(RESULTS, INTRODUCTION, HEAD, row)


if __name__ == "__main__":
    main()
