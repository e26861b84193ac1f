"""What the brokers of one end of a link lack."""

from collections.abc import Mapping
from typing import NamedTuple

from strait.errors import ClusterError, ProtocolError, StraitError
from strait.net.addresses import parse_addresses
from strait.net.bootstrap import Address, any_broker, broker_at
from strait.net.cluster_facts import every_address
from strait.net.served import End, Need, missing


class Surveyed(NamedTuple):
    """Of one cluster.

    Attributes:
        brokers: those that were asked.
        lacks: with the addresses of the brokers that lack it, those first without which nothing can be copied.
        unasked: brokers that could not be asked -> why.
    """

    brokers: tuple[str, ...]
    lacks: tuple[tuple[Need, tuple[str, ...]], ...]
    unasked: Mapping[str, str]

    @property
    def copies(self) -> bool:
        """Whether all that were asked serve what copying needs, and one was."""
        return bool(self.brokers) and not any(need.is_required for need, _ in self.lacks)


def survey(properties: Mapping[str, str], cluster: str, end: End) -> Surveyed:
    """Ask each broker for the requests that it serves. What cannot be reached is said."""
    brokers: list[str] = []
    lacks: dict[Need, list[str]] = {}
    unasked: dict[str, str] = {}
    try:
        addresses = _addresses(properties, cluster)
    except StraitError as error:
        return Surveyed((), (), {cluster: str(error)})
    for address in addresses:
        where = f"{address[0]}:{address[1]}"
        try:
            with broker_at(properties, cluster, address) as connection:
                brokers.append(where)
                for need in missing(connection.versions, end):
                    lacks.setdefault(need, []).append(where)
        except (ClusterError, ProtocolError) as error:
            unasked[where] = str(error)
    first = sorted(lacks.items(), key=lambda item: not item[0].is_required)
    return Surveyed(tuple(brokers), tuple((need, tuple(where)) for need, where in first), unasked)


def _addresses(properties: Mapping[str, str], cluster: str) -> list[Address]:
    """Of all brokers, as far as they can be known. Raises ClusterUnavailable, NotAuthorized where nobody answers."""
    try:
        return every_address(properties, cluster)
    except ProtocolError:  # it does not even say who the brokers are
        with any_broker(properties, cluster):
            return parse_addresses(cluster, properties["bootstrap.servers"])
