"""Everything that may go wrong with a running link, one method for each, chosen at random by the soak.

A method breaks something, waits as long as the fault is to last, and takes it away. What it leaves to others is to find
out how soon copying goes on.
"""

import random
import signal
import subprocess
import time
from collections.abc import Callable

from strait.net.handshake import CLIENT_ID
from support.fixtures.waiting import eventually
from support.kafka.administration import asleep, elect_preferred, in_sync, quotas, reassign, replicas
from support.links.far import FarCluster, FarLink
from support.proxy.proxy import PRODUCE, Proxy


class Storm:
    """Faults for a link between two far clusters, with two copies of each slot."""

    def __init__(self, link: FarLink, source: FarCluster, destination: FarCluster, seed: int) -> None:
        self._link = link
        self._replicas = {topic: len(replicas(destination, topic)[0]) for topic in link.topics}
        self._clusters = (source, destination)
        self._rng = random.Random(seed)
        self._slots: list[tuple[int, subprocess.Popen[bytes]]] = []
        self._turn = 0

    def draw(self) -> str:
        """The name of the next fault."""
        return self._rng.choice(sorted(self.faults))

    @property
    def faults(self) -> dict[str, Callable[[], None]]:
        """Name -> fault."""
        return {
            "a slot killed": self.kill_a_slot,
            "a slot suspended": self.suspend_a_slot,
            "all connections cut": self.cut_all,
            "connections cut at random": self.cut_at_random,
            "requests delivered late": self.deliver_late,
            "nothing gets through": self.stall,
            "connections refused": self.refuse,
            "connections forgotten": self.forget,
            "a long way": self.go_far,
            "a slow line": self.slow_down,
            "a broker killed": self.kill_a_broker,
            "a broker stopped": self.stop_a_broker,
            "a follower suspended": self.suspend_a_follower,
            "replicas moved": self.move_replicas,
            "a quota": self.throttle,
            "plans changed": self.change_plans,
        }

    def begin(self) -> None:
        """Start two copies of each slot."""
        self._slots = [(slot, self._link.start_slot(slot)) for slot in (*range(self._link.slots),) * 2]

    def end(self) -> None:
        """Take away whatever is left of it, and let every topic be copied."""
        for cluster in self._clusters:
            cluster.proxy.calm()
        self._link.publish()

    def dead_slots(self) -> list[int]:
        """Slots that ended without having been killed: none may."""
        return [slot for slot, process in self._slots if process.poll() is not None]

    def kill_a_slot(self) -> None:
        place = self._rng.randrange(len(self._slots))
        slot, process = self._slots[place]
        self._link.kill(process)
        self._slots[place] = (slot, self._link.start_slot(slot))

    def suspend_a_slot(self) -> None:
        _, process = self._rng.choice(self._slots)
        process.send_signal(signal.SIGSTOP)
        self._last(0.2, 5.0)
        process.send_signal(signal.SIGCONT)

    def cut_all(self) -> None:
        self._proxy().cut_all()

    def cut_at_random(self) -> None:
        proxy, way = self._proxy(), self._rng.choice(["request", "reply"])
        proxy.cut(way, times=20, chance=0.1, client="")
        self._last(1.0, 4.0)
        proxy.calm()

    def deliver_late(self) -> None:
        """Also of old records, which these brokers forget each second: within the time for which a copy waits whether
        what it sent still arrives."""
        proxy = self._clusters[1].proxy
        for _ in range(self._rng.randrange(1, 6)):
            proxy.hold(PRODUCE, seconds=self._rng.uniform(0.0, 2.0), skip=self._rng.randrange(10))
        self._last(1.0, 4.0)
        proxy.calm()

    def stall(self) -> None:
        proxy = self._proxy()
        proxy.stall()
        self._last(0.5, 5.0)
        proxy.calm()

    def refuse(self) -> None:
        proxy = self._proxy()
        proxy.refuse()
        proxy.cut_all()
        self._last(0.5, 5.0)
        proxy.calm()

    def forget(self) -> None:
        self._proxy().forget_all()

    def go_far(self) -> None:
        proxy = self._proxy()
        proxy.delay(0.1)
        self._last(2.0, 6.0)
        proxy.calm()

    def slow_down(self) -> None:
        proxy = self._proxy()
        proxy.limit(1e6)
        self._last(2.0, 6.0)
        proxy.calm()

    def kill_a_broker(self) -> None:
        cluster = self._rng.choice(self._clusters)
        broker = self._rng.choice(cluster.broker_ids)
        cluster.kill(broker)
        self._last(0.0, 4.0)
        self._bring_back(cluster, broker)

    def stop_a_broker(self) -> None:
        cluster = self._rng.choice(self._clusters)
        broker = self._rng.choice(cluster.broker_ids)
        cluster.stop_broker(broker)
        self._last(0.0, 4.0)
        self._bring_back(cluster, broker)

    def suspend_a_follower(self) -> None:
        """What its leaders append stays above the high watermark meanwhile; those that it leads stand still."""
        cluster = self._clusters[1]
        with asleep(cluster, self._rng.choice(cluster.broker_ids)):
            self._last(0.5, 6.0)

    def move_replicas(self) -> None:
        cluster = self._clusters[1]
        topic = self._rng.choice(sorted(self._link.topics))
        brokers = list(cluster.broker_ids)
        wanted = [self._rng.sample(brokers, self._replicas[topic]) for _ in range(self._link.topics[topic])]
        reassign(cluster, topic, wanted)
        elect_preferred(cluster, topic)

    def throttle(self) -> None:
        cluster = self._rng.choice(self._clusters)
        limits = {"producer_byte_rate": 300_000.0, "consumer_byte_rate": 300_000.0}
        with quotas(cluster, CLIENT_ID, limits):
            self._last(2.0, 5.0)

    def change_plans(self) -> None:
        topics = sorted(self._link.topics)
        for _ in range(self._rng.randrange(1, 4)):
            self._turn += 1
            self._link.publish(self._rng.sample(topics, self._rng.randrange(1, len(topics) + 1)), turn=self._turn)
            self._last(0.2, 1.5)
        self._link.publish(turn=self._turn)

    def _proxy(self) -> Proxy:
        return self._rng.choice(self._clusters).proxy

    def _last(self, shortest: float, longest: float) -> None:
        """The fault's own time."""
        time.sleep(self._rng.uniform(shortest, longest))

    def _bring_back(self, cluster: FarCluster, broker: int) -> None:
        """In sync too: the next broker that is killed must not be the last one with a record."""
        cluster.start_broker(broker)
        for topic in self._link.topics:
            eventually(
                lambda topic=topic: in_sync(cluster, topic) == replicas(cluster, topic),
                what=lambda topic=topic: f"{topic} is in sync on {replicas(cluster, topic)}: {in_sync(cluster, topic)}",
            )
