"""Output of `strait run` while it runs: one line of text, or one JSON or YAML document, for each event."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from strait.cli.options import Output
from strait.cli.printing import echo
from strait.model import TopicPartition, spans
from strait.planning.status.figures import UNKNOWN, at_least, per_second
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status, known_total
from strait.planning.status.words import word
from strait.reasons import Reason
from strait.text import data_size, plural
from strait.waiting import unix_ms


class Progress:
    """Prints events as they occur; a reason for waiting once when it appears and once when it ends. ``named``: start
    each line of text with the link's name."""

    def __init__(self, link: str, *, output: Output, named: bool = False) -> None:
        self._link = link
        self._prefix = f"{link}: " if named else ""
        self._output = output
        self._before: Mapping[TopicPartition, int] = {}
        self._waits: dict[tuple[str, str, str], tuple[PartitionStatus, ...]] = {}

    def begin(self, before: Mapping[TopicPartition, int]) -> None:
        """Count from here. ``before``: partition -> records that the link had written; 0 for a missing partition."""
        self._before = before

    def say(self, event: str, text: str, **data: Any) -> None:
        """Print one event: ``text``, or ``data`` in structured output."""
        if self._output.structured:
            self._output.write({"event": event, "link": self._link, "at_ms": unix_ms(), **data})
        else:
            echo(f"{time.strftime('%H:%M:%S')} {self._prefix}{text}")

    def show(self, groups: Sequence[Status]) -> None:
        """Print the progress of all task groups, and the reasons for waiting that have appeared or ended."""
        rows = [row for status in groups for row in status.partitions]
        waiting = tuple(row for status in groups for row in status.waiting)
        self._show_waits(waiting)
        copied, lag = self._copied(rows), known_total((row.lag_records for row in rows), empty=0)
        unknown = sum(row.lag_records < 0 for row in rows)
        rate = known_total(status.records_per_second for status in groups)
        sent = known_total(status.bytes_per_second for status in groups)
        size = UNKNOWN if sent is None else data_size(sent)
        self.say(
            "progress",
            f"{plural(copied, 'record')} copied, {per_second(rate)} records/s, {size}/s, lag {at_least(lag, unknown)}; "
            f"{plural(len(rows) - len(waiting), 'partition')}, {len(waiting)} {word('waiting')}",
            records=copied,
            records_per_second=rate,
            bytes_per_second=sent,
            lag_records=lag,
            lag_unknown=unknown,
            partitions=len(rows),
            waiting=len(waiting),
        )

    def _copied(self, rows: Sequence[PartitionStatus]) -> int:
        found = ((TopicPartition(row.topic, row.partition), row.written) for row in rows if row.partition is not None)
        return sum(max(0, written - self._before.get(where, 0)) for where, written in found)

    def _show_waits(self, waiting: tuple[PartitionStatus, ...]) -> None:
        now: dict[tuple[str, str, str], tuple[PartitionStatus, ...]] = {}
        for row in waiting:
            key = (row.topic, row.reason, row.detail)
            now[key] = (*now.get(key, ()), row)
        for key in self._waits.keys() - now.keys():
            topic, reason, _ = key
            self.say("goes_on", f"{topic}: no longer {reason}", topic=topic, reason=reason)
        for key in now.keys() - self._waits.keys():
            topic, reason, detail = key
            numbers = [TopicPartition(topic, row.partition) for row in now[key] if row.partition is not None]
            remedy = Reason(reason).remedy if reason in set(Reason) else ""
            self.say(
                "waits",
                f"{next(spans(numbers), topic)} waits: {reason}: {detail}. {remedy}",
                topic=topic,
                partitions=[tp.partition for tp in numbers],
                reason=reason,
                detail=detail,
                remedy=remedy,
            )
        self._waits = now
