"""``make soak ARGS="--transform --seed 1"``: two applications of one link at once transform records, some of them in
transactions, in Avro, or divided among two topics, while one part of them after the other is killed or suspended. At the end every record is compared with what
becomes of its source, and every offset of the source with its translation."""

import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from strait.config.route_names import route_name
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.launch.local import LocalLauncher
from strait.state.schema import TopicPolicy
from support.fixtures.background import beside
from support.fixtures.clusters import Clusters
from support.fixtures.waiting import eventually
from support.kafka.records import Record, assert_copied
from support.links import avro_records
from support.links.handmade import publish
from support.links.links import Link, link_of
from support.links.transforming import instance, kill, parts, started, suspended
from support.links.transforms import Becomes, Writer, assert_transformed, missing, transform, transformed, write_until

Say = Callable[[str], None]

_NAME, _PER_SECOND = "soak", 1_500.0
_TRANSACTIONS, _PLAIN, _AVRO = f"{_NAME}.transactions", f"{_NAME}.plain", f"{_NAME}.avro"
_DIVIDED, _BIG, _REST = f"{_NAME}.divided", f"{_NAME}.big", f"{_NAME}.rest"
_IS_BIG = "v.amount > 50"
_SCHEMAS = (7, 9)  # of records in Avro
_SLOW_SECONDS = 15.0
_PROGRESS_SECONDS = 60.0


def transform_rounds(
    folder: Path, seed: int, say: Say, *, minutes: float = 0.0, faults: int = 1, kills: int = 0
) -> Mapping[str, Sequence[float]]:
    """Returns after how many seconds everything that was written before was copied, for each kind of fault. It goes on for so
    many minutes, for so many faults, and until so many of them killed something."""
    say(f"seed {seed}, {minutes:g} minutes, at least {faults} faults, {kills} kills")
    with Cluster(folder / "source") as source, Cluster(folder / "destination") as destination:
        storm = TransformStorm(folder, source, destination, seed)
        try:
            with beside(storm.write):
                recoveries = storm.rage(minutes, faults, kills, say)
            storm.until_copied()
            say("comparing")
            records = storm.compare()
        finally:
            storm.end()
    every = [second for seconds in recoveries.values() for second in seconds]
    say(f"{records} records equal, every offset exact; {len(every)} faults, median {median(every):.1f} s; seed {seed}")
    say(f"{storm.kills} of them killed something; before {storm.races} both applications copied beside each other")
    return recoveries


class TransformStorm:
    """Two applications of one link, writers, and faults for both.

    Attributes:
        kills: number of faults that killed a process. One that is drawn may find none, while an application begins.
        races: number of faults before which both applications copied beside each other.
    """

    def __init__(self, folder: Path, source: Cluster, destination: Cluster, seed: int) -> None:
        self.kills = self.races = 0
        self._rng, self._writes = random.Random(seed), random.Random(seed + 1)
        self._source, self._destination = source, destination
        clusters, launcher = Clusters(source, destination), LocalLauncher(folder / "applications")
        first = link_of(_NAME, clusters, folder, launcher, transforms=True)
        self._partitions = first.partitions
        for cluster in (source, destination):
            names = _TRANSACTIONS, _PLAIN, _AVRO, _DIVIDED, _BIG, _REST
            extra = [NewTopic(topic, self._partitions, 1) for topic in names]
            Admin(cluster.client_properties, "it").create(extra)
        self._policies = {
            _NAME: TopicPolicy(transform=transform(folder)),
            _TRANSACTIONS: TopicPolicy(transform=transform(folder)),
            _PLAIN: TopicPolicy(),
            _AVRO: TopicPolicy(transform=avro_records.transform(*reversed(_SCHEMAS))),
            route_name(_DIVIDED, _BIG): TopicPolicy(transform=transform(folder, when=_IS_BIG)),
            route_name(_DIVIDED, _REST): TopicPolicy(transform=transform(folder, unless=(_IS_BIG,))),
        }
        self._publish()
        self._instances = [first, instance(first, folder, 1)]

        def writer(topic: str, **how: Any) -> Writer:
            return Writer(source, topic, self._partitions, seed, **how)

        self._writers = [
            writer(_NAME),
            writer(_TRANSACTIONS, transactional=True),
            writer(_PLAIN, becomes=lambda record: record),
            writer(_AVRO, becomes=avro_records.transformed, content=_in_avro),
            writer(_DIVIDED, routes={_BIG: _if_big(True), _REST: _if_big(False)}),
        ]

    @property
    def faults(self) -> Mapping[str, Callable[[], None]]:
        """Name -> fault."""
        return {
            "a slot killed": lambda: self._kill(self._some("slot")),
            "a second process killed": lambda: self._kill(self._some("second")),
            "all workers killed": lambda: self._kill([*self._some("slot"), *self._some("second")]),
            "a driver killed": lambda: self._kill(self._some("driver")),
            "a JVM killed": lambda: self._kill(self._some("jvm")),
            "an application killed": lambda: self._kill_whole(self._one()),
            "all applications killed": lambda: self._kill_whole(*self._instances),
            "a slot suspended": lambda: self.suspend("slot"),
            "a second process suspended": lambda: self.suspend("second"),
            "a JVM suspended": lambda: self.suspend("jvm"),
            "an application suspended": lambda: self.suspend("slot", "second", "jvm", "driver"),
            "plans changed": self._publish,
            "the destination's broker killed": self.kill_the_broker,
        }

    def write(self, stop: threading.Event) -> None:
        write_until(stop, self._writers, self._writes, _PER_SECOND)

    def rage(self, minutes: float, faults: int, kills: int, say: Say) -> Mapping[str, Sequence[float]]:
        recoveries: dict[str, list[float]] = defaultdict(list)
        self._start_those_that_ended()
        self.until_copied()
        begun = spoken_at = time.monotonic()
        drawn = 0
        while drawn < faults or self.kills < kills or time.monotonic() < begun + minutes * 60:
            name = self._rng.choice(sorted(self.faults))
            self.races += all(parts(one)["slot"] for one in self._instances)
            self.faults[name]()
            self._start_those_that_ended()
            drawn += 1
            recoveries[name].append(self.until_copied(name))
            if recoveries[name][-1] > _SLOW_SECONDS:
                say(f"{time.monotonic() - begun:6.0f} s  {name}: all copied after {recoveries[name][-1]:.1f} s")
            if (now := time.monotonic()) >= spoken_at + _PROGRESS_SECONDS:
                spoken_at = now
                say(f"{now - begun:6.0f} s  {drawn} faults, {self.kills} kills, {self.races} races, last {name}")
            time.sleep(self._rng.uniform(0.0, 2.0))
        return recoveries

    def until_copied(self, after: str = "") -> float:
        """Until everything is copied that was written before this call. Returns the seconds that it took."""
        began = time.monotonic()
        wanted = {copy: list(kept) for writer in self._writers for copy, kept in writer.kept_in.items()}

        def left() -> list[int]:
            self._start_those_that_ended()
            return [n for topic, kept in wanted.items() for n in missing(self._destination, topic, kept)]

        eventually(
            lambda: not any(left()),
            what=lambda: f"all is copied after {after}: {left()} left: {[one.log() for one in self._instances]}",
            within_seconds=180.0,
        )
        return time.monotonic() - began

    def compare(self) -> int:
        """Returns how many records were copied."""
        assert_copied(self._source, self._destination, _PLAIN, self._partitions)
        clusters, records = (self._source, self._destination), 0
        for writer in self._writers:
            for copy, becomes in writer.copies.items() if writer.topic != _PLAIN else ():
                ends = *clusters, _NAME, writer.topic, self._partitions
                records += assert_transformed(*ends, route=copy if copy != writer.topic else "", becomes=becomes)
        return records

    def end(self) -> None:
        for one in self._instances:
            one.launcher.stop(_NAME, grace_seconds=0.0)

    def suspend(self, *names: str) -> None:
        """While the other application goes on, if it is well."""
        with suspended([process for name in names for process in self._some(name)]):
            time.sleep(self._rng.uniform(0.2, 8.0))

    def kill_the_broker(self) -> None:
        (broker,) = self._destination.broker_ids
        self._destination.kill(broker)
        self.kills += 1
        time.sleep(self._rng.uniform(0.0, 3.0))
        self._destination.start_broker(broker)

    def _kill(self, processes: list[psutil.Process]) -> None:
        self.kills += bool(processes)
        kill(processes)

    def _kill_whole(self, *instances: Link) -> None:
        self.kills += any(one.processes() for one in instances)
        for one in instances:
            one.kill_everything()

    def _one(self) -> Link:
        return self._instances[self._rng.randrange(len(self._instances))]

    def _some(self, name: str) -> list[psutil.Process]:
        """The processes of one application that do this; those of an application that begins may not be there yet."""
        return parts(self._one())[name]

    def _start_those_that_ended(self) -> None:
        for one in self._instances:
            started(one)

    def _publish(self) -> None:
        topics = dict.fromkeys(self._policies, self._partitions)
        publish(_NAME, self._source, self._destination, topics, slots=1, policies=self._policies)


def _in_avro(rng: random.Random, number: int) -> bytes | None:
    return avro_records.value(rng, number, rng.choice(_SCHEMAS))


def _if_big(wanted: bool) -> Becomes:
    """What becomes of a record in the copy of those whose amount is over 50, or is not."""

    def made(record: Record) -> Record | None:
        copy = transformed(record)
        return copy if copy is not None and (json.loads(record.value or b"")["amount"] > 50) is wanted else None

    return made
