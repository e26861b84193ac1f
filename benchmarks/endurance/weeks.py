"""What a link costs after weeks of copying, side by side with one that has just begun, between the same brokers."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil

from endurance.aged_slot import AgedSlot
from endurance.brokers import running
from endurance.compressed_time import Clock, CompressedCluster
from endurance.old_state import write_old_checkpoints
from endurance.processes import Cost, cpu_seconds, memory_mb, share_of_core
from endurance.rig_link import STATE_TOPICS, RigLink
from endurance.scenario import Finding, Say, Sizes
from endurance.trickle_source import trickling
from support.fixtures.waiting import eventually
from support.links.exporting import exporter

_MOST_SECONDS_BEYOND_EMPTY = 1.0
_MOST_STATE_MB = 200.0
_MOST_GROWTH = 1.25
_PATIENCE_SECONDS = 600.0

Age = Callable[[RigLink, Clock, Sizes, Say], list[float]]


def weeks(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """State that this version has written."""
    return _compare(sizes, folder, say, _copy_for_weeks)


def upgrade(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """State that an early checkout has written, taken over by this one."""
    return _compare(sizes, folder, say, write_old_checkpoints)


def _compare(sizes: Sizes, folder: Path, say: Say, age: Age) -> list[Finding]:
    behind_seconds = sizes.minutes * 60
    source, destination = (CompressedCluster(folder / side, behind_seconds) for side in ("source", "destination"))
    with running(source, destination):
        clock = Clock(behind_seconds, source, destination)
        aged, empty = (
            RigLink(name, source, destination, folder, sizes.topics(name), slot_memory_bytes=128 << 20)
            for name in ("aged", "empty")
        )
        aged.begin()
        say(f"{sizes.partitions} partitions begun, {sizes.weeks:g} weeks ago")
        map_mb = age(aged, clock, sizes, say)
        empty.begin()
        try:
            say("the logs are filled; this version looks at it for the first time")
            first = aged.strait("apply")
            return [
                Finding("apply, the first", first.seconds, "s"),
                Finding("apply, the first, CPU", first.cpu_seconds, "s"),
                Finding("apply, the first, times it failed", first.code != 0, "", 0),
                *_state(aged, map_mb),
                *_commands(aged, empty, sizes.turns, say),
                *_slots(aged, empty, sizes, say),
            ]
        finally:
            aged.stop()
            empty.stop()


def _copy_for_weeks(link: RigLink, clock: Clock, sizes: Sizes, say: Say) -> list[float]:
    """Returns megabytes of the map, at times evenly spread."""
    map_mb = []
    with clock.in_force(), AgedSlot(link, clock, sizes.seed) as slot:
        for minute in range(sizes.minutes):
            slot.copy_minute(reporting=minute >= sizes.minutes - sizes.report_minutes)
            if (minute + 1) % max(1, sizes.minutes // 10) == 0:
                map_mb.append(link.state_bytes("map") / 1e6)
                say(f"{minute + 1} of {sizes.minutes} minutes; map {map_mb[-1]:.1f} MB")
        slot.fill()
    return map_mb


def _state(link: RigLink, map_mb: list[float]) -> list[Finding]:
    sizes_mb = {kind: link.state_bytes(kind) / 1e6 for kind in STATE_TOPICS}
    half = max(map_mb[: len(map_mb) // 2], default=sizes_mb["map"])
    return [
        *(Finding(f"state on disk, {kind}", size, "MB") for kind, size in sizes_mb.items()),
        Finding("state on disk, all", sum(sizes_mb.values()), "MB", _MOST_STATE_MB),
        Finding("map, records in the log", link.state_records("map"), "records"),
        Finding("map on disk at the end, over the most in the first half", sizes_mb["map"] / max(half, 0.1), "times", _MOST_GROWTH),
    ]  # fmt: skip


def _commands(aged: RigLink, empty: RigLink, turns: int, say: Say) -> list[Finding]:
    """In turns, the fastest counts: other processes of the machine only ever add."""
    asked: dict[str, Callable[[RigLink], Cost]] = {
        "plan": lambda link: link.strait("plan"),
        "status": lambda link: link.strait("status"),
        "page, first view": lambda link: link.module("endurance.page_view"),
        "page, a partition's map": lambda link: link.module("endurance.page_view", next(iter(link.topics))),
    }
    found = []
    for what, ask in asked.items():
        costs = [(ask(aged), ask(empty)) for _ in range(turns)]
        old, new = (min(each, key=lambda cost: cost.seconds) for each in zip(*costs, strict=True))
        say(f"{what}: {old.seconds:.1f} s, empty {new.seconds:.1f} s")
        found += [
            _beyond(what, old.seconds, new.seconds),
            _beyond(f"{what}, CPU", old.cpu_seconds, new.cpu_seconds),
            Finding(f"{what}, memory", old.memory_mb, "MB"),
            Finding(f"{what}, times it failed", sum(cost.code != 0 for cost, _ in costs), "", 0),
        ]
    return found


def _slots(aged: RigLink, empty: RigLink, sizes: Sizes, say: Say) -> list[Finding]:
    starts: dict[str, tuple[float, float, psutil.Process]] = {}
    for name, link in (("empty", empty), ("aged", aged)):
        began = time.monotonic()
        process = link.run_slot()
        seconds = link.seconds_until_first_record(began)
        starts[name] = seconds, cpu_seconds(process), process
        say(f"first record after start, {name}: {seconds:.1f} s")
        link.seconds_until(began, lambda row: row.state == "caught_up")
    old, new = starts["aged"], starts["empty"]
    found = [
        _beyond("first record after start", old[0], new[0]),
        _beyond("first record after start, CPU", old[1], new[1]),
        *_scrapes(aged, empty, say),
        Finding("slot, memory", memory_mb(old[2]), "MB"),
        Finding("slot, memory, empty link", memory_mb(new[2]), "MB"),
        Finding("idle link, CPU of its slot", share_of_core(old[2], sizes.seconds), "% of a core"),
    ]
    with trickling(aged):
        found.append(Finding("trickling link, CPU of its slot", share_of_core(old[2], sizes.seconds), "% of a core"))
    return found


def _scrapes(aged: RigLink, empty: RigLink, say: Say) -> list[Finding]:
    seconds, memory = {}, {}
    for link in (empty, aged):
        began = time.monotonic()
        with exporter(link.folder, link.settings) as scraped:
            eventually(lambda: _partitions(scraped.text()), what="its partitions", within_seconds=_PATIENCE_SECONDS)
            seconds[link.name] = time.monotonic() - began
            memory[link.name] = memory_mb(psutil.Process(scraped.pid))
    say(f"exporter: {seconds}")
    beyond = _beyond("exporter, first scrape with the link", seconds["aged"], seconds["empty"])
    return [beyond, Finding("exporter, memory", memory["aged"], "MB")]


def _partitions(metrics: str) -> bool:
    return "strait_partitions{" in metrics


def _beyond(what: str, aged: float, empty: float) -> Finding:
    return Finding(f"{what}, beyond an empty link's {empty:.1f} s", aged - empty, "s", _MOST_SECONDS_BEYOND_EMPTY)
