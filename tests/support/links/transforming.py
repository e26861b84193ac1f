"""Applications that transform: several of one link at once, and their processes, to be killed and suspended."""

import contextlib
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil

from strait.launch.local import LocalLauncher
from support.links.links import Link, is_head_start

_WORKER = "strait.spark.daemon"


def instance(link: Link, folder: Path, number: int) -> Link:
    """Another application of the link, with folders of its own."""
    there = folder / f"instance-{number}"
    there.mkdir()
    spec = link.spec.model_copy(
        update={"ledger_dir": str(there / "ledger"), "checkpoint_dir": str(there / "checkpoint")}
    )
    return replace(link, folder=there, spec=spec, launcher=LocalLauncher(there / "applications"))


def parts(link: Link) -> Mapping[str, list[psutil.Process]]:
    """The running processes of an application by what they do: ``slot``, ``second`` (the slot's second process), ``jvm`` and
    ``driver``."""
    slots = link.slot_processes()  # and the driver, if it synchronizes groups
    found: dict[str, list[psutil.Process]] = {"slot": [], "second": [], "jvm": [], "driver": []}
    for one in link.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            command = " ".join(one.cmdline())
            parent = one.parent()
            if one.name() == "java":
                found["jvm"].append(one)
            elif _WORKER in command and parent is not None and _WORKER in " ".join(parent.cmdline()):
                found["slot" if one in slots else "second"].append(one)
            elif "--spec" in one.cmdline() and not is_head_start(one) and _WORKER not in command:
                found["driver"] += [one] * ("python" in one.name())
    return found


def kill(processes: list[psutil.Process]) -> None:
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


@contextmanager
def suspended(processes: list[psutil.Process]) -> Iterator[None]:
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for one in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGCONT)


def started(link: Link) -> None:
    """Submit the application, unless it runs."""
    application = link.launcher.state(link.name)
    if application is None or not application.state.alive:
        link.submit(ledger_seconds=3600)
