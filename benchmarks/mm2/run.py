"""One run of `make bench`: two clusters, each workload through each copier, one after the other on the same data."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import psutil

from mm2 import bounds, live_relay, load, mm2, strait_runner
from mm2.ballast import ballast
from mm2.clusters import BROKER_HEAP_MIB, make_cluster
from mm2.content import digests
from mm2.copier import Command, Running, running
from mm2.drain import Sample, figures, watch
from mm2.latency import measure_latency, probe
from mm2.machine import commit, machine, versions
from mm2.progress import Steps
from mm2.relay import measure_relay
from mm2.results import (
    NO_COPIER,
    Content,
    DrainResult,
    LatencyResult,
    RelayResult,
    Results,
)
from mm2.topics import Topics
from mm2.workloads import PARTITIONS, Drain, Trickle, Workload
from strait.embedded.kafka import Cluster
from strait.errors import MeasurementError, SetupError

Result = TypeVar("Result", DrainResult, LatencyResult)
COPIERS = (mm2.NAME, strait_runner.NAME)
_RELAY_BYTES = 8 * 10**9
_REHEARSAL_SHARE = 0.5
_REHEARSAL_SECONDS = 30.0
_LIMIT_SECONDS = 120.0  # of the floor and the bare relay, whose p99.9 is not compared
_FIRST_ARRIVAL_SECONDS = 120.0
_DISK_FACTOR = 3  # a workload's topic, its copy, and what is not deleted yet


@dataclass(frozen=True, slots=True)
class Options:
    """What to run. ``workloads`` are as defined; ``scale`` is applied here. ``rounds``: how often each copier empties
    each full topic, by turns. ``brokers`` of each cluster, on as many of which each partition is; ``tls``: for all
    clients."""

    workloads: tuple[Workload, ...]
    copiers: tuple[str, ...]
    relay: bool
    scale: float
    rounds: int
    brokers: int = 1
    tls: bool = False


def run(options: Options, steps: Steps) -> Results:
    """Run it all. Every process has ended and every file is gone when this returns or raises."""
    results = Results(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit(),
        machine=machine(),
        versions=versions(),
        parameters={
            "scale": options.scale,
            "rounds": options.rounds,
            "workloads": [workload.name for workload in options.workloads],
            "copiers": list(options.copiers),
            "slots": [f"{each.name}: {each.slots}" for each in options.workloads if isinstance(each, Drain)],
            "slot_memory_mib": strait_runner.SLOT_MEMORY_MIB,
            "mm2_tasks": mm2.TASKS,
            "latency_seconds": [
                f"{each.seconds * options.scale:g}" for each in options.workloads if isinstance(each, Trickle)
            ],
            "partitions": PARTITIONS,
            "brokers": options.brokers,
            "tls": options.tls,
            "broker_heap_mib": BROKER_HEAP_MIB // options.brokers,
        },
    )
    if options.relay:
        with steps.step("bare relay"):
            results.relay = measure_relay(round(_RELAY_BYTES * min(1.0, options.scale)))
    if options.copiers:
        workloads = [workload.scaled(options.scale) for workload in options.workloads]
        with tempfile.TemporaryDirectory(prefix="strait-bench-") as scratch:
            _require_disk(Path(scratch), workloads, options.brokers)
            _copy_all(workloads, options, Path(scratch), steps, results)
    results.bounds = bounds.judge(results, strait_runner.SLOT_BUDGET_BYTES)
    return results


def _copy_all(workloads: Sequence[Workload], options: Options, scratch: Path, steps: Steps, results: Results) -> None:
    source, destination = (
        make_cluster(scratch / name, options.brokers, tls=options.tls) for name in ("source", "destination")
    )
    with steps.step("start two clusters"):
        source.start()
    try:
        destination.start()
        bench = _Bench(source, destination, options, scratch, steps, results)
        for workload in workloads:
            if isinstance(workload, Drain):
                bench.drain(workload)
            else:
                bench.trickle(workload)
    finally:
        destination.stop()
        source.stop()


class _Bench:
    """The workloads on two running clusters."""

    def __init__(
        self,
        source: Cluster,
        destination: Cluster,
        options: Options,
        scratch: Path,
        steps: Steps,
        results: Results,
    ) -> None:
        self._source = source
        self._destination = destination
        self._copiers = options.copiers
        self._rounds = options.rounds
        self._relay_bytes = round(_RELAY_BYTES * min(1.0, options.scale)) if options.relay else 0
        self._scratch = scratch
        self._steps = steps
        self._results = results
        self._source_topics = Topics("source", source.client_properties, options.brokers)
        self._destination_topics = Topics("destination", destination.client_properties, options.brokers)
        self._compare_content = True  # of the first workload, which stands for all: reading takes longer than copying

    def drain(self, workload: Drain) -> None:
        """Fill the source once; let each copier empty it into a fresh topic."""
        self._rehearse(replace(workload.scaled(_REHEARSAL_SHARE), name=f"{workload.name}-rehearsal"))
        with self._fresh():
            loaded = self._fill(workload)
            expected = self._digests("source", self._source, workload.name, workload) if self._compare_content else None

            def measure(copier: str, number: int) -> DrainResult:
                return self._drain_with(copier, workload, loaded, None if number else expected)

            self._results.drains += map(DrainResult.middle, self._by_turns(self._copiers, measure))
            self._compare_content = False

    def _by_turns(self, copiers: Sequence[str], measure: Callable[[str, int], Result]) -> list[list[Result]]:
        """``measure(copier, number of the round)``, round after round. Returns each copier's rounds."""
        rounds = [[measure(copier, number) for copier in copiers] for number in range(self._rounds)]
        return [list(of_copier) for of_copier in zip(*rounds, strict=True)]

    def _rehearse(self, workload: Drain) -> None:
        """Let each copier copy some of it unmeasured: a broker that has just started compiles its code for the requests
        of whoever comes, and touches its memory for the first time, at several times the cost of one that runs for
        long."""
        with self._fresh():
            loaded = self._fill(workload)
            for copier in self._copiers:
                with self._fresh(keep=workload.name):
                    self._copy(copier, workload, loaded)

    def _fill(self, workload: Drain) -> load.BatchFacts:
        self._source_topics.create(workload.name)
        with self._steps.step(f"{workload.name}: fill the source", workload.records) as advance:
            load.fill(self._source.client_properties, workload.name, workload, advance)
        loaded = load.read_batches(self._source.log(1).parent, workload.name)
        load.check(loaded, workload)
        return loaded

    def _drain_with(
        self, copier: str, workload: Drain, loaded: load.BatchFacts, expected: tuple[str, ...] | None
    ) -> DrainResult:
        beside = self._relay_bytes if copier == strait_runner.NAME else 0
        before = self._relays(workload, beside)
        with self._fresh(keep=workload.name):
            samples, process = self._copy(copier, workload, loaded)
            after = self._relays(workload, beside)
            copy = process.command.destination_topic
            written = load.read_batches(self._destination.log(1).parent, copy)
            if written.records != loaded.records:
                raise MeasurementError(f"{copier}: {copy} has {written.records} records instead of {loaded.records}")
            content: Content = "not compared"
            if expected is not None:
                content = "equal"
                if self._digests("destination", self._destination, copy, workload) != expected:
                    raise MeasurementError(f"{copier}: {copy} has other records than {workload.name}")
        return DrainResult(
            workload=workload.name,
            copier=copier,
            figures=figures(samples, loaded.bytes),
            source_batch_bytes=loaded.mean_batch_bytes,
            destination_batch_bytes=written.mean_batch_bytes,
            content=content,
            tree_peak_pss_bytes=process.tree.peak_pss_bytes,
            slot_peak_pss_bytes=process.tree.peak_process_pss_bytes(process.command.slot_commands),
            relays=before + after if before and after else None,
        )

    def _copy(self, copier: str, workload: Drain, loaded: load.BatchFacts) -> tuple[list[Sample], Running]:
        """Start the copier, look until all is there, end it."""
        command = self._command(copier, workload.name, workload.slots)
        copy = command.destination_topic
        self._destination_topics.create(copy)
        os.sync()  # or writing back what was loaded would disturb whoever comes first
        brokers = [each for cluster in (self._source, self._destination) for each in _processes(cluster)]
        with (
            ballast(self._scratch, loaded.bytes) as held,
            running(command, self._scratch) as process,
            self._steps.step(f"{workload.name}: {copier}", workload.records) as advance,
        ):

            def arrived(records: float) -> None:
                held.keep(1.0 - records / loaded.records)
                advance(records)

            samples = watch(process, lambda: self._destination_topics.count(copy), loaded.records, brokers, arrived)
        return samples, process

    def _command(self, copier: str, topic: str, slots: int) -> Command:
        ends = self._scratch, self._source, self._destination, topic
        if copier == mm2.NAME:
            return mm2.command(*ends)
        return live_relay.command(*ends) if copier == live_relay.NAME else strait_runner.command(*ends, slots=slots)

    def _relays(self, workload: Drain, total_bytes: int) -> RelayResult | None:
        """As many as Strait has slots, so that both have the same of the machine; near it in time, since machines
        change."""
        if not total_bytes:
            return None
        relays = "bare relay" if workload.slots == 1 else f"{workload.slots} bare relays"
        with self._steps.step(f"{workload.name}: {relays}"):
            return measure_relay(total_bytes // 2, at_once=workload.slots)

    def trickle(self, workload: Trickle) -> None:
        """Measure the floor, the limit and each copier by turns, once each has run unmeasured: see `_rehearse`."""
        copiers = (*self._copiers, live_relay.NAME) if self._relay_bytes else self._copiers
        for copier in copiers:
            short = min(workload.seconds, _REHEARSAL_SECONDS)
            self._trickle_with(copier, replace(workload, name=f"{workload.name}-rehearsal", seconds=short))
        limits = replace(workload, seconds=min(workload.seconds, _LIMIT_SECONDS))
        turns = self._by_turns(
            (NO_COPIER, *copiers),
            lambda copier, _: self._trickle_with(copier, workload if copier in self._copiers else limits),
        )
        self._results.latencies += map(LatencyResult.middle, turns)

    def _trickle_with(self, copier: str, workload: Trickle) -> LatencyResult:
        with self._fresh():
            topic = f"{workload.name}-{copier}"
            command = None if copier == NO_COPIER else self._command(copier, topic, 1)
            self._source_topics.create(topic)
            if command is not None:
                self._destination_topics.create(command.destination_topic)
            return self._trickle_through(copier, workload, topic, command)

    def _trickle_through(self, copier: str, workload: Trickle, topic: str, command: Command | None) -> LatencyResult:
        label = f"{workload.name}: {copier if command else 'without a copier'}"
        source = self._source.client_properties
        seconds = workload.warm_up_seconds + workload.seconds
        if command is None:
            probe(source, topic)
            with self._steps.step(label, seconds) as advance:
                found = measure_latency(source, topic, source, topic, workload, advance)
            return LatencyResult(workload.name, copier, found, cpu_cores=None)
        with running(command, self._scratch) as process:
            probe(source, topic)
            with self._steps.step(f"{workload.name}: {copier} starts"):
                deadline = time.monotonic() + _FIRST_ARRIVAL_SECONDS
                while self._destination_topics.count(command.destination_topic) < PARTITIONS:
                    process.require_alive()
                    if time.monotonic() > deadline:
                        raise MeasurementError(f"{copier}: copied nothing: {process.last_words()}")
                    time.sleep(0.2)
            cpu_before, before = process.tree.cpu_seconds(), time.monotonic()
            with self._steps.step(label, seconds) as advance:
                found = measure_latency(
                    source, topic, self._destination.client_properties, command.destination_topic, workload, advance
                )
            cores = (process.tree.cpu_seconds() - cpu_before) / (time.monotonic() - before)
        return LatencyResult(workload.name, copier, found, cpu_cores=cores)

    def _digests(self, name: str, cluster: Cluster, topic: str, workload: Drain) -> tuple[str, ...]:
        with self._steps.step(f"{workload.name}: read {topic} on the {name}", workload.records) as advance:
            return digests(name, cluster.client_properties, topic, workload.records, advance)

    @contextmanager
    def _fresh(self, keep: str = "") -> Iterator[None]:
        """Delete all topics that appear in the block, also the copiers' own, but Kafka's."""
        yield
        for topics in (self._source_topics, self._destination_topics):
            topics.delete(topic for topic in topics.names() if topic != keep and not topic.startswith("__"))


def _processes(cluster: Cluster) -> list[psutil.Process]:
    pids = [cluster.pid(broker) for broker in cluster.broker_ids]
    if None in pids:
        raise SetupError("make bench: a broker has ended", hint="look for what ended it, such as too little memory")
    return [psutil.Process(pid) for pid in pids]


def _require_disk(folder: Path, workloads: Sequence[Workload], replicas: int) -> None:
    largest = max((_log_bytes(workload) for workload in workloads if isinstance(workload, Drain)), default=0)
    needed, free = largest * replicas * _DISK_FACTOR, psutil.disk_usage(str(folder)).free
    if free < needed:
        raise SetupError(
            f"make bench: {folder.parent} has {free / 1e9:.1f} GB free and {needed / 1e9:.1f} GB are needed",
            hint="give a smaller --scale, or name another folder in TMPDIR",
        )


def _log_bytes(workload: Drain) -> int:
    """At most what a workload takes in a log."""
    raw = workload.records * (workload.value_bytes + 100)
    return raw if workload.compression == "none" else raw // 2
