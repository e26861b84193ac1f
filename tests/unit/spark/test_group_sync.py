"""A standby's thread that looks after consumer groups."""

import threading
from pathlib import Path
from typing import Any

import pytest

from strait.config.app_spec import AppSpec
from strait.errors import ConfigError
from strait.spark import group_sync
from strait.state.presence import Presence

SPEC = AppSpec(
    link="shop", group="default", source_name="a", source={}, destination_name="b", destination={}, standby=True,
    slots=1, slot_memory_bytes=1, ledger_seconds=10, ledger_dir=str(Path("l")), checkpoint_dir=str(Path("c")),
)  # fmt: skip


class Alone:
    """Nobody else is there."""

    def __enter__(self) -> "Alone":
        return self

    def __exit__(self, *_: object) -> None: ...

    def listen(self, _: float) -> None: ...

    def is_gone(self) -> bool:
        return True

    def is_back(self) -> bool:
        return False


def test_a_standby_that_could_not_listen_at_first_takes_over_later(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, works = [], threading.Event()

    def listening(*_: Any) -> Alone:
        tries.append(1)
        if len(tries) == 1:
            raise ConfigError("cluster b", ["`sasl.password` cannot be read: no such file"])
        return Alone()

    monkeypatch.setattr(Presence, "of_group_sync", listening)
    monkeypatch.setattr(group_sync, "_AFTER_TROUBLE_SECONDS", 0.01)
    monkeypatch.setattr(group_sync, "_synchronize", lambda *_: works.set())
    with group_sync.consumer_groups_in_sync(SPEC, "local-1"):
        assert works.wait(10.0)
