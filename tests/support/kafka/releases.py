"""Releases of Kafka that links are tried between, and what each of them serves."""

import os
from dataclasses import dataclass

from strait.embedded.jars import KAFKA_VERSION


@dataclass(frozen=True, slots=True)
class Release:
    """A version, how its brokers elect a controller, and whether they are asked with topic IDs or with names."""

    version: str
    zookeeper: bool
    fetches_by_id: bool
    produces_by_id: bool

    @property
    def name(self) -> str:
        return f"{self.version}-{'zookeeper' if self.zookeeper else 'kraft'}"


def pair_name(source: Release, destination: Release) -> str:
    return f"{source.name}-to-{destination.name}"


OLDEST = Release("2.8.2", zookeeper=True, fetches_by_id=False, produces_by_id=False)
ZOOKEEPER = Release("3.3.2", zookeeper=True, fetches_by_id=True, produces_by_id=False)
KRAFT = Release("3.3.2", zookeeper=False, fetches_by_id=True, produces_by_id=False)
USUAL = Release(KAFKA_VERSION, zookeeper=False, fetches_by_id=True, produces_by_id=True)
NEWEST = Release("4.4.0", zookeeper=False, fetches_by_id=True, produces_by_id=True)
RELEASES = (OLDEST, ZOOKEEPER, KRAFT, USUAL, NEWEST)
EVERY_PAIR = tuple((source, destination) for source in RELEASES for destination in RELEASES)
_CHOSEN = os.environ.get("STRAIT_COMPAT", "").split()
"""`all`, as `make compat` has it, or the names of pairs."""
MATRIX = bool(_CHOSEN)
PAIRS = (
    tuple(pair for pair in EVERY_PAIR if _CHOSEN == ["all"] or pair_name(*pair) in _CHOSEN)
    if MATRIX
    else ((OLDEST, OLDEST),)
)
