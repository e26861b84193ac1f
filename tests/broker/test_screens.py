"""`strait top` and `strait status --watch`, on a real terminal and into a pipe."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
STRAIT = Path(sys.executable).with_name("strait")
ENTER, LEAVE, CLEAR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[2J"


class Screen:
    """A command on a terminal of 140 columns."""

    def __init__(self, folder: Path, lines: int, *arguments: str) -> None:
        self.written = b""
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 140, 0, 0))
        environment = os.environ | {"TERM": "xterm-256color", "STRAIT_HOME": str(folder / "home")}
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        ends = {"stdin": follower, "stdout": follower, "stderr": follower}
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run where it is ignored
        self.process = subprocess.Popen([STRAIT, *arguments], env=environment, start_new_session=True, **ends)
        signal.signal(signal.SIGINT, before)
        os.close(follower)

    def until(self, text: str, seconds: float = 60) -> None:
        """Read until something has been written from now on."""
        begin, give_up_at = len(self.written), time.monotonic() + seconds
        while text.encode() not in self.written[begin:]:
            assert time.monotonic() < give_up_at, f"no {text!r} in {self.written[-4000:]!r}"
            self._read()

    def end(self, number: int) -> int:
        """Signal it; its exit code."""
        self.process.send_signal(number)
        give_up_at = time.monotonic() + 30
        while self.process.poll() is None:
            assert time.monotonic() < give_up_at, "it does not end"
            self._read()
        self._read()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._leader)

    def _read(self) -> None:
        if select.select([self._leader], [], [], 0.1)[0]:
            try:
                self.written += os.read(self._leader, 65536)
            except OSError:  # the other end is closed
                time.sleep(0.05)


@contextmanager
def screen(folder: Path, lines: int, *arguments: str) -> Iterator[Screen]:
    shown = Screen(folder, lines, *arguments)
    try:
        yield shown
    finally:
        shown.close()


@pytest.fixture
def short_name(topic_name: str) -> str:
    """One that no column folds."""
    return f"screen.{topic_name[-8:]}"


def links_file(folder: Path, settings: dict[str, Any]) -> str:
    path = folder / "links.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return str(path)


def produce(link: EngineLink, topic: str, records: int, partition: int = 0) -> None:
    producer = Producer(link.source.client_properties)
    for number in range(records):
        producer.produce(topic, b"value %d" % number, partition=partition)
    assert producer.flush(60) == 0


def top(path: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [STRAIT, "top", "-f", path, *options], capture_output=True, text=True, timeout=60, check=False
    )


def test_screens_follow_the_link_in_place_and_give_the_terminal_back(
    make_link: MakeLink, short_name: str, tmp_path: Path
) -> None:
    link = make_link(topics={short_name: 2})
    link.make_topics()
    link.publish()
    link.start_slot()
    link.until_seen()
    path = links_file(tmp_path, link.settings)
    with (
        screen(tmp_path, 40, "top", "-f", path, "--interval", "1") as partitions,
        screen(tmp_path, 40, "status", "-f", path, link.name, short_name, "--watch") as topic,
    ):
        partitions.until(f"{short_name}-1")
        topic.until("caught up")
        produce(link, short_name, 1234)
        topic.until("1,234")  # the position, in a later frame
        assert topic.end(signal.SIGINT) == 0
        assert partitions.end(signal.SIGTERM) == 128 + signal.SIGTERM
        for shown in (partitions, topic):
            assert shown.written.count(ENTER) == shown.written.count(LEAVE) == 1
            assert shown.written.index(LEAVE) > shown.written.index(short_name.encode())
            assert CLEAR not in shown.written[shown.written.index(short_name.encode()) :], "it is drawn over"
    with screen(tmp_path, 5, "top", "-f", path) as small:
        small.until("more line")
        assert small.end(signal.SIGINT) == 0


def test_top_into_a_pipe_prints_once_the_partitions_that_are_asked_for(
    make_link: MakeLink, short_name: str, tmp_path: Path
) -> None:
    link = make_link(topics={short_name: 3})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    link.until_seen()
    settings = link.settings
    path = links_file(tmp_path, settings)

    def rates() -> set[float | None]:
        found = json.loads(top(path, "-o", "json").stdout)
        return {row["records_per_second"] for row in found["partitions"]}

    eventually(lambda: rates() == {0.0}, what="rates are known and nothing is copied")
    found = json.loads(top(path, link.name, "--by", "rate", "-n", "2", "-o", "json").stdout)
    assert [(row["topic"], row["partition"]) for row in found["partitions"]] == [(short_name, 0), (short_name, 1)]
    (summary,) = found["links"]
    assert (summary["link"], summary["partitions"], summary["error"]) == (link.name, 3, "")
    link.kill(slot)

    settings["clusters"]["away"] = {"bootstrap.servers": "127.0.0.1:1"}
    settings["links"]["lost"] = {"source": "a", "destination": "away", "topics": {"include": ["x"]}}
    done = top(links_file(tmp_path, settings))
    assert done.returncode == 1, "a link cannot be read"
    assert "Connection refused" in next(line for line in done.stdout.splitlines() if line.startswith("lost"))
    assert f"{short_name}-2" in done.stdout
    assert "\x1b" not in done.stdout
    assert top(path, "nobody").returncode == 2
