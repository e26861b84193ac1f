"""Where the engine writes down what must outlive it; `strait.state.writer` is one."""

from typing import Protocol

from strait.state.quarantine_records import SetAside
from strait.state.schema import Loss, Run
from strait.state.writer import OnAck

__all__ = ["Notebook", "OnAck"]


class Notebook(Protocol):
    """``on_ack`` gets None once it is safe, or why it was not written."""

    def write_run(self, run: Run, on_ack: OnAck | None = None) -> None: ...

    def forget_run(self, run: Run) -> None: ...

    def write_loss(self, loss: Loss, on_ack: OnAck | None = None) -> None: ...

    def write_aside(self, aside: SetAside, on_ack: OnAck) -> None: ...
