"""The interface of durable storage that the engine needs for its state; `strait.state.writer` implements it."""

from typing import Protocol

from strait.state.quarantine_records import QuarantinedRecord
from strait.state.schema import Loss, OffsetMapping
from strait.state.writer import OnAck

__all__ = ["OnAck", "StateSink"]


class StateSink(Protocol):
    """``on_ack`` gets None once the record is durable, or the error if it was not written."""

    def write_run(self, run: OffsetMapping, on_ack: OnAck | None = None) -> None: ...

    def forget_run(self, run: OffsetMapping) -> None: ...

    def write_loss(self, loss: Loss, on_ack: OnAck | None = None) -> None: ...

    def write_quarantined(self, quarantined: QuarantinedRecord, on_ack: OnAck) -> None: ...
