"""A real Hadoop cluster on this machine: a ResourceManager that keeps its state, NodeManagers, and HDFS where it is asked
for; each a JVM of its own."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import psutil

from strait.embedded.jars import fetched
from strait.embedded.ports import free_ports
from strait.launch.java import find_java
from strait.launch.spark_home import find_spark_submit
from support.fixtures.waiting import eventually

VERSIONS = {"hadoop.version": "3.5.0", "bouncycastle.version": "1.82"}
"""Hadoop as PySpark has it."""

SECRET = "correct-horse-battery"
"""For tests that look where it has got to."""

_YARN = "org.apache.hadoop.yarn.server"
_HDFS = "org.apache.hadoop.hdfs.server"
_FLAGS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
_FROM_PYSPARK = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j-", "jcl-over-slf4j")
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


class Daemon:
    """One of the cluster's processes. Started again it has the ports and folders that it had."""

    def __init__(self, main: str, folder: Path, conf: Path, url: str) -> None:
        self.url = url
        self._main = main
        self._folder = folder
        self._conf = conf
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self._folder / "log"

    def start(self) -> None:
        self._process = self._begin()

    def run(self, *arguments: str) -> None:
        """The same program, to its end."""
        assert self._begin(*arguments).wait(120) == 0, self.tail()

    def _begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(find_java()), *_FLAGS, "-cp", f"{self._conf}:{_class_path()}", self._main, *arguments],
                env=os.environ | {"HADOOP_CONF_DIR": str(self._conf)},
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """As a machine that loses its power; what it has started is left to itself."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self) -> str:
        """The last that it said."""
        return self.log.read_text(errors="replace")[-3000:]


class YarnCluster:
    """See the module. ``conf`` is what others call HADOOP_CONF_DIR; ``files`` the URI of its file system, without HDFS
    that of this machine."""

    def __init__(self, folder: Path, *, nodes: int = 1, hdfs: bool = False) -> None:
        self.folder = folder
        ports = iter(free_ports(5 + 3 * nodes + 5))
        hdfs_ports = [f"127.0.0.1:{next(ports)}" for _ in range(5)]
        self.files = f"hdfs://{hdfs_ports[0]}" if hdfs else "file://"
        self._hdfs_settings = _hdfs_settings(folder, *hdfs_ports)
        names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
        self._manager = {f"yarn.resourcemanager.{name}": f"127.0.0.1:{next(ports)}" for name in names}
        self.conf = self._write_conf("conf", {})
        url = f"http://{self._manager['yarn.resourcemanager.webapp.address']}"
        self.manager = Daemon(f"{_YARN}.resourcemanager.ResourceManager", folder / "manager", self.conf, url)
        self.nodes = [self._node(number, *(next(ports) for _ in range(3))) for number in range(nodes)]
        parts = ("namenode.NameNode", "datanode.DataNode") if hdfs else ()
        self._hdfs = [Daemon(f"{_HDFS}.{part}", folder / part.split(".")[0], self.conf, "") for part in parts]

    def start(self) -> None:
        """Start all of it, and wait until the nodes have registered."""
        if self._hdfs:
            self._hdfs[0].run("-format", "-nonInteractive")
        for one in (*self._hdfs, self.manager, *self.nodes):
            one.start()
        self.until_registered(len(self.nodes))

    def until_registered(self, nodes: int) -> None:
        eventually(
            lambda: self.live_nodes() == nodes,
            what=lambda: "\n".join(one.tail() for one in (*self._hdfs, self.manager, *self.nodes)),
            within_seconds=180.0,
        )

    def live_nodes(self) -> int | None:
        """How many nodes can run containers; None while the ResourceManager does not answer."""
        said = self.ask("cluster/nodes?states=RUNNING")
        return None if said is None else len((said["nodes"] or {}).get("node", ()))

    def ask(self, what: str) -> Any:
        """The ResourceManager's answer; None while it gives none."""
        try:
            with urllib.request.urlopen(f"{self.manager.url}/ws/v1/{what}", timeout=10) as reply:  # noqa: S310
                return json.load(reply)
        except (OSError, ValueError):
            return None

    def containers(self) -> list[str]:
        """Working directories of containers."""
        return [str(path) for path in self.folder.glob("node-*/local/usercache/*/appcache/*/container_*")]

    def stop(self) -> None:
        for one in (*self.nodes, self.manager, *reversed(self._hdfs)):
            one.stop()

    def node_of(self, process: psutil.Process) -> int:
        """The number of the node that a process of a container runs on."""
        return int(Path(process.cwd()).relative_to(self.folder).parts[0].removeprefix("node-"))

    def lose_node(self, number: int) -> None:
        """Kill it and everything that it runs, as a machine that loses its power."""
        self.nodes[number].kill()
        for one in psutil.process_iter():
            with suppress(psutil.Error):
                if Path(one.cwd()).is_relative_to(self.folder / f"node-{number}"):
                    one.kill()

    def _node(self, number: int, address: int, localizer: int, web: int) -> Daemon:
        folder = self.folder / f"node-{number}"
        conf = self._write_conf(
            f"conf-{number}",
            {
                "yarn.nodemanager.hostname": "127.0.0.1",
                "yarn.nodemanager.address": f"127.0.0.1:{address}",
                "yarn.nodemanager.localizer.address": f"127.0.0.1:{localizer}",
                "yarn.nodemanager.webapp.address": f"127.0.0.1:{web}",
                "yarn.nodemanager.local-dirs": str(folder / "local"),
                "yarn.nodemanager.log-dirs": str(folder / "logs"),
                "yarn.nodemanager.recovery.dir": str(folder / "recovery"),
            },
        )
        return Daemon(f"{_YARN}.nodemanager.NodeManager", folder, conf, f"http://127.0.0.1:{web}")

    def _write_conf(self, name: str, more: dict[str, str]) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        core = {"fs.defaultFS": f"{self.files}/", "hadoop.tmp.dir": str(self.folder / "tmp")}
        (folder / "core-site.xml").write_text(_xml(core))
        (folder / "hdfs-site.xml").write_text(_xml(self._hdfs_settings))
        (folder / "yarn-site.xml").write_text(_xml(self._settings() | more))
        (folder / "log4j2.properties").write_text(_LOGGING)
        return folder

    def _settings(self) -> dict[str, str]:
        manager, store = "yarn.resourcemanager", "org.apache.hadoop.yarn.server.resourcemanager"
        return self._manager | {
            f"{manager}.hostname": "127.0.0.1",
            f"{manager}.am.max-attempts": "10",
            f"{manager}.scheduler.class": f"{store}.scheduler.fifo.FifoScheduler",
            f"{manager}.recovery.enabled": "true",
            f"{manager}.store.class": f"{store}.recovery.FileSystemRMStateStore",
            f"{manager}.fs.state-store.uri": f"file://{self.folder}/store",
            f"{manager}.nodemanagers.heartbeat-interval-ms": "200",
            # A machine with other work may start a driver slowly; whatever is shorter kills it meanwhile.
            "yarn.am.liveness-monitor.expiry-interval-ms": "180000",
            "yarn.nm.liveness-monitor.expiry-interval-ms": "30000",
            "yarn.log-aggregation-enable": "true",
            "yarn.scheduler.minimum-allocation-mb": "64",
            "yarn.nodemanager.resource.memory-mb": "8192",
            "yarn.nodemanager.resource.cpu-vcores": "8",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            # Not `enable: false`, which only stops the checks after the first one, at a start.
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            "yarn.nodemanager.remote-app-log-dir": str(self.folder / "aggregated"),
            "yarn.nodemanager.env-whitelist": "JAVA_HOME",
        }


@contextmanager
def running(folder: Path, *, nodes: int = 1, hdfs: bool = False) -> Iterator[YarnCluster]:
    """A cluster for as long as the block runs."""
    cluster = YarnCluster(folder, nodes=nodes, hdfs=hdfs)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _hdfs_settings(folder: Path, rpc: str, web: str, data: str, data_ipc: str, data_web: str) -> dict[str, str]:
    return {
        "dfs.namenode.rpc-address": rpc,
        "dfs.namenode.http-address": web,
        "dfs.datanode.address": data,
        "dfs.datanode.ipc.address": data_ipc,
        "dfs.datanode.http.address": data_web,
        "dfs.namenode.name.dir": str(folder / "names"),
        "dfs.datanode.data.dir": str(folder / "blocks"),
        "dfs.replication": "1",
    }


def _class_path() -> str:
    jars = fetched(
        f"yarn-{VERSIONS['hadoop.version']}",
        f"YARN {VERSIONS['hadoop.version']}",
        Path(__file__).with_name("ivy-yarn.xml"),
        VERSIONS,
        size=", about 66 MB",
    )
    spark = find_spark_submit().parents[1] / "jars"
    own = [str(jar) for jar in sorted(spark.glob("*.jar")) if jar.name.startswith(_FROM_PYSPARK)]
    return ":".join([f"{jars}/*", *own])


def _xml(settings: dict[str, str]) -> str:
    rows = (f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in settings.items())
    return "<configuration>\n" + "\n".join(rows) + "\n</configuration>\n"
