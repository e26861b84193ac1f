"""Survey of the requests that the brokers of one end of a link lack."""

from collections.abc import Mapping
from typing import NamedTuple

from strait.errors import ClusterError, ProtocolError, StraitError, UnsupportedRequest
from strait.net.addresses import parse_addresses
from strait.net.brokers import Address, any_broker, broker_at, every_address
from strait.net.served import End, Need, missing


class Lack(NamedTuple):
    """A missing request.

    Attributes:
        name: of the request, with its versions if others are served.
        brokers: addresses of the brokers that lack it.
    """

    need: Need
    name: str
    brokers: tuple[str, ...]


class Surveyed(NamedTuple):
    """The result for one cluster.

    Attributes:
        brokers: addresses of the brokers that were queried.
        lacks: missing requests; those without which nothing can be copied come first.
        unasked: brokers that could not be queried -> why.
    """

    brokers: tuple[str, ...]
    lacks: tuple[Lack, ...]
    unasked: Mapping[str, str]

    @property
    def copies(self) -> bool:
        """Whether at least one broker was queried, and all queried brokers serve the requests that copying needs."""
        return bool(self.brokers) and not any(lack.need.is_required for lack in self.lacks)


def survey(properties: Mapping[str, str], cluster: str, end: End) -> Surveyed:
    """Query each broker for the requests that it serves. Unreachable brokers are listed in ``unasked``."""
    brokers: list[str] = []
    lacks: dict[tuple[Need, str], list[str]] = {}
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
                    lacks.setdefault((need, need.named(connection.versions)), []).append(where)
        except (ClusterError, ProtocolError) as error:
            unasked[where] = str(error)
    found = [Lack(need, name, tuple(where)) for (need, name), where in lacks.items()]
    return Surveyed(tuple(brokers), tuple(sorted(found, key=lambda lack: not lack.need.is_required)), unasked)


def require_served(properties: Mapping[str, str], cluster: str, end: End) -> None:
    """Raise UnsupportedRequest unless a broker serves every request without which nothing can be copied. One broker is
    queried.

    Raises (besides):
        ClusterUnavailable, NotAuthorized: no broker answers.
    """
    with any_broker(properties, cluster) as connection:
        lacks = [need.request for need in missing(connection.versions, end) if need.is_required]
    if lacks:
        raise UnsupportedRequest(
            f"cluster {cluster}: its brokers do not serve {', '.join(lacks)}: nothing can be copied as {end}",
            hint="`strait validate --connect` lists what each broker lacks",
        )


def _addresses(properties: Mapping[str, str], cluster: str) -> list[Address]:
    """Return the addresses of all brokers, as far as they can be determined. Raises ClusterUnavailable, NotAuthorized
    if no broker answers."""
    try:
        return every_address(properties, cluster)
    except ProtocolError:  # the broker does not even list the others
        with any_broker(properties, cluster):
            return parse_addresses(cluster, properties["bootstrap.servers"])
