"""What a slot tells of the bytes that it exchanges with each zone."""

from strait.engine.zone_traffic import REPEAT_SECONDS, REPORT_SECONDS, Side, ZoneTraffics
from strait.net.traffic import Traffic
from strait.state.report_records import ZoneTraffic


def of(received: int, sent: int) -> Traffic:
    traffic = Traffic()
    traffic.received, traffic.sent = received, sent
    return traffic


def zone(cluster: Side, from_zone: str, to_zone: str, size: int) -> ZoneTraffic:
    return ZoneTraffic(cluster=cluster, from_zone=from_zone, to_zone=to_zone, bytes=size)


def test_bytes_are_told_by_where_they_come_from_and_go_to_twice_a_minute_if_there_are_more() -> None:
    seen: dict[Side, dict[str, Traffic]] = {"source": {"a": of(100, 1), "b": of(5, 2)}, "destination": {"b": of(1, 90)}}
    traffics = ZoneTraffics({"source": "a", "destination": "z"}, lambda: seen)
    first = traffics.due(0.0)
    assert first is not None
    assert set(first) == {
        zone("source", "a", "a", 101),
        zone("source", "b", "a", 5),
        zone("source", "a", "b", 2),
        zone("destination", "z", "b", 90),
        zone("destination", "b", "z", 1),
    }
    assert traffics.due(REPORT_SECONDS - 1.0) is None
    assert traffics.due(REPORT_SECONDS) is None, "it is the same"
    seen["source"]["a"].received += 1
    assert traffics.due(REPORT_SECONDS + 1.0) is None
    assert traffics.due(2 * REPORT_SECONDS) is not None
    assert traffics.due(2 * REPORT_SECONDS + REPEAT_SECONDS) is not None
    assert traffics.due(2 * REPORT_SECONDS + REPEAT_SECONDS, last=True) is not None


def test_without_any_zone_nothing_is_told() -> None:
    seen: dict[Side, dict[str, Traffic]] = {"source": {"": of(100, 1)}, "destination": {}}
    assert ZoneTraffics({"source": "", "destination": ""}, lambda: seen).due(0.0, last=True) is None
    told = ZoneTraffics({"source": "a", "destination": ""}, lambda: seen).due(0.0)
    assert told is not None and {(one.from_zone, one.to_zone) for one in told} == {("", "a"), ("a", "")}
