"""A cluster of three brokers in three racks, each behind a proxy of its own, and links whose slots are in one of them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from strait.config.app_spec import AppSpec
from strait.config.racks import in_rack
from strait.embedded.kafka_nodes import Node
from support.fixtures.clusters import forget_data
from support.links.far import FarCluster, FarLink
from support.proxy.proxy import FETCH, Proxy

RACKS = ("north", "south", "east")
"""Of brokers 1, 2 and 3."""
NEAR, NEAR_BROKER = "south", 2
"""The slots' rack, and the broker in it."""
_LAG_MS = "4000"  # a follower that is behind for longer is not in sync


class RackedCluster(FarCluster):
    """Its brokers reach each other through the proxies too; ``proxies``: by broker."""

    def __init__(self, directory: Path) -> None:
        properties = {
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "replica.lag.time.max.ms": _LAG_MS,
            "inter.broker.listener.name": "FAR",
        }
        super().__init__(directory, brokers=len(RACKS), properties=properties)
        self.proxies = {
            broker: Proxy({port(door): port(inside)}, directory / f"proxy-{broker}.log", seed=broker)
            for broker, (inside, door) in zip(self.broker_ids, self._doors.items(), strict=True)
        }

    def _launch(self, node: Node) -> None:
        if node.client_port is not None:
            with (self._folder(node) / "server.properties").open("a") as file:
                file.write(f"broker.rack={RACKS[node.id - 1]}\n")
        super()._launch(node)

    def fetched_bytes(self) -> dict[int, int]:
        """What the engine has fetched from each broker so far."""
        return {broker: proxy.passed("reply", FETCH).bytes for broker, proxy in self.proxies.items()}

    def keep_from_replicating(self, broker: int) -> None:
        """What the broker fetches from others breaks off, until ``calm``."""
        for other, proxy in self.proxies.items():
            if other != broker:
                proxy.cut("request", FETCH, after_bytes=0, times=None, client=f"broker-{broker}-fetcher")

    def calm(self) -> None:
        """All runs, and nothing breaks off any more."""
        for proxy in self.proxies.values():
            proxy.calm()
        for broker in self.broker_ids:
            self.start_broker(broker)


def port(address: str) -> int:
    return int(address.rpartition(":")[2])


@dataclass
class RackedLink(FarLink):
    """A link whose slots name their rack to the source. ``expire_ms``: how long they keep to a follower."""

    rack: str | None = NEAR
    expire_ms: int | None = None

    @property
    def spec(self) -> AppSpec:
        spec = super().spec
        source = dict(in_rack(spec.source, self.rack))
        if self.expire_ms is not None:
            source["metadata.max.age.ms"] = str(self.expire_ms)
        return spec.model_copy(update={"source": source})


@contextmanager
def running_in_racks(directory: Path) -> Iterator[RackedCluster]:
    """Started, proxies first: brokers need them to find each other."""
    cluster = RackedCluster(directory)
    with ExitStack() as stack:
        stack.callback(forget_data, cluster)
        for proxy in cluster.proxies.values():
            stack.enter_context(proxy)
        stack.enter_context(cluster)
        yield cluster


def share_of(bytes_of: dict[int, int], broker: int = NEAR_BROKER) -> float:
    """The part of the bytes that one broker has given."""
    return bytes_of[broker] / sum(bytes_of.values())


def since(before: dict[int, int], cluster: RackedCluster) -> dict[int, int]:
    """What was fetched from each broker since."""
    return {broker: size - before[broker] for broker, size in cluster.fetched_bytes().items()}
