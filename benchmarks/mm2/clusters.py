"""The two clusters of a run: of how many brokers, and with or without TLS for all of their clients."""

from pathlib import Path

import psutil

from strait.embedded.kafka import Cluster
from strait.embedded.kafka_nodes import Listener
from support.security.pki import Authority

BROKER_HEAP_MIB = min(3072, psutil.virtual_memory().total >> 23)
"""At most an eighth of the machine's memory for each cluster: brokers take all of theirs at once, and most of the rest
is to be a cache."""
_PROPERTIES = {"log.segment.delete.delay.ms": "1000", "log.retention.hours": "-1"}
_TLS = "TLS"


class _TlsCluster(Cluster):
    """Clients come through the TLS listener; brokers among themselves do without."""

    trust: Path

    @property
    def client_properties(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_of(_TLS),
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.trust),
        }


def make_cluster(folder: Path, brokers: int, *, tls: bool) -> Cluster:
    """One that is not started. Its brokers share the heap of a cluster of one."""
    heap_mib = BROKER_HEAP_MIB // brokers
    if not tls:
        return Cluster(folder, brokers, _PROPERTIES, heap_mib, optimized=True)
    folder.mkdir()
    authority = Authority("bench")
    identity = authority.issue("broker")
    trust, store = folder / "authority.pem", folder / "broker.pem"
    trust.write_text(authority.pem)
    store.write_text(identity.key_pem() + identity.pem)
    shown = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    listeners = {_TLS: Listener(protocol="SSL", properties=shown)}
    cluster = _TlsCluster(folder, brokers, _PROPERTIES, heap_mib, listeners=listeners, optimized=True)
    cluster.trust = trust
    return cluster
