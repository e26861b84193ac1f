"""A slot's traffic by zone, for its reports: bytes that cross zones have a price."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal

from strait.net.traffic import Traffic
from strait.state.report_changes import MOST_ZONES
from strait.state.report_records import ZoneTraffic

REPORT_SECONDS = 30.0
REPEAT_SECONDS = 120.0
"""Time after which unchanged traffic is reported again, for readers that start later."""
Side = Literal["source", "destination"]


class ZoneTraffics:
    """The traffic of one slot with both clusters.

    Args:
        racks: the slot's rack in each cluster; "": unknown.
        traffic: returns rack -> bytes exchanged with its brokers, by cluster.
    """

    def __init__(self, racks: Mapping[Side, str], traffic: Callable[[], Mapping[Side, Mapping[str, Traffic]]]) -> None:
        self._racks = racks
        self._traffic = traffic
        self._told: tuple[ZoneTraffic, ...] = ()
        self._look_at = self._repeat_at = float("-inf")

    def due(self, now: float, *, last: bool = False) -> tuple[ZoneTraffic, ...] | None:
        """Return the traffic to report now; None if there is nothing to report, or no zone is known at all."""
        if now < self._look_at and not last:
            return None
        self._look_at = now + REPORT_SECONDS
        zones = self._zones()
        known = any(zone.from_zone or zone.to_zone for zone in zones)
        if not known or (zones == self._told and now < self._repeat_at and not last):
            return None
        self._told, self._repeat_at = zones, now + REPEAT_SECONDS
        return zones

    def _zones(self) -> tuple[ZoneTraffic, ...]:
        total: Counter[tuple[Side, str, str]] = Counter()
        for side, by_rack in self._traffic().items():
            own = self._racks[side]
            for rack, traffic in by_rack.items():
                total[side, rack, own] += traffic.received
                total[side, own, rack] += traffic.sent
        return tuple(
            ZoneTraffic(cluster=side, from_zone=one, to_zone=other, bytes=size)
            for (side, one, other), size in sorted(total.items())[:MOST_ZONES]
        )
