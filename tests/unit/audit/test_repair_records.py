"""A repair reads each range of a log completely, or raises: unread records are not taken for absent ones."""

import random
import struct
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from strait.config.cluster import Cluster
from strait.control.repair import appending
from strait.control.repair import records as subject
from strait.errors import StateError
from strait.model import TopicPartition
from strait.wire.batch import CONTROL, TRANSACTIONAL, Batch
from strait.wire.records import Record
from support.audited import batch_at, record, resealed
from unit.audit.test_reading import PLACE, Log, some

CLUSTER = Cluster({}, "a")


def read(monkeypatch: pytest.MonkeyPatch, log: Log, first: int, end: int, **options: bool) -> list[int]:
    monkeypatch.setattr(subject, "PartitionLogs", lambda *_: nullcontext(log))
    return [one.offset for one in subject.records(CLUSTER, PLACE, first, end, **options)]


class Shrinking(Log):
    """After the first read, retention deletes the records before ``start``, or the log loses those from ``end`` on."""

    def __init__(self, batches: list[Batch], *, start: int = 0, end: int = 0) -> None:
        super().__init__(batches, most=1)
        self._then = start, end

    def read_raw(self, *args: Any, **options: Any) -> Any:
        part = super().read_raw(*args, **options)
        start, end = self._then
        self.start = start
        self.batches = [one for one in self.batches if not end or one.next_offset <= end]
        return part


def test_records_that_were_deleted_before_they_were_read_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = some()
    start = batches[5].base_offset
    with pytest.raises(StateError, match=f"cluster a: t-0: .* the offsets 0 to {start - 1} were deleted") as error:
        read(monkeypatch, Log(batches[5:], start=start), 0, 400)
    assert "repair again" in error.value.hint
    with pytest.raises(StateError, match=f"to {start - 1} were deleted"):
        read(monkeypatch, Shrinking(batches, start=start), 0, 400)
    assert read(monkeypatch, Log(batches[5:], start=start), start, 400) == list(range(start, 400))


def test_the_first_records_of_an_old_copy_may_expire_and_later_ones_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = some()
    start = batches[5].base_offset
    found = read(monkeypatch, Log(batches[5:], start=start), 0, 400, may_expire=True)
    assert found == list(range(start, 400))
    with pytest.raises(StateError, match=f"to {start - 1} were deleted"):
        read(monkeypatch, Shrinking(batches, start=start), 0, 400, may_expire=True)


def test_a_log_that_ends_before_the_range_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = some()
    assert read(monkeypatch, Log(batches), 0, 400) == list(range(400))
    with pytest.raises(StateError, match="records before offset 500: the log can be read only to offset 400"):
        read(monkeypatch, Log(batches), 0, 500)
    with pytest.raises(StateError, match="records before offset 500: the log can be read only to offset 450"):
        read(monkeypatch, Log(batches), 450, 500)
    end = batches[5].base_offset
    with pytest.raises(StateError, match=f"records before offset 400: the log can be read only to offset {end}"):
        read(monkeypatch, Shrinking(batches, end=end), 0, 400)


def test_offsets_without_a_committed_record_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction removed a batch, a transaction was aborted, and its marker is the last of the range."""
    chance, batches = random.Random(2), some()
    at = batches[-1].next_offset
    aborted = batch_at(at, [record(1, chance)], producer=(55, 0))
    aborted = resealed(aborted, 21, struct.pack(">h", TRANSACTIONAL))
    marker = record(2, chance)._replace(key=b"\0\0\0\0", value=b"\0" * 6, headers=())
    ended = resealed(batch_at(at + 1, [marker], producer=(55, 0)), 21, struct.pack(">h", TRANSACTIONAL | CONTROL))
    log = Log([*batches[:3], *batches[4:], aborted, ended], aborted=[(55, at)])
    found = read(monkeypatch, log, 0, at + 2)
    assert found == [one for one in range(at) if not batches[3].base_offset <= one < batches[3].next_offset]


@pytest.mark.parametrize("broken", ["deleted", "truncated"])
def test_a_key_of_an_unread_stretch_of_the_source_gets_no_tombstone(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """The keys 0 to 9 are on both clusters; the source's records of some cannot be read."""
    batches = [batch_at(number, [Record(0, 5, b"%d" % number, b"v", ())]) for number in range(10)]
    source = Log(batches[4:], start=4) if broken == "deleted" else Log(batches[:6])
    place, copy, written = PLACE, TopicPartition("c.t", 0), list[Any]()
    logs = {"a": source, "b": Log(batches)}
    monkeypatch.setattr(subject, "PartitionLogs", lambda _, cluster: nullcontext(logs[cluster]))
    monkeypatch.setattr(appending, "register_repair", lambda *_: None)
    monkeypatch.setattr(appending, "settled_end", lambda *_: 10)
    monkeypatch.setattr(appending, "places", lambda _: [(SimpleNamespace(skipped_producers=()), place, copy)])
    monkeypatch.setattr(appending, "passed_over", lambda *_: SimpleNamespace(written=(), runs=(), forgotten=()))
    publication = SimpleNamespace(publish=lambda *args: written.extend(args[-1]))
    link: Any = SimpleNamespace(
        name="l",
        source=CLUSTER,
        destination=Cluster({}, "b"),
        admin=lambda _: SimpleNamespace(offsets=lambda places, _: dict.fromkeys(places, 0)),
        state=lambda: nullcontext(SimpleNamespace(plans={})),
        publisher=lambda: SimpleNamespace(exclusive=lambda _: nullcontext(publication)),
    )
    points: Any = {place: SimpleNamespace(offset=10, runs=(), written=10)}
    repair: Any = SimpleNamespace(topic="t")
    with pytest.raises(StateError, match="copying records"):
        appending.append_newest(link, repair, points, lambda _: None)
    assert written == []
    logs["a"] = Log(batches)
    assert appending.append_newest(link, repair, points, lambda _: None) == 0, "run again, it has read all"
