"""What the scripts beside this one share: how fast a topic arrives, and how a run is recorded."""

import datetime
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from mm2.machine import commit
from strait.embedded.kafka import Cluster

_BETWEEN_LOOKS_SECONDS = 0.01


def middle_rate(destination: Cluster, topic: str, partitions: int, records: int) -> float:
    """Records a second from the first tenth of ``records`` to the last; waits until nine tenths are there."""
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    client = AdminClient(destination.client_properties)
    marks: list[tuple[float, int]] = []
    while not marks or marks[-1][1] < records * 9 // 10:
        found = client.list_offsets(asked, request_timeout=30).values()
        marks.append((time.monotonic(), sum(each.result().offset for each in found)))
        time.sleep(_BETWEEN_LOOKS_SECONDS)
    first = next(mark for mark in marks if mark[1] >= records // 10)
    return (marks[-1][1] - first[1]) / (marks[-1][0] - first[0])


def append_table(results: Path, measured: str, head: Sequence[str], rows: Sequence[str]) -> None:
    """Add a run to its file: when, which commit, what was measured, and the table."""
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    columns = f"| {' | '.join(head)} |", f"| --- |{' --: |' * (len(head) - 1)}"
    with results.open("a", encoding="utf-8") as file:
        file.write("\n".join(["", f"## {when} · {commit()}", "", measured, "", *columns, *rows, ""]))


def add_row(results: Path, introduction: str, head: Sequence[str], row: Sequence[str]) -> None:
    """Add a line to a file's only table, and print it; the first line brings the file. A column before all others says
    when."""
    if not results.exists():
        columns = f"| {' | '.join(['date', *head])} |\n|{' --- |' * (len(head) + 1)}\n"
        results.write_text(f"{introduction}\n\n{columns}", encoding="utf-8")
    row = (f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M}", *row)
    with results.open("a", encoding="utf-8") as file:
        file.write(f"| {' | '.join(row)} |\n")
    print(" | ".join(row))
