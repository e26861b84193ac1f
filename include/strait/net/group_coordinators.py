"""The brokers that coordinate a cluster's groups: which group is whose, a connection to each, and patience while they
move."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

from strait.errors import ClusterUnavailable
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.bootstrap import Address, any_broker, broker_at, until_answered
from strait.net.handshake import Connection
from strait.pieces import pieces
from strait.wire import error_codes

_FIND_COORDINATOR = (10, 1, 4)
_MANY_KEYS = 4
_COORDINATORS_AT_ONCE = 500
_PATIENCE_SECONDS = 30.0
_COMMIT_SECONDS = 5.0
_MOVING = frozenset(
    {
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
        error_codes.REQUEST_TIMED_OUT,
    }
)

Codes = dict[TopicPartition, int]
"""Error codes: 0 for a partition that was written."""
_T = TypeVar("_T")
_Offsets = TypeVar("_Offsets", bound=Mapping[TopicPartition, Any])


class Coordinators:
    """Of one cluster. Keeps a connection to each broker that was asked, until they are dropped.

    Every method raises ClusterUnavailable where a broker stays away, and NotAuthorized where the login is refused.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self.properties = properties
        self.cluster = cluster
        self._connections: dict[Address, Connection] = {}
        self._open = ExitStack()

    def at(self, address: Address) -> Connection:
        """A connection to this very broker."""
        if address not in self._connections:
            broker = broker_at(self.properties, self.cluster, address)
            self._connections[address] = self._open.enter_context(broker)
        return self._connections[address]

    def of(self, groups: Sequence[str]) -> "list[tuple[Address | None, list[str], int]]":
        """(coordinator, its groups, 0), and (None, groups, error code) for those that may not be asked about."""
        found: dict[tuple[Address | None, int], list[str]] = defaultdict(list)
        if not groups:
            return []
        with any_broker(self.properties, self.cluster) as connection:
            version = connection.version(*_FIND_COORDINATOR)
            for some in pieces(groups, _COORDINATORS_AT_ONCE if version >= _MANY_KEYS else 1):
                keys: dict[str, Any] = {"coordinator_keys": list(some)} if version >= _MANY_KEYS else {"key": some[0]}
                reply: Any = connection.ask(
                    FindCoordinatorRequest(version=version, key_type=0, **keys), FindCoordinatorResponse
                )
                told = {item.key: item for item in reply.coordinators} if version >= _MANY_KEYS else {some[0]: reply}
                for name in some:
                    code = int(told[name].error_code)
                    self.settled(code, f"finding the coordinator of group {name}")
                    address = None if code else (str(told[name].host), int(told[name].port))
                    found[address, code].append(name)
        return [(address, names, code) for (address, code), names in found.items()]

    def settled(self, code: int, doing: str) -> None:
        """Raises ClusterUnavailable for a code that says that the coordinator moves."""
        if code in _MOVING:
            raise ClusterUnavailable(self.cluster, f"{doing}: {error_policy.name(code)}")

    def until_settled(self, ask: Callable[[], _T], seconds: float = _PATIENCE_SECONDS) -> _T:
        """Ask again, over new connections, while brokers or coordinators are away."""

        def once() -> _T:
            try:
                return ask()
            except ClusterUnavailable:
                self.drop()
                raise

        return until_answered(once, seconds)

    def until_written(
        self,
        wanted: Mapping[str, _Offsets],
        write: Callable[[Mapping[str, _Offsets]], Iterator[tuple[str, Codes]]],
    ) -> dict[str, Codes]:
        """Write what is wanted of each group, again while its coordinator moves, for a few seconds: after longer, a
        group may have moved. What could not be written by then has an error code.

        Args:
            write: each group that was given once it is done.
        """
        left, done = dict(wanted), dict[str, Codes]()

        def once() -> None:
            for name, codes in write(dict(left)):
                done[name] = codes
                moving = next((code for code in codes.values() if code in _MOVING), 0)
                if not moving:
                    del left[name]
            if left:
                raise ClusterUnavailable(
                    self.cluster, f"committing for group {next(iter(left))}: its coordinator moves"
                )

        try:
            self.until_settled(once, _COMMIT_SECONDS)
        except ClusterUnavailable:
            if not done:
                raise
            done |= {name: dict.fromkeys(wanted[name], error_codes.REQUEST_TIMED_OUT) for name in left.keys() - done}
        return done

    def drop(self) -> None:
        """Close all connections."""
        self._connections.clear()
        self._open.close()
