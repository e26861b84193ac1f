"""`strait exporter` as a process, and what it answers."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Scraped:
    """What one exporter answers."""

    def __init__(self, url: str, token: str, context: ssl.SSLContext | bool, process: subprocess.Popen[str]) -> None:
        self.url, self.token, self._context, self._process = url, token, context, process

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self) -> None:
        """End it before its time."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def get(self, path: str = "/metrics", token: str | None = None) -> httpx.Response:
        sent = self.token if token is None else token
        headers = {"Authorization": f"Bearer {sent}"} if sent else {}
        return httpx.get(f"{self.url}{path}", headers=headers, verify=self._context, trust_env=False, timeout=10)

    def text(self) -> str:
        reply = self.get()
        assert reply.status_code == 200, reply.text
        return reply.text

    def samples(self) -> Samples:
        families = text_string_to_metric_families(self.text())
        return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}

    def value(self, name: str, **labels: str) -> float | None:
        """The only sample with at least these labels."""
        found = [v for (n, pairs), v in self.samples().items() if n == name and labels.items() <= set(pairs)]
        assert len(found) <= 1, (name, labels, found)
        return found[0] if found else None


@contextmanager
def exporter(
    folder: Path, settings: dict[str, Any], *options: str, token: str = "", context: ssl.SSLContext | bool = True
) -> Iterator[Scraped]:
    """`strait exporter` in a process of its own, over a links file with these ``settings``, until the end."""
    file = folder / "links.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    command = [
        Path(sys.executable).with_name("strait"),
        "exporter",
        "-f",
        file,
        "--port",
        "0",
        "--interval",
        "1",
        *options,
    ]
    environment = os.environ | {"STRAIT_EXPORTER_TOKEN": token}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"(https?://\S+)/metrics", line)
        assert address, line + process.stderr.read()
        yield Scraped(address[1], token, context, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=30)
    assert process.returncode == 0, rest
