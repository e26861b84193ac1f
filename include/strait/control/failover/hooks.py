"""Hooks: commands and, in Airflow, DAGs that a link's operators run before and after steps of a failover.

A hook gets JSON: ``when``, ``step``, ``link``, ``source`` and ``destination`` (``name``, ``bootstrap.servers``),
``topics``, the source topics that are moved, and ``failover``, the record so far. It contains no credentials.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol

from strait.config.failover import Hook, When
from strait.errors import FailoverTakenOver, HookFailed
from strait.launch.processes import with_parent
from strait.planning.failover import Check, Verdict
from strait.state.failover_records import Failover
from strait.state.link_handle import ConfiguredLink
from strait.text import listed, printable

_SHOWN = 300
"""Most characters of a command's last line of output that are kept in the report."""
_READ_BYTES = 4096
_CHECK_SECONDS = 2.0


class RunDag(Protocol):
    """Runs a DAG and returns a short description of the result. Raises HookFailed."""

    def __call__(
        self, dag: str, run: str, conf: Mapping[str, Any], timeout_seconds: float, check: Callable[[], None]
    ) -> str:
        """Start ``run`` of the DAG, or wait for it if it exists. ``check`` is called while waiting; it may raise."""


def is_hook(step: str) -> bool:
    """Return whether a step of this name is a hook."""
    return step.startswith(("before ", "after "))


class Hooks:
    """The hooks of one link.

    Args:
        run_dag: None: not in Airflow, so a hook that is a DAG fails.
        topics: returns the source topics that are moved.
    """

    def __init__(
        self,
        link: ConfiguredLink,
        run_dag: RunDag | None = None,
        topics: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._hooks: Sequence[Hook] = link.settings.failover.hooks
        self._ends = {
            end: {"name": cluster.name, "bootstrap.servers": cluster.properties.get("bootstrap.servers", "")}
            for end, cluster in (("source", link.source), ("destination", link.destination))
        }
        self._run_dag = run_dag
        self._topics = topics

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def at(self, when: When, step: str) -> Iterator[tuple[str, Hook]]:
        """Yield the hooks of this moment in order, each with the name of its step."""
        found = [hook for hook in self._hooks if hook.runs(when, step)]
        for number, hook in enumerate(found, 1):
            yield f"{when} {step.replace('_', ' ')}" + (f" ({number})" if number > 1 else ""), hook

    def look_ahead(self) -> Check:
        """Check whether all hooks can be run here."""
        lost = [hook.command[0] for hook in self._hooks if hook.command and shutil.which(hook.command[0]) is None]
        if lost:
            return Check(Verdict.FAILED, f"{len(lost)} commands cannot be run on this host: {listed(lost)}")
        dags = [str(hook) for hook in self._hooks if hook.dag]
        if dags and self._run_dag is None:
            return Check(Verdict.FAILED, f"{len(dags)} hooks need a failover that Airflow runs: {listed(dags)}")
        return Check(Verdict.DONE, f"{len(self._hooks)} hooks: {listed(list(map(str, self._hooks)))}")

    def run(
        self, hook: Hook, when: When, step: str, record: Failover, check: Callable[[], None] = lambda: None
    ) -> Check:
        """Run one hook to its end. Every failure of it is a result, since its caller may have changes to take back.

        Args:
            check: is called every 2 s; if it raises FailoverTakenOver, the hook is ended.

        Raises:
            FailoverTakenOver
        """
        try:
            facts = {"when": when, "step": step, "link": record.link, **self._ends, "topics": sorted(self._topics())}
            facts["failover"] = record.model_dump(mode="json")
            if hook.dag is None:
                said = _run(hook, json.dumps(facts), check)
            elif self._run_dag is None:
                raise HookFailed("runs only in a failover that Airflow runs")
            else:
                run = f"strait-failover__{record.id}__{when}-{step}"
                said = self._run_dag(hook.dag, run, facts, hook.timeout_seconds, check)
        except FailoverTakenOver:
            raise
        except Exception as error:  # noqa: BLE001  of Airflow, of the operating system, of a cluster
            return Check(Verdict.FAILED, f"{hook} {printable(str(error)[:_SHOWN]) or type(error).__name__}")
        return Check(Verdict.DONE, f"{hook}" + (f": {said}" if said else ""))


def _run(hook: Hook, text: str, check: Callable[[], None]) -> str:
    """Run a command and return the last line of its output. Raises HookFailed; if this process ends, it ends the
    command, too."""
    if shutil.which(hook.command[0]) is None:
        raise HookFailed("cannot be run: there is no such program on this host")
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        try:
            command = subprocess.Popen(
                with_parent(hook.command) or hook.command,
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise HookFailed(f"cannot be run: {error.strerror}") from None
        try:
            code = _wait(command, hook.timeout_seconds, check)
        finally:
            if command.poll() is None:
                os.killpg(command.pid, signal.SIGKILL)
                command.wait()
        if code is None:
            raise HookFailed(f"was ended after {hook.timeout_seconds} s: {_last_line(output)}")
        if code != 0:
            raise HookFailed(f"{_ended(code)}: {_last_line(output)}")
        return _last_line(output)


def _wait(command: "subprocess.Popen[bytes]", timeout_seconds: float, check: Callable[[], None]) -> int | None:
    """Return the exit code; None if the command runs for longer."""
    until = time.monotonic() + timeout_seconds
    while (left := until - time.monotonic()) > 0:
        try:
            return command.wait(min(left, _CHECK_SECONDS))
        except subprocess.TimeoutExpired:
            check()
    return None


def _ended(code: int) -> str:
    if code >= 0:
        return f"exited with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was ended by signal {-code}"


def _last_line(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _READ_BYTES))
    lines = output.read().decode(errors="replace").split("\n")
    return printable(next((line.strip() for line in reversed(lines) if line.strip()), "")[:_SHOWN])
