"""Hooks: commands and, in Airflow, DAGs that a link's operators run before and after steps of a failover.

A hook gets JSON: ``when``, ``step``, ``link``, ``source`` and ``destination`` (``name``, ``bootstrap.servers``), and
``failover``, the record so far. It contains no credentials.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from strait.config.failover import Hook, When
from strait.config.links import LinksFile
from strait.errors import HookFailed
from strait.planning.failover import Check, Verdict, listed
from strait.state.failover_records import Failover
from strait.text import printable

_SHOWN = 300
"""Most characters of a command's last line of output that are kept in the report."""
_READ_BYTES = 4096

RunDag = Callable[[str, Mapping[str, Any], float], str]
"""Run a DAG with this configuration for at most this many seconds; return a short description of the result. Raises
HookFailed."""


class Hooks:
    """The hooks of one link.

    Args:
        run_dag: None: not in Airflow, so a hook that is a DAG fails.
    """

    def __init__(self, file: LinksFile, link: str, run_dag: RunDag | None = None) -> None:
        self._hooks: Sequence[Hook] = file.links[link].failover.hooks
        self._ends = {
            end: {"name": name, "bootstrap.servers": file.clusters[name].get("bootstrap.servers", "")}
            for end, name in (("source", file.links[link].source), ("destination", file.links[link].destination))
        }
        self._run_dag = run_dag

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def at(self, when: When, step: str) -> Iterator[tuple[str, Hook]]:
        """Yield the hooks of this moment in order, each with the name of its step."""
        found = [hook for hook in self._hooks if hook.runs(when, step)]
        for number, hook in enumerate(found, 1):
            yield f"{when} {step.replace('_', ' ')}" + (f" ({number})" if number > 1 else ""), hook

    def look_ahead(self) -> Check:
        """Check whether all hooks could be run here."""
        lost = [str(hook) for hook in self._hooks if hook.command and shutil.which(hook.command[0]) is None]
        if lost:
            return Check(Verdict.FAILED, f"{len(lost)} commands cannot be run here: {listed(lost)}")
        if self._run_dag is None and (dags := [str(hook) for hook in self._hooks if hook.dag]):
            return Check(Verdict.WARNING, f"{len(dags)} hooks need a failover that Airflow runs: {listed(dags)}")
        return Check(Verdict.DONE, f"{len(self._hooks)} hooks would run: {listed(list(map(str, self._hooks)))}")

    def run(self, hook: Hook, when: When, step: str, record: Failover) -> Check:
        """Run a hook until it exits."""
        facts = {
            "when": when,
            "step": step,
            "link": record.link,
            **self._ends,
            "failover": record.model_dump(mode="json"),
        }
        try:
            if hook.dag is None:
                said = _run(hook, json.dumps(facts))
            elif self._run_dag is None:
                raise HookFailed("runs only in a failover that Airflow runs")
            else:
                said = self._run_dag(hook.dag, facts, hook.timeout_seconds)
        except HookFailed as error:
            return Check(Verdict.FAILED, f"{hook} {error}")
        return Check(Verdict.DONE, f"{hook}" + (f": {said}" if said else ""))


def _run(hook: Hook, text: str) -> str:
    """Run the command and return the last line that it prints. If an exception interrupts the wait, the command is
    killed. Raises HookFailed."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        try:
            command = subprocess.Popen(
                hook.command, stdin=given, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise HookFailed(f"cannot be run: {error.strerror}") from None
        try:
            code = command.wait(hook.timeout_seconds)
        except subprocess.TimeoutExpired:
            raise HookFailed(f"was ended after {hook.timeout_seconds} s: {_last_line(output)}") from None
        finally:
            if command.poll() is None:
                os.killpg(command.pid, signal.SIGKILL)
                command.wait()
        if code != 0:
            ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            raise HookFailed(f"{ended}: {_last_line(output)}")
        return _last_line(output)


def _last_line(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _READ_BYTES))
    lines = output.read().decode(errors="replace").split("\n")
    return printable(next((line.strip() for line in reversed(lines) if line.strip()), "")[:_SHOWN])
