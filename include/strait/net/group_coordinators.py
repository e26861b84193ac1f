"""The brokers that coordinate a cluster's groups: the coordinator of each group, a connection to each, and retries
while coordinators move."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

from strait.errors import ClusterUnavailable
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.brokers import Address, Brokers, any_broker, until_answered
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


class Coordinators(Brokers):
    """The group coordinators of one cluster. Keeps a connection to each broker that was queried, until `drop`.

    Every method raises ClusterUnavailable if a broker stays unavailable, and NotAuthorized if the login is rejected.
    """

    def of(self, groups: Sequence[str]) -> "list[tuple[Address | None, list[str], int]]":
        """Return (coordinator, its groups, 0), and (None, groups, error code) for groups that may not be queried."""
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
        """Raise ClusterUnavailable if the code means that the coordinator is moving."""
        if code in _MOVING:
            raise ClusterUnavailable(self.cluster, f"{doing}: {error_policy.name(code)}")

    def until_settled(self, ask: Callable[[], _T], seconds: float = _PATIENCE_SECONDS) -> _T:
        """Return the result of ``ask``, retried over new connections while brokers or coordinators are unavailable."""

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
        """Write each group's offsets, retrying for up to 5 s while its coordinator moves: after longer, a group may
        have moved. Partitions that could not be written by then have an error code.

        Args:
            write: yields each of the groups that it is given once it is done.
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
