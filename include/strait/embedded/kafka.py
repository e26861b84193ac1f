"""Real Kafka clusters on this machine: brokers as child processes, listening on loopback only."""

import base64
import os
import signal
import socket
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from strait.embedded import jars
from strait.embedded.detached import Detached, start_leashed
from strait.embedded.kafka_nodes import (
    Layout,
    Listener,
    Node,
    make_nodes,
    other_port_count,
    server_properties,
    to_properties_file,
)
from strait.embedded.ports import free_ports, require_free
from strait.embedded.waiting import patience, wait_for
from strait.errors import SetupError
from strait.launch.java import find_java

_NO_ENTRIES: Mapping[str, str] = MappingProxyType({})
_NO_LISTENERS: Mapping[str, Listener] = MappingProxyType({})
_LAYOUT_FILE = "cluster.json"
_START_SECONDS = 90.0
_STOP_SECONDS = 10.0
_CONTROLLER_HEAP_MIB = 128
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# As in Kafka's documentation (Operations, Java Version), with all of the heap and half of it for new objects.
_PRODUCTION = (
    "-XX:+AlwaysPreTouch",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:G1HeapRegionSize=16M",
    "-XX:+ExplicitGCInvokesConcurrent",
    # G1 starts with 5 % for new objects, and needs many minutes to learn that it may use more: until then it collects
    # every three seconds, and each of its pauses is twenty times a record's latency. A broker that runs for days has
    # learned this.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:G1NewSizePercent=50",
)


class Cluster:
    """A Kafka cluster whose data, settings and logs are all in ``directory``.

    Brokers have the IDs 1, 2, …, which ``kill``, ``stop_broker``, ``start_broker``, ``pid`` and ``log`` take. A broker
    keeps its port and its data when it is stopped, killed and started again. ``properties`` are added to each node's
    settings and override those set here. ``users`` (name -> password) makes clients authenticate with SASL PLAIN;
    ``client_properties`` then holds the first user's credentials. ``listeners`` (name, in capitals -> definition) are
    opened in addition, see `bootstrap_of`; ``jvm_options`` are given to every node's JVM, and ``environment`` is added
    to its process's environment. ``optimized`` is for measurements: the JVM as in production, slower to warm up.
    ``ports`` are those for clients, one for each broker; without it free ones are taken. ``version`` is Kafka's;
    ``zookeeper`` runs a version before 4.0 on ZooKeeper instead of KRaft.

    Brokers die with the process that started them, however it ends, unless ``detached``: those run until ``stop`` is
    called, also on ``Cluster.attach(directory)`` in another process.
    """

    def __init__(
        self,
        directory: Path,
        brokers: int = 1,
        properties: Mapping[str, str] = _NO_ENTRIES,
        heap_mib: int = 256,
        ports: Sequence[int] | None = None,
        *,
        users: Mapping[str, str] = _NO_ENTRIES,
        listeners: Mapping[str, Listener] = _NO_LISTENERS,
        jvm_options: Sequence[str] = (),
        environment: Mapping[str, str] = _NO_ENTRIES,
        optimized: bool = False,
        detached: bool = False,
        version: str = jars.KAFKA_VERSION,
        zookeeper: bool = False,
    ) -> None:
        client_ports = list(free_ports(brokers) if ports is None else ports)
        if brokers < 1 or len(client_ports) != brokers:
            raise ValueError(f"{brokers} brokers and {len(client_ports)} ports")
        others = free_ports(other_port_count(brokers, authenticated=bool(users), listeners=listeners))
        self.directory = directory.resolve()
        self._layout = Layout(
            cluster_id=base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
            nodes=make_nodes(client_ports, others, authenticated=bool(users), listeners=listeners, zookeeper=zookeeper),
            properties=dict(properties),
            users=dict(users),
            listeners=dict(listeners),
            jvm_options=tuple(jvm_options),
            environment=dict(environment),
            heap_mib=heap_mib,
            optimized=optimized,
            detached=detached,
            version=version,
            zookeeper=zookeeper,
        )

    @classmethod
    def attach(cls, directory: Path) -> Self:
        """Return the cluster that any process started in ``directory`` before; it may be running or not."""
        file = directory / _LAYOUT_FILE
        try:
            layout = Layout.model_validate_json(file.read_bytes())
        except FileNotFoundError as error:
            raise SetupError(f"embedded Kafka: {directory} holds no cluster") from error
        cluster = cls.__new__(cls)
        cluster.directory = directory.resolve()
        cluster._layout = layout  # noqa: SLF001 - it is our own
        return cluster

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every node that does not run, and return when every broker answers.

        Raises:
            SetupError: no Java, a port in use, or a node ended or did not answer in time. Nothing is left running then.
        """
        missing = [node for node in self._layout.nodes if self._process(node).pid is None]
        try:
            for node in missing:
                for port in node.ports:
                    require_free(port, f"embedded Kafka {node.name}")
            self._prepare(missing)
            for node in missing:
                self._launch(node)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every node, brokers first: they hand over to the controller. Data and settings stay."""
        brokers = self._layout.brokers
        with ThreadPoolExecutor(len(brokers)) as pool:
            list(pool.map(lambda node: self._end(node, signal.SIGTERM), brokers))
        self._end(self._layout.controller, signal.SIGTERM)

    def start_broker(self, broker: int) -> None:
        """Start a broker again, and return when the cluster lists it."""
        node = self._broker(broker)
        if self._process(node).pid is None:
            for port in node.ports:
                require_free(port, f"embedded Kafka {node.name}")
            self._launch(node)
        self._wait_until_ready()

    def stop_broker(self, broker: int) -> None:
        """Stop a broker in order: it hands its partitions over first."""
        self._end(self._broker(broker), signal.SIGTERM)

    def kill(self, broker: int) -> None:
        """Kill a broker immediately, as a crash would (SIGKILL)."""
        self._end(self._broker(broker), signal.SIGKILL)

    def pid(self, broker: int) -> int | None:
        """Return a broker's pid; None while it does not run."""
        return self._process(self._broker(broker)).pid

    def log(self, broker: int) -> Path:
        """Return a broker's log file."""
        return self._folder(self._broker(broker)) / "server.log"

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """IDs of the brokers: 1, 2, …"""
        return tuple(node.id for node in self._layout.brokers)

    @property
    def running(self) -> bool:
        """Whether every node's process runs."""
        return all(self._process(node).pid is not None for node in self._layout.nodes)

    @property
    def bootstrap(self) -> str:
        """All brokers as ``host:port,…``."""
        return ",".join(f"127.0.0.1:{node.client_port}" for node in self._layout.brokers)

    def bootstrap_of(self, listener: str) -> str:
        """Return all brokers as ``host:port,…`` at one of the further listeners."""
        return ",".join(f"127.0.0.1:{node.further_ports[listener]}" for node in self._layout.brokers)

    @property
    def client_properties(self) -> dict[str, str]:
        """The properties that a client needs, by librdkafka's names."""
        properties = {"bootstrap.servers": self.bootstrap}
        if self._layout.users:
            name, password = next(iter(self._layout.users.items()))
            properties |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": name,
                "sasl.password": password,
            }
        return properties

    def _broker(self, broker: int) -> Node:
        for node in self._layout.brokers:
            if node.id == broker:
                return node
        raise ValueError(f"no broker {broker}; there are {self.broker_ids}")

    def _folder(self, node: Node) -> Path:
        return self.directory / node.name

    def _process(self, node: Node) -> Detached:
        return Detached(self._folder(node) / "process.json")

    def _prepare(self, nodes: Sequence[Node]) -> None:
        """Write settings and, without ZooKeeper, format the data directories of nodes that have none."""
        self.directory.mkdir(parents=True, exist_ok=True)
        _write_private(self.directory / _LAYOUT_FILE, self._layout.model_dump_json(indent=2))
        fresh = [node for node in nodes if not (self._folder(node) / "data").exists()]
        for node in fresh:
            folder = self._folder(node)
            (folder / "tmp").mkdir(parents=True)
            settings = server_properties(self._layout, node, folder / "data")
            _write_private(folder / "server.properties", to_properties_file(settings))
        if self._layout.zookeeper:
            return
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._format, fresh))

    def _format(self, node: Node) -> None:
        # As one argument: an ID may start with "-", which alone would be taken for an option.
        named = f"--cluster-id={self._layout.cluster_id}"
        tool = [*self._java(node, 64, self._quick()), "kafka.tools.StorageTool", "format", named]
        done = subprocess.run(
            [*tool, "--config", self._folder(node) / "server.properties"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_START_SECONDS * patience(),
        )
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()
            raise SetupError(f"embedded Kafka {node.name}: formatting its storage: {said}")

    def _launch(self, node: Node) -> None:
        folder = self._folder(node)
        heap_mib = _CONTROLLER_HEAP_MIB if node.client_port is None else self._layout.heap_mib
        flags = (f"-Xms{heap_mib}m", *_PRODUCTION) if self._layout.optimized else self._quick()
        zookeeper = self._layout.zookeeper and node.client_port is None
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain" if zookeeper else "kafka.Kafka"
        command = [*self._java(node, heap_mib, flags), main, str(folder / "server.properties")]
        process = self._process(node)
        start = process.start if self._layout.detached else partial(start_leashed, process)
        start(command, environment=os.environ | self._layout.environment, log=folder / "jvm.out", directory=folder)

    def _quick(self) -> Sequence[str]:
        """Return options for a JVM that starts fast and does little."""
        usual = self._layout.version == jars.KAFKA_VERSION and not self._layout.jvm_options
        archive = jars.class_data() if usual else None
        return (*_QUICK, f"-XX:SharedArchiveFile={archive}") if archive and archive.is_file() else _QUICK

    def _java(self, node: Node, heap_mib: int, flags: Sequence[str]) -> list[str]:
        folder = self._folder(node)
        return [
            str(find_java()),
            f"-Xmx{heap_mib}m",
            *flags,
            "-XX:+ExitOnOutOfMemoryError",  # otherwise a broker keeps running without some threads
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={folder / 'tmp'}",  # native codecs unpack themselves there
            f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}",
            f"-Dlog4j.configuration=file:{Path(__file__).parent / 'log4j1.properties'}",  # before 4.0
            f"-Dstrait.log={folder / 'server.log'}",
            *self._layout.jvm_options,
            *("-cp", jars.classpath(self._layout.version)),
        ]

    def _wait_until_ready(self) -> None:
        """Wait until the cluster lists every broker that runs, and each of them answers."""
        waiting = {node.id: node for node in self._layout.brokers if self._process(node).pid is not None}
        quick = {"reconnect.backoff.ms": "20", "reconnect.backoff.max.ms": "200", "log_level": "0"}

        def ready() -> bool:
            for node in waiting.values():
                if self._process(node).pid is None:
                    raise SetupError(f"embedded Kafka {node.name}: ended while starting:\n{self._last_lines(node)}")
            # First the port: it opens after the broker has registered again, so an entry from before its restart
            # cannot be mistaken for this one.
            return all(map(_listens, waiting.values())) and set(waiting) <= _known_brokers(
                # A new one each time: a client that takes a dead broker for the controller keeps querying it.
                AdminClient(self.client_properties | quick)
            )

        wait_for("embedded Kafka: starting", _START_SECONDS, ready, hint=f"read the logs in {self.directory}")

    def _last_lines(self, node: Node, count: int = 8) -> str:
        """Return lines of a node's log, from the first error on; without one its last lines."""
        folder = self._folder(node)
        for file in (folder / "server.log", folder / "jvm.out"):
            if file.exists():
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
                telling = [line for line in lines if not line.startswith("\tat ")]
                errors = [at for at, line in enumerate(telling) if " ERROR " in line or " FATAL " in line]
                if telling:
                    begin = errors[0] if errors else max(0, len(telling) - count)
                    return "\n".join(f"  {line}" for line in telling[begin : begin + count])
        return f"  {folder} has no log"

    def _end(self, node: Node, signal_number: signal.Signals) -> None:
        self._process(node).stop(signal_number, grace_seconds=_STOP_SECONDS)


def _listens(broker: Node) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", broker.client_port)) == 0


def _known_brokers(admin: AdminClient) -> set[int]:
    """Return the IDs of the brokers that the cluster lists; empty while nothing answers."""
    try:
        return {node.id for node in admin.describe_cluster(request_timeout=2).result().nodes}
    except KafkaException:
        return set()


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, since settings hold passwords."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
