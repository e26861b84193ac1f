"""What the engine needs of a place that keeps what must outlive it; `strait.state.writer` is one."""

from typing import Protocol

from strait.state.quarantine_records import QuarantinedRecord
from strait.state.schema import Loss, OffsetMapping
from strait.state.writer import OnAck

__all__ = ["OnAck", "StateSink"]


class StateSink(Protocol):
    """``on_ack`` gets None once it is safe, or why it was not written."""

    def write_run(self, run: OffsetMapping, on_ack: OnAck | None = None) -> None: ...

    def forget_run(self, run: OffsetMapping) -> None: ...

    def write_loss(self, loss: Loss, on_ack: OnAck | None = None) -> None: ...

    def write_quarantined(self, quarantined: QuarantinedRecord, on_ack: OnAck) -> None: ...
