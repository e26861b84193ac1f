"""A broker that ends by itself ends a scenario of `make endurance`, with what it said last."""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from endurance.brokers import Ends, watched
from strait.errors import MeasurementError
from support.fixtures.running import look_at
from support.fixtures.waiting import eventually


@dataclass
class OneBroker:
    """A process that stands for a broker, with the files that a broker has."""

    directory: Path
    process: subprocess.Popen[bytes]

    broker_ids = (1,)

    def log(self, broker: int) -> Path:
        return self.directory / "server.log"

    def pid(self, broker: int) -> int | None:
        return self.process.pid if list(look_at([psutil.Process(self.process.pid)])) else None

    def end(self) -> None:
        """Let it exit with 3, and stay a zombie."""
        self.process.stdin.close()
        eventually(lambda: self.pid(1) is None, what="it has ended")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OneBroker]:
    (tmp_path / "process.json").touch()
    (tmp_path / "jvm.out").write_text("Terminating due to java.lang.OutOfMemoryError: Java heap space\n")
    with subprocess.Popen(["sh", "-c", "read line; exit 3"], stdin=subprocess.PIPE) as process:
        yield OneBroker(tmp_path, process)


def test_how_it_ended_and_its_last_lines_are_told_at_once(broker: OneBroker) -> None:
    @watched(broker)
    def scenario() -> None:
        broker.end()
        time.sleep(300)

    with pytest.raises(MeasurementError) as error:
        scenario()
    assert "broker 1" in str(error.value)
    assert "exit code 3" in str(error.value)
    assert "OutOfMemoryError" in str(error.value)


def test_one_that_is_stopped_is_not(broker: OneBroker) -> None:
    ends = Ends(broker)
    assert not ends.look()
    broker.end()
    assert not ends.look(), "whoever stops it is not done yet"
    record = broker.directory / "process.json"
    record.unlink()
    assert not ends.look()
    record.touch()
    assert not ends.look()
    assert ends.look()
