"""A link that copies, by one slot in the test's own process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strait.control.plane import Control
from strait.engine.evaluation import Evaluators
from strait.engine.slot import run_slot


@contextmanager
def copying(control: Control, folder: Path, evaluators: Evaluators | None = None) -> Iterator[None]:
    """A slot in this process, for as long as the block. ``evaluators``: of transformed topics."""
    spec = control.spec(control.apply().plan, ledger_dir=folder / "ledger", checkpoint_dir=folder / "checkpoint")
    stop = threading.Event()
    slot = threading.Thread(target=run_slot, args=(spec, 0, "by hand", stop.is_set), kwargs={"evaluators": evaluators})
    slot.start()
    try:
        yield
    finally:
        stop.set()
        slot.join(60)
        assert not slot.is_alive()
