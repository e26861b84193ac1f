"""``make soak ARGS="--failovers 20"``: two clusters, a link each way, a writer, and consumers of librdkafka and Java of both
protocols, which a failover after the other sends to and fro while something is broken; at the end every record that a
consumer has processed is compared with those that were written."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from strait.control.failover import failover
from strait.state.failover_records import Failover
from support.kafka.jvm import kafka_jvm
from support.kafka.records import read_all
from support.links.clients import Clients, java_groups, librdkafka_groups
from support.links.far import FarCluster, running
from support.links.mesh import Mesh
from support.links.synchronized import synchronized

_THERE, _BACK = ("a", "b"), ("b", "a")
_STEPS = (
    "copying",
    "tail",
    "producers",
    "drain",
    "consumers",
    "groups",
    "quiet",
    "stop",
    "verify",
    "audited",
    "reverse",
)
_WITHOUT_CLIENTS = _STEPS[_STEPS.index("consumers") :]
"""Taken after consumers have left: while a broker restarts, a consumer may lose its membership, and by itself reads
again what it could not commit."""
_MOST_RUNS = 12
_STRAIT = Path(sys.executable).with_name("strait")

Say = Callable[[str], None]


class Trouble:
    """What is broken during one round, drawn at random, at a step drawn at random."""

    def __init__(self, rng: random.Random, clusters: dict[str, FarCluster]) -> None:
        self._rng = rng
        self._clusters = clusters
        kinds = {
            "nothing": (_STEPS, lambda _: None),
            "command killed": (_STEPS, self._kill),
            "broker stopped": (_WITHOUT_CLIENTS, lambda _: self._restart(FarCluster.stop_broker)),
            "broker killed": (_WITHOUT_CLIENTS, lambda _: self._restart(FarCluster.kill)),
            "1 in 100 requests cut off": (_STEPS, lambda _: None),
        }
        self.kind = rng.choice(sorted(kinds))
        steps, self._act = kinds[self.kind]
        self._after = rng.choice(steps)
        self._happened = False

    def __str__(self) -> str:
        acts = self.kind not in ("nothing", "1 in 100 requests cut off")
        return f"{self.kind} after {self._after}" if acts else self.kind

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """For as long as the block: what has no moment."""
        for cluster in self._clusters.values() if self.kind.startswith("1 in") else ():
            for way in ("request", "reply"):
                cluster.proxy.cut(way, times=None, chance=0.005, client="")
        try:
            yield
        finally:
            for cluster in self._clusters.values():
                cluster.proxy.calm()

    def at(self, step: str, command: "subprocess.Popen[str]") -> None:
        """A step is over: once, something may happen."""
        if step == self._after and not self._happened:
            self._happened = True
            self._act(command)

    def _kill(self, command: "subprocess.Popen[str]") -> None:
        """Between two steps, or a little later within the next one."""
        time.sleep(self._rng.choice((0.0, self._rng.uniform(0.0, 1.5))))
        command.kill()

    def _restart(self, end: Callable[[FarCluster, int], None]) -> None:
        """The only broker of one cluster, which leads every partition and coordinates every group."""
        cluster = self._clusters[self._rng.choice("ab")]
        end(cluster, 1)
        cluster.start_broker(1)


class Rounds:
    """Everything that is drawn comes from ``seed``."""

    def __init__(self, mesh: Mesh, clients: Clients, clusters: dict[str, FarCluster], seed: int, say: Say) -> None:
        self._mesh = mesh
        self._clients = clients
        self._clusters = clusters
        self._rng = random.Random(seed)
        self._say = say
        self._file = mesh.folder / "links.yaml"
        self._file.write_text(yaml.safe_dump(mesh.contents))

    def one(self, number: int, link: tuple[str, str]) -> None:
        """Clients work on one side until the failover has moved them to the other; both links run again then."""
        began, trouble = time.monotonic(), Trouble(self._rng, self._clusters)
        with self._clients.on(self._clusters[link[0]]):
            self._mesh.until_ready(link)
            time.sleep(self._rng.uniform(1.0, 6.0))
            with trouble.lasting():
                runs = self._until_over(link, trouble)
        record = failover.history(self._mesh.handle(link))[-1]
        _require_exact(record, len(self._clients.groups))
        self._mesh.restart(link)
        self._say(
            f"round {number}, {link[0]} to {link[1]}: {trouble}; {time.monotonic() - began:.0f} s, {runs} runs of the "
            f"command, {len(self._clients.written)} records so far"
        )

    def _until_over(self, link: tuple[str, str], trouble: Trouble) -> int:
        """Run the command until it ends well, and say how often that was."""
        for run in range(1, _MOST_RUNS + 1):
            said = self._run(link, trouble)
            if said is None:
                return run
            self._say(f"    run {run}: {said.splitlines()[-1]}")
        raise AssertionError(f"{trouble}: not over after {_MOST_RUNS} runs, the last of which said: {said}")

    def _run(self, link: tuple[str, str], trouble: Trouble) -> str | None:
        """None: it ended well; otherwise all that it said."""
        said = []
        name = self._mesh.name(_THERE)  # the way back is told by the way there
        act = ["failover", name, "--include-moved"] if link == _THERE else ["failback", name]
        words = [*act, "--config", str(self._file), "--quiet", "1s", "--timeout", "90s"]
        with subprocess.Popen(
            [_STRAIT, *words],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as command:
            assert command.stdout is not None
            for line in command.stdout:
                said.append(line)
                verdict, step, *_ = [*line.split(), "", ""]
                self._clients.asked(verdict, step)
                if verdict == "done":
                    trouble.at(step, command)
        return None if command.returncode == 0 else "".join([*said, "killed"] if command.returncode < 0 else said)


def rounds(folder: Path, count: int, seed: int, say: Say) -> int:
    """Returns the number of records. Fails if a consumer group has processed one twice or has missed one, or if a
    cluster does not hold each once."""
    say(f"seed {seed}, {count} failovers")
    began, topic = time.monotonic(), "soak.failovers"
    clusters = {name: FarCluster(folder / name, seed=seed) for name in "ab"}
    with running(*clusters.values()), kafka_jvm() as jvm:
        mesh = Mesh(
            clusters=clusters,
            links=[_THERE, _BACK],
            topic=topic,
            folder=folder,
            settings={"consumer_groups": {"include": [f"{topic}.*"], "interval_seconds": 1}},
        )
        clients = Clients(topic, mesh.partitions, [*librdkafka_groups(topic), *java_groups(jvm, topic)], seed)
        try:
            mesh.make_topics()
            for link in mesh.links:
                mesh.start(link)
            with synchronized(mesh):
                to_and_fro = Rounds(mesh, clients, clusters, seed, say)
                for number in range(count):
                    to_and_fro.one(number + 1, (_THERE, _BACK)[number % 2])
            clients.read_the_rest(clusters["ab"[count % 2]])
        finally:
            mesh.stop()
        clients.assert_each_once()
        for name, cluster in clusters.items():
            held = sorted(record.key or b"" for log in read_all(cluster, topic, mesh.partitions) for record in log)
            assert held == sorted(clients.written), f"{name} holds {len(held)} records of {len(clients.written)}"
    say(
        f"{count} failovers in {time.monotonic() - began:.0f} s: each of {len(clients.groups)} consumer groups has "
        f"processed each of {len(clients.written)} records once; seed {seed}"
    )
    return len(clients.written)


def _require_exact(record: Failover, groups: int) -> None:
    found = record.outcome, record.rpo_records, record.missing, record.groups, record.groups_exact
    assert found == ("done", 0, (), groups, groups), record
