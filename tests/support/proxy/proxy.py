"""A TCP proxy before Kafka brokers, in a process of its own, that does to connections what networks do.

It reads Kafka's framing (plain listeners only), so a fault can be aimed at one kind of request of one client.
"""

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import environ, pathsep
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from strait.net.handshake import CLIENT_ID
from support.proxy.frames import SEGMENT_BYTES, Rule, Volume, Way

ENGINE = CLIENT_ID
"""Rules for the engine leave the clients of the state topics alone."""

_MATHIS = 1.22

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, DESCRIBE_PRODUCERS = 0, 1, 2, 3, 18, 61


class Proxy:
    """Passes each port of ``routes`` on to another. Safe from any thread. What is set lasts until ``calm``."""

    def __init__(self, routes: Mapping[int, int], log: Path, seed: int = 1) -> None:
        self._command = [
            *(sys.executable, "-m", "support.proxy.process", str(seed)),
            *(f"{listen}:{target}" for listen, target in routes.items()),
        ]
        self._log = log
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for the tests: they end it
                env=environ | {"PYTHONPATH": pathsep.join(filter(None, sys.path))},
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", self._log.read_text()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.communicate(timeout=10)  # the end of its input is its end
        said = self._log.read_text()
        assert "Traceback" not in said, said

    def cut(
        self,
        way: Way,
        api: int | None = None,
        *,
        after_bytes: int | None = None,
        times: int | None = 1,
        skip: int = 0,
        chance: float = 1.0,
        client: str = ENGINE,
    ) -> Callable[[], int]:
        """Close connections within matching frames; see ``Rule``. Returns what says how often that happened so far."""
        return self._rule(Rule("cut", way, api, client, after_bytes=after_bytes, times=times, skip=skip, chance=chance))

    def flip(
        self, way: Way, api: int, *, before_end_bytes: int, least_bytes: int, times: int, chance: float = 1.0
    ) -> Callable[[], int]:
        """Damage matching frames of the engine; see ``Rule``."""
        return self._rule(
            Rule(
                *("flip", way, api, ENGINE),
                before_end_bytes=before_end_bytes,
                least_bytes=least_bytes,
                times=times,
                chance=chance,
            )
        )

    def hold(
        self,
        api: int,
        *,
        seconds: float,
        until_it_leaves: bool = False,
        times: int | None = 1,
        skip: int = 0,
        chance: float = 1.0,
    ) -> Callable[[], int]:
        """Deliver matching requests late, when their sender has given them up; see ``Rule``."""
        return self._rule(
            Rule(
                *("hold", "request", api, ENGINE),
                seconds=seconds,
                until_it_leaves=until_it_leaves,
                times=times,
                skip=skip,
                chance=chance,
            )
        )

    def delay(self, round_trip_seconds: float) -> None:
        """Half of it each way."""
        self._order({"weather": {"delay_seconds": round_trip_seconds / 2}})

    def limit(self, bytes_per_second: float) -> None:
        """At most that fast on each connection, each way; 0 is unlimited."""
        self._order({"weather": {"bytes_per_second": bytes_per_second}})

    def lose(self, share: float, round_trip_seconds: float) -> None:
        """Lose so many of TCP's segments on a long way. What is behind one that is lost waits until it has come after
        all, and a connection is as fast as congestion control lets it be (Mathis et al. 1997): 180 kB/s at 1 % and 100
        ms. For connections made from now on."""
        rate = SEGMENT_BYTES * _MATHIS / (round_trip_seconds * math.sqrt(share))
        self._order(
            {"weather": {"delay_seconds": round_trip_seconds / 2, "loss_share": share, "bytes_per_second": rate}}
        )

    def lost(self) -> int:
        """How often something was lost so far."""
        return int(self._order({"lost": True}))

    def passed(self, way: Way, api: int | None = None, client: str = ENGINE) -> Volume:
        """What has come so far, of one kind of request or of all."""
        return Volume(*self._order({"passed": {"way": way, "api": api, "client": client}}))

    def stall(self, *, stalls: bool = True) -> None:
        """Let nothing through, and lose nothing."""
        self._order({"weather": {"stalls": stalls}})

    def refuse(self, *, refuses: bool = True) -> None:
        """Close what connects."""
        self._order({"weather": {"refuses": refuses}})

    def cut_all(self) -> None:
        """Close every connection now."""
        self._order({"cut": True})

    def forget_all(self) -> None:
        """What is open now arrives nowhere any more, as when a firewall on the way starts again; new ones work."""
        self._order({"forget": True})

    def calm(self) -> None:
        """Nothing more happens to anybody; rules that were set stay only to be counted."""
        self._order({"weather": {"calm": True}})

    def _rule(self, rule: Rule) -> Callable[[], int]:
        number = self._order({"rule": asdict(rule)})
        return lambda: int(self._order({"fired": number}))

    def _order(self, order: dict[str, Any]) -> Any:
        with self._lock:
            process = self._process
            assert process is not None and process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        assert answer, f"the proxy ended: {self._log.read_text()[-2000:]}"
        return json.loads(answer)
