"""The nodes of an embedded Kafka cluster and the configuration of each. Pure: nothing is started here.

A single broker is its own controller. Several brokers share a dedicated controller, so that any broker can be killed
without the cluster losing its controller. On ZooKeeper, which only brokers before 4.0 support, ZooKeeper takes the
place of that controller.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from strait.embedded.jars import KAFKA_VERSION

CONTROLLER_ID = 100


class Listener(BaseModel):
    """A further listener for clients. ``properties`` are Kafka's own, such as `ssl.client.auth`, for this listener
    alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    properties: dict[str, str] = {}


class Node(BaseModel):
    """One process. Brokers have a client port; the node that is (also) the controller has a controller port."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: int
    client_port: int | None = None
    inter_broker_port: int | None = None  # only if clients must authenticate: brokers need not
    controller_port: int | None = None
    further_ports: dict[str, int] = {}  # of further listeners: name -> port

    @property
    def ports(self) -> tuple[int, ...]:
        """Every port that it listens on."""
        every = (self.client_port, self.inter_broker_port, self.controller_port, *self.further_ports.values())
        return tuple(port for port in every if port is not None)

    @property
    def name(self) -> str:
        """Human-readable name, for errors and directory names."""
        return "controller" if self.client_port is None else f"broker-{self.id}"


class Layout(BaseModel):
    """A whole cluster, as written to its directory for later processes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cluster_id: str
    nodes: tuple[Node, ...]
    properties: dict[str, str]
    users: dict[str, str]
    listeners: dict[str, Listener] = {}
    jvm_options: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    heap_mib: int
    optimized: bool
    detached: bool
    version: str = KAFKA_VERSION
    zookeeper: bool = False

    @property
    def brokers(self) -> tuple[Node, ...]:
        """The nodes without the dedicated controller."""
        return tuple(node for node in self.nodes if node.client_port is not None)

    @property
    def controller(self) -> Node:
        """The only member of the quorum, or ZooKeeper."""
        return next(node for node in self.nodes if node.controller_port is not None)


def make_nodes(
    client_ports: list[int],
    other_ports: list[int],
    *,
    authenticated: bool,
    listeners: Collection[str] = (),
    zookeeper: bool = False,
) -> tuple[Node, ...]:
    """Return the nodes with their ports. ``other_ports`` are those needed besides, as many as ``other_port_count``
    returns."""
    spare = iter(other_ports)
    alone = len(client_ports) == 1 and not zookeeper
    brokers = tuple(
        Node(
            id=node_id,
            client_port=port,
            inter_broker_port=next(spare) if authenticated else None,
            controller_port=next(spare) if alone else None,
            further_ports={name: next(spare) for name in listeners},
        )
        for node_id, port in enumerate(client_ports, start=1)
    )
    return brokers if alone else (Node(id=CONTROLLER_ID, controller_port=next(spare)), *brokers)


def other_port_count(brokers: int, *, authenticated: bool, listeners: Collection[str] = ()) -> int:
    """Return the number of ports besides each broker's first: the controller's, those between brokers, those of further
    listeners."""
    return 1 + brokers * (authenticated + len(listeners))


def server_properties(layout: Layout, node: Node, data: Path) -> dict[str, str]:
    """Return this node's own settings. The caller's ``properties`` override all of Kafka's."""
    if layout.zookeeper and node.client_port is None:
        return _zookeeper_properties(node, data)
    settings = {
        **(_on_zookeeper(layout, node) if layout.zookeeper else _on_kraft(layout, node)),
        "log.dirs": str(data),
        **_defaults(min(len(layout.brokers), 3)),
        **_listeners(layout, node),
    }
    return settings | layout.properties


def _on_kraft(layout: Layout, node: Node) -> dict[str, str]:
    return {
        "node.id": str(node.id),
        "process.roles": ",".join(
            role
            for role, port in (("broker", node.client_port), ("controller", node.controller_port))
            if port is not None
        ),
        "controller.quorum.voters": f"{layout.controller.id}@127.0.0.1:{layout.controller.controller_port}",
        "controller.listener.names": "CONTROLLER",
    }


def _on_zookeeper(layout: Layout, node: Node) -> dict[str, str]:
    return {
        "broker.id": str(node.id),
        "zookeeper.connect": f"127.0.0.1:{layout.controller.controller_port}",
        "zookeeper.connection.timeout.ms": "60000",  # it starts at the same time
        "zookeeper.session.timeout.ms": "5000",
    }


def _zookeeper_properties(node: Node, data: Path) -> dict[str, str]:
    return {
        "clientPort": str(node.controller_port),
        "clientPortAddress": "127.0.0.1",
        "dataDir": str(data),
        "admin.enableServer": "false",
        "maxClientCnxns": "0",
        "tickTime": "1000",
    }


def to_properties_file(settings: Mapping[str, str]) -> str:
    """Format settings in the syntax of Java's properties files."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in sorted(settings.items()))


def _defaults(replication_factor: int) -> dict[str, str]:
    factor = str(replication_factor)
    return {
        "auto.create.topics.enable": "false",  # a misspelled topic must be an error
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # A killed broker loses its leaderships, and may register again, only after this time; the default is 9 s.
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "1000",
        "log.cleaner.dedupe.buffer.size": str(16 << 20),  # the default is half of our heap
    }


def _listeners(layout: Layout, node: Node) -> dict[str, str]:
    """Return the settings of the listeners: each has a name, a port and a protocol."""
    listeners: dict[str, tuple[int | None, str]] = {"CONTROLLER": (node.controller_port, "PLAINTEXT")}
    if layout.users:
        listeners["CLIENT"] = (node.client_port, "SASL_PLAINTEXT")
        listeners["INTERNAL"] = (node.inter_broker_port, "PLAINTEXT")
    else:
        listeners["CLIENT"] = (node.client_port, "PLAINTEXT")
    for name, listener in layout.listeners.items():
        listeners[name] = (node.further_ports.get(name), listener.protocol)
    here = {name: port for name, (port, _) in listeners.items() if port is not None}
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in here.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, (_, protocol) in listeners.items()),
    }
    if node.client_port is not None:
        settings["inter.broker.listener.name"] = "INTERNAL" if layout.users else "CLIENT"
        settings |= _authentication(layout.users)
        settings |= {
            f"listener.name.{name.lower()}.{key}": value
            for name, listener in layout.listeners.items()
            for key, value in listener.properties.items()
        }
    return settings


def _authentication(users: Mapping[str, str]) -> dict[str, str]:
    if not users:
        return {}
    passwords = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {passwords};"
        ),
    }
