"""Clusters that are reached through a proxy, and links whose slots know no other way to them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strait.config.app_spec import AppSpec
from strait.embedded.kafka import Cluster
from strait.embedded.kafka_nodes import Listener, Node, to_properties_file
from strait.embedded.ports import free_ports
from support.fixtures.clusters import forget_data
from support.links.engine_link import EngineLink
from support.proxy.proxy import Proxy

_FAR = "FAR"


class FarCluster(Cluster):
    """A cluster with one listener more on each broker, which tells clients to come through ``proxy``.

    ``client_properties`` lead straight to the brokers, for those who write and compare; ``far_properties`` through the
    proxy, for the slots.
    """

    def __init__(self, directory: Path, brokers: int = 1, seed: int = 1, **settings: Any) -> None:
        super().__init__(directory, brokers, listeners={_FAR: Listener(protocol="PLAINTEXT")}, **settings)
        self._doors = dict(zip(self.bootstrap_of(_FAR).split(","), map(_loopback, free_ports(brokers)), strict=True))
        routes = {_port(proxy): _port(broker) for broker, proxy in self._doors.items()}
        self.proxy = Proxy(routes, directory / "proxy.log", seed)

    @property
    def far_properties(self) -> dict[str, str]:
        return {"bootstrap.servers": ",".join(self._doors.values())}

    def _launch(self, node: Node) -> None:
        if node.client_port is not None:
            file = self._folder(node) / "server.properties"
            settings = dict(line.split("=", 1) for line in file.read_text().splitlines())
            advertised = [one for one in settings["listeners"].split(",") if not one.startswith("CONTROLLER")]
            file.write_text(
                to_properties_file(settings | {"advertised.listeners": ",".join(map(self._door, advertised))})
            )
        super()._launch(node)

    def _door(self, listener: str) -> str:
        name, address = listener.split("://")
        return f"{name}://{self._doors.get(address, address)}"


def _loopback(port: int) -> str:
    return f"127.0.0.1:{port}"


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


@dataclass
class FarLink(EngineLink):
    """A link whose slots reach far clusters through their proxies."""

    source: Cluster = field()
    destination: Cluster = field()

    @property
    def spec(self) -> AppSpec:
        return super().spec.model_copy(
            update={
                end: cluster.far_properties
                for end, cluster in (("source", self.source), ("destination", self.destination))
                if isinstance(cluster, FarCluster)
            }
        )


@contextmanager
def running(*clusters: FarCluster) -> Iterator[None]:
    """Started, proxies too, and ended on leaving."""
    with ExitStack() as stack:
        for cluster in clusters:
            stack.callback(forget_data, cluster)
            stack.enter_context(cluster)
            stack.enter_context(cluster.proxy)
        yield
