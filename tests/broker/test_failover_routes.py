"""Failing over, handing over and going back with topics that a rule transforms or divides: nothing is promised that the
destination does not have, and no group skips a record."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config.links import parse
from strait.consumer_groups.offsets import Offsets
from strait.control.failover import failover as failovers
from strait.control.failover.turn import Settings
from strait.control.hand_over import Owner, hand_over, require_untransformed
from strait.control.link_status import link_groups
from strait.control.move_in import MoveIn
from strait.control.plane import Control
from strait.errors import ConfigError, FailoverStopped
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.planning.failover_report import screen
from strait.state.failover_records import Failover
from strait.state.link_handle import ConfiguredLink
from strait.wire.records import Record
from support.fixtures.waiting import eventually
from support.kafka.groups import commit, committed
from support.kafka.records import read_all
from support.links.by_hand import ByHand
from support.links.copying import copying

pytestmark = pytest.mark.broker

PARTITIONS, RECORDS = 2, 300
QUICK = Settings(by="a test", quiet_seconds=1.0, timeout_seconds=60.0)
ACCEPTED = replace(QUICK, accept_transformed=True)
TENANTS: Mapping[str, Callable[[Record], bool]] = {
    "acme": lambda record: _number(record) % 3 > 0,
    "rare": lambda record: _number(record) % 90 == 9,
    "rest": lambda record: _number(record) % 3 == 0 and _number(record) % 90 != 9,
}


@pytest.fixture(scope="module")
def clusters(own_clusters: Any) -> Any:
    """A link whose plans cannot be read may write to any topic of its cluster, and other tests leave such links."""
    return own_clusters


@dataclass
class Divided:
    """A link that has divided its topic, and whose slot runs."""

    clusters: Any
    topic: str
    link: ConfiguredLink

    def copy(self, tenant: str) -> str:
        return f"{self.topic[-8:]}.{tenant}"

    def rows(self) -> Any:
        return link_groups(self.link).rows

    def kept(self, tenant: str, partition: int) -> list[int]:
        """Source offsets of the records of a route."""
        records = read_all(self.clusters.source, self.topic, PARTITIONS)[partition]
        return [record.offset for record in records if TENANTS[tenant](record)]


@pytest.fixture
def divided(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Divided]:
    name = f"l{topic_name[-8:]}"
    routes = [{"when": f"key = '{one}'", "to": f"{topic_name[-8:]}.{one}"} for one in TENANTS]
    settings = {
        "clusters": {"a": clusters.source.client_properties, "b": clusters.destination.client_properties},
        "links": {
            name: {
                "source": "a",
                "destination": "b",
                "topics": {
                    "include": [topic_name],
                    "rules": [{"match": topic_name, "transform": {"route": routes}}],
                },
            }
        },
    }
    file = parse(settings, where="links file")
    Admin(clusters.source.client_properties, "a").create([NewTopic(topic_name, PARTITIONS, 1)])
    producer = Producer(clusters.source.client_properties)
    for number in range(RECORDS):
        producer.produce(topic_name, b"value", b"%d" % number, number % PARTITIONS)
    assert producer.flush(60) == 0
    found = Divided(clusters, topic_name, ConfiguredLink.of(file, name))
    keeps = {f"{topic_name}→{found.copy(tenant)}": keep for tenant, keep in TENANTS.items()}
    with Control(file, name) as control, copying(control, tmp_path, ByHand(keeps)):
        eventually(
            lambda: len(found.rows()) == 3 * PARTITIONS and all(row.state == "caught_up" for row in found.rows()),
            what=lambda: f"all is copied: {found.rows()}",
        )
        yield found


def _number(record: Record) -> int:
    return int(record.key or b"")


def verdicts(record: Failover) -> dict[str, str]:
    return {step.name: step.verdict for step in record.steps}


def detail(record: Failover, name: str) -> str:
    return next(step.detail for step in record.steps if step.name == name)


def test_a_divided_topic_is_failed_over_only_if_that_is_accepted_and_groups_move_to_each_route(
    divided: Divided,
) -> None:
    group, at = f"{divided.topic}-group", {0: 101, 1: 40}
    commit(divided.clusters.source, group, {TopicPartition(divided.topic, n): at[n] for n in at})
    with pytest.raises(FailoverStopped, match=r"transformed: b has only what .* --accept-transformed goes on"):
        failovers.run(divided.link, "planned", QUICK, lambda _: None)
    ahead = failovers.dry_run(divided.link, "unplanned", replace(QUICK, even_if_source_answers=True), lambda _: None)
    assert verdicts(ahead)["transformed"] == "failed"
    assert not link_groups(divided.link).stopped, "nothing was changed"
    rehearsed = failovers.rehearse(divided.link, QUICK, lambda _: None)
    assert verdicts(rehearsed)["transformed"] == verdicts(rehearsed)["records"] == "warning", rehearsed.steps
    assert "not compared" in detail(rehearsed, "records") and verdicts(rehearsed)["groups"] == "done"
    done = failovers.run(divided.link, "planned", ACCEPTED, lambda _: None)
    assert (done.outcome, done.rpo_records, verdicts(done)["transformed"]) == ("done", 0, "warning")
    assert (done.groups, done.groups_exact) == (1, 1)
    assert "b has every record" not in screen(done, "")[0].replace("0 of 3 topics: b has every record", "")
    for tenant in TENANTS:
        right = {n: bisect_left(divided.kept(tenant, n), at[n]) for n in at}
        assert committed(divided.clusters.destination, group, divided.copy(tenant)) == right
    again = failovers.run(divided.link, "planned", ACCEPTED, lambda _: None)
    assert again.transformed == done.transformed and len(done.transformed) == 3


def test_a_group_that_goes_back_skips_no_record_of_any_route(divided: Divided) -> None:
    group, alone = f"{divided.topic}-group", f"{divided.topic}-alone"
    consumed = {"acme": {0: 60, 1: 10}, "rare": {0: 0, 1: 1}, "rest": {0: 48, 1: 30}}
    for tenant, offsets in consumed.items():
        there = {TopicPartition(divided.copy(tenant), n): offset for n, offset in offsets.items()}
        commit(divided.clusters.destination, group, there)
        if tenant == "acme":
            commit(divided.clusters.destination, alone, there)
    offsets = Offsets(divided.link)
    for name, known in ((group, consumed), (alone, {"acme": consumed["acme"]})):
        found = offsets.back_to_source(name)
        for number in range(PARTITIONS):
            left = [
                one
                for tenant in TENANTS
                for one in divided.kept(tenant, number)[known.get(tenant, {}).get(number, 0) :]
            ]
            of_partition = [one for one in found if one.partition == number]
            assert {one.to_offset for one in of_partition} == {min(left)}, of_partition
            untouched = [one.topic for one in of_partition if "the group has committed no offset there" in one.detail]
            assert untouched == ([] if name == group else [divided.copy("rare"), divided.copy("rest")])


def test_no_other_tool_continues_what_a_rule_makes(divided: Divided) -> None:
    with pytest.raises(ConfigError, match="another tool would copy them as they are on the source"):
        hand_over(divided.link, "offsets", Owner("mm2", "a"), on="b")
    with pytest.raises(ConfigError, match="another tool would copy"):
        require_untransformed(divided.link)
    with pytest.raises(ConfigError, match="its rule has `transform`, which made none of the other tool's records"):
        MoveIn(divided.link).propose({TopicPartition(divided.topic, 0): 5})
