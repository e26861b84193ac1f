"""Watch a copier empty a full topic into the destination, and say what it took."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from mm2.copier import Running
from mm2.progress import Advance
from strait.errors import MeasurementError

_BETWEEN_SAMPLES_SECONDS = 0.05
_BETWEEN_MEMORY_SAMPLES_SECONDS = 0.5
_STANDSTILL_SECONDS = 90.0
_GB = 1e9


@dataclass(frozen=True, slots=True)
class Sample:
    """One look. CPU times are totals so far; ``at`` counts from the copier's start."""

    at: float
    records: int
    copier_cpu_seconds: float
    slot_cpu_seconds: float
    broker_cpu_seconds: float
    machine_cpu_seconds: float


@dataclass(frozen=True, slots=True)
class DrainFigures:
    """What draining took. Rates and CPU count from the first arrival at the destination to the last, except ``whole``:
    from the copier's start. ``later_half`` leaves out its warming up as well: it counts the second half of the records.
    """

    records: int
    bytes: int
    seconds_to_first_record: float
    drain_seconds: float
    records_per_second: float
    records_per_second_later_half: float
    records_per_second_whole: float
    bytes_per_second: float
    cpu_seconds: float
    cpu_seconds_per_gb: float
    cpu_seconds_per_gb_later_half: float
    slot_cpu_seconds_per_gb: float
    cpu_seconds_whole: float
    broker_cpu_seconds: float
    other_cpu_share: float


def watch(
    copier: Running,
    count: Callable[[], int],
    expected: int,
    brokers: Sequence[psutil.Process],
    advance: Advance,
) -> list[Sample]:
    """Look again and again until ``expected`` records have arrived.

    Raises:
        MeasurementError: the copier ended, stood still, or wrote more records than there are.
    """
    samples: list[Sample] = []
    started = moved = time.monotonic()
    memory_sampled = 0.0
    records = 0
    while records < expected:
        before, records = records, count()
        now = time.monotonic()
        samples.append(_look(copier, now - started, records, brokers))
        advance(records)
        if records > before:
            moved = now
        elif now - moved > _STANDSTILL_SECONDS:
            raise MeasurementError(
                f"{copier.command.copier}: no progress for {_STANDSTILL_SECONDS:.0f} s at {records} of {expected} "
                f"records: {copier.last_words()}"
            )
        if now - memory_sampled > _BETWEEN_MEMORY_SAMPLES_SECONDS:
            memory_sampled = now
            copier.require_alive()
            copier.tree.sample_memory()
        time.sleep(_BETWEEN_SAMPLES_SECONDS)
    copier.tree.sample_memory()
    if records > expected:
        raise MeasurementError(f"{copier.command.copier}: wrote {records} records where there are {expected}")
    return samples


def _look(copier: Running, at: float, records: int, brokers: Sequence[psutil.Process]) -> Sample:
    return Sample(
        at=at,
        records=records,
        copier_cpu_seconds=copier.tree.cpu_seconds(),
        slot_cpu_seconds=copier.tree.cpu_seconds_of(copier.command.slot_commands),
        broker_cpu_seconds=sum(map(_cpu_seconds, brokers)),
        machine_cpu_seconds=_machine_seconds(),
    )


def figures(samples: Sequence[Sample], total_bytes: int) -> DrainFigures:
    """Pure: what the samples say. The first sample with records opens the window, so what it has is not counted in."""
    first = next(sample for sample in samples if sample.records)
    last = samples[-1]
    middle = next(sample for sample in samples if sample.records >= last.records / 2)
    if last.records == first.records:
        raise MeasurementError(f"all {last.records} records arrived at once: too few to measure", hint="raise --scale")
    seconds, cpu_seconds, gb = _between(first, last, total_bytes)
    half_seconds, half_cpu_seconds, half_gb = _between(middle, last, total_bytes)
    machine = last.machine_cpu_seconds - first.machine_cpu_seconds
    brokers = last.broker_cpu_seconds - first.broker_cpu_seconds
    return DrainFigures(
        records=last.records,
        bytes=total_bytes,
        seconds_to_first_record=first.at,
        drain_seconds=seconds,
        records_per_second=(last.records - first.records) / seconds,
        records_per_second_later_half=(last.records - middle.records) / half_seconds if half_seconds else 0.0,
        records_per_second_whole=last.records / last.at,
        bytes_per_second=gb * _GB / seconds,
        cpu_seconds=cpu_seconds,
        cpu_seconds_per_gb=cpu_seconds / gb,
        cpu_seconds_per_gb_later_half=half_cpu_seconds / half_gb if half_gb else 0.0,
        slot_cpu_seconds_per_gb=(last.slot_cpu_seconds - first.slot_cpu_seconds) / gb,
        cpu_seconds_whole=last.copier_cpu_seconds,
        broker_cpu_seconds=brokers,
        other_cpu_share=max(0.0, machine - brokers - cpu_seconds) / (seconds * (os.cpu_count() or 1)),
    )


def _between(start: Sample, end: Sample, total_bytes: int) -> tuple[float, float, float]:
    """Seconds, CPU-seconds of the copier, and GB moved."""
    share = (end.records - start.records) / end.records
    return end.at - start.at, end.copier_cpu_seconds - start.copier_cpu_seconds, total_bytes * share / _GB


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _machine_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)
