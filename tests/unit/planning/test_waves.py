"""Which topics and groups a wave takes, and which ones earlier waves have moved."""

import json
from typing import Any

import pytest

from strait.errors import ConfigError
from strait.planning.waves import WHOLE_LINK, Wave, moved_topics, wave_of
from strait.state.codec import decode, encode
from strait.state.failover_records import Failover, FailoverTopic
from strait.state.schema import Pause


def record(number: str, *topics: str, wave: tuple[str, ...] = (".*",), outcome: Any = "done") -> Failover:
    short = tuple(FailoverTopic(topic=topic, partitions=1, missing=0) for topic in topics)
    given: dict[str, Any] = {"id": number, "link": "l", "source": "a", "destination": "b", "kind": "planned", "by": "x"}
    more = {"turn": "t", "strait_version": "1", "began_at_ms": 1, "topics": short, "wave_topics": wave}
    return Failover(**given, **more, outcome=outcome)


def pause(topic: str, reason: str, partition: int | None = None) -> Pause:
    return Pause(topic=topic, partition=partition, by="x", at_ms=1, reason=reason)


def test_names_are_matched_whole() -> None:
    wave = Wave.of(["orders", "pay-.*"], ["billing.*"])
    assert [name for name in ("orders", "orders2", "pay-1", "my-pay-1") if wave.takes(name)] == ["orders", "pay-1"]
    assert wave.takes_group("billing-2")
    assert not wave.takes_group("audit")
    assert str(wave) == "a wave of orders, pay-.* with groups billing.*"
    assert WHOLE_LINK.takes("x")
    assert not WHOLE_LINK


def test_what_is_no_expression_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        Wave.of([], ["a", "("])
    assert "--groups needs --topics" in str(caught.value)
    assert "'(' is not a regular expression" in str(caught.value)
    for wrong in (["x" * 1_001], ["a\x1b"], ["a"] * 101):
        with pytest.raises(ConfigError, match="allowed"):
            Wave.of(wrong, [])


def test_older_versions_read_the_record_of_a_whole_failover() -> None:
    whole, part = record("f1", wave=()), record("f2", wave=("a",))
    assert not {"wave_topics", "wave_groups", "topics_left", "still_paused"} & json.loads(encode(whole)[1]).keys()
    assert wave_of(decode(Failover, *encode(part))) == Wave(("a",))


def test_a_topic_is_moved_as_long_as_the_pause_of_its_wave_lasts() -> None:
    records = [
        record("f1", "orders", "pay"),
        record("f2", "late", outcome="aborted"),
        record("f3", "other", wave=()),
    ]
    pauses = [pause("orders", "planned failover f1, maintenance"), pause("late", "planned failover f2")]
    pauses += [pause("other", "planned failover f3"), pause("pay", "planned failover f1", partition=0)]
    assert moved_topics(records, pauses) == {"orders"}
    assert moved_topics(records, [pause("orders", "by hand")]) == set()
