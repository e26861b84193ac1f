"""Rows are written until their mark is in the topic, and always to the same file."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Message

from strait.config.app_spec import AppSpec
from strait.errors import NotAuthorized, StraitError
from strait.spark import ledger
from strait.state.codec import encode
from strait.state.ledger_records import LedgerMark, LedgerPart
from strait.state.sink import OnAck

SPEC = AppSpec(
    link="l", group="default", source_name="a", source={}, destination_name="b", destination={}, slots=1,
    slot_memory_bytes=1, ledger_seconds=100, ledger_dir="", checkpoint_dir="",
)  # fmt: skip
PART = LedgerPart(link="l", group="default", slot=0, application="app", started_at_ms=0, ended_at_ms=1, entries=())


class Topic:
    """The ledger topic; ``outcomes``: how the writes of marks end, as far as there are any."""

    def __init__(self) -> None:
        self.parts = 0
        self.marks: list[int] = []
        self.outcomes: list[StraitError | None] = []

    def read(self, *_: Any, first: int) -> Iterator[Message]:
        key, value = encode(PART)
        for offset in range(first, self.parts):
            yield Message(topic="t", partition=0, offset=offset, key=key, value=value, timestamp=(1, 0))

    def write_ledger(self, mark: LedgerMark, on_ack: OnAck) -> None:
        self.marks.append(mark.below)
        if self.outcomes:
            on_ack(self.outcomes.pop(0))

    def flush(self, _: float) -> None: ...


def test_rows_whose_mark_is_not_acknowledged_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    topic, written = Topic(), list[tuple[int, int]]()
    monkeypatch.setattr(ledger, "read_topic", topic.read)
    monkeypatch.setattr(ledger, "StateWriter", lambda *_: topic)
    kept = ledger.Ledger(None, SPEC, "app", "")  # type: ignore[arg-type]
    kept.files.append = lambda _, parts, number: written.append((number, len(parts)))  # type: ignore[method-assign]
    topic.parts = 2
    assert not kept.look()
    topic.parts, topic.outcomes = 3, [NotAuthorized("b", "no"), None, None]
    assert not kept.look()
    assert kept.look()
    assert written == [(0, 2), (0, 3), (0, 3)], "the same file each time"
    topic.parts = 5
    assert kept.look()
    assert (written[3:], topic.marks) == ([(3, 2)], [2, 3, 3, 5])
