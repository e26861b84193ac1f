"""A drill: a real Prometheus scrapes `strait exporter` over real links, things go wrong one after the other, and each
alert fires; every panel of the dashboard has data meanwhile.

The rules are those of docs/monitoring, but nothing has to last before it fires, and "an hour ago" is some seconds ago.
What takes hours or a month to come about is written by hand into a link's state topics: old reports and failovers.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strait.audit.publishing import publish_results
from strait.config import naming
from strait.config.cluster import Cluster
from strait.control.failover.journal import Journal
from strait.control.quarantine import Quarantine
from strait.kafka.admin import Admin
from strait.state.audit_records import TopicResult
from strait.state.codec import encode
from strait.state.failover_records import Failover
from strait.state.group_sync_records import GroupOutOfSync, GroupSyncReport
from strait.state.report_changes import TrafficReport
from strait.state.report_records import HeartbeatReport, PartitionReport, Report, ZoneTraffic
from strait.state.schema import Budget, PlannedBackfill, PlannedGroupSync, ReplacedPlan, TopicPolicy
from strait.waiting import unix_ms
from support.fixtures.waiting import eventually
from support.kafka.topics import alter
from support.links.engine_link import EngineLink
from support.links.exporting import exporter
from support.links.group_sync import application
from support.links.handles import handle_into
from support.model.audits import result_of
from support.model.reports import plain_report
from support.monitoring.files import alerts, panels, rule_file
from support.monitoring.prometheus import Prometheus, running

pytestmark = [pytest.mark.broker, pytest.mark.monitoring]

MakeLink = Callable[..., EngineLink]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

ONLY_UNIT = {"StraitMetricsOld"}
"""Needs a destination that answers for minutes, but ever slower."""


def impatient() -> dict[str, Any]:
    """The rules without waiting."""
    rules: dict[str, Any] = rule_file()
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule.pop("for", None)
            rule["expr"] = rule["expr"].replace("offset 1h", "offset 10s")
    return rules


def produce(link: EngineLink, topic: str, records: int, *, at_ms: int = 0, size: int = 10) -> None:
    producer = Producer(link.source.client_properties)
    for _ in range(records):
        producer.produce(topic, os.urandom(size), partition=0, timestamp=at_ms or unix_ms())
        producer.poll(0)
    assert producer.flush(60) == 0


class ByHand:
    """A link whose reports are written here: what slots would say after hours of trouble."""

    def __init__(self, link: EngineLink) -> None:
        self._link, self._topic = link, next(iter(link.topics))
        self._producer = Producer(link.destination.client_properties)
        alter(link.destination, naming.reports_topic(link.name), message_timestamp_type="CreateTime")
        self._write(self._report(5 * HOUR_MS, log_start=1000), 5 * HOUR_MS)
        self._applications = 0
        ended_ms = unix_ms() - 40 * DAY_MS
        Journal(handle_into(link.destination.client_properties, "b", link.name)).write(
            Failover(
                id="f1",
                link=link.name,
                source="a",
                destination="b",
                kind="rehearsal",
                outcome="done",
                by="test",
                turn="t",
                strait_version="0",
                began_at_ms=ended_ms - 1000,
                ended_at_ms=ended_ms,
                rpo_records=0,
                rpo_seconds=0.5,
                rto_seconds=1.0,
                score=90,
            )
        )
        write_audit(self._link, result_of(unix_ms(), "different", None, topic=self._topic, differences=3))

    def speak(self) -> None:
        """The slot's newest report, each time from another application, and a look at groups an hour ago."""
        self._applications += 1
        beat = HeartbeatReport(written_at_ms=0, arrived_ms=unix_ms() - HOUR_MS, latency_ms=5.0)
        waits = self._partition(1, 0).model_copy(update={"state": "waiting", "reason": "source_denied"})
        report = self._report(0, log_start=3000)
        self._write(report.model_copy(update={"heartbeat": beat, "partitions": (*report.partitions, waits)}), 0)
        traffic = TrafficReport(
            group=report.group,
            slot=report.slot,
            application=report.application,
            at_ms=report.at_ms,
            started_at_ms=report.started_at_ms,
            traffic=(ZoneTraffic(cluster="source", from_zone="east", to_zone="west", bytes=1000),),
        )
        self._write(traffic, 0)
        self._write(
            GroupSyncReport(
                link=self._link.name,
                application="x",
                at_ms=unix_ms() - HOUR_MS,
                seconds=0.1,
                interval_seconds=3,
                groups=2,
                in_sync=1,
                offsets={"in_sync": 1, "ahead_of_copy": 1},
                committed=0,
                rereads=12,
                out_of_sync=(GroupOutOfSync(group="billing", why="ahead"),),
            ),
            0,
        )

    def _partition(self, number: int, log_start: int) -> PartitionReport:
        row = {"topic": self._topic, "partition": number, "state": "copying", "position": 5000, "end": 9000}
        held = {"held_back_records": 10, "held_since_ms": unix_ms() - HOUR_MS}
        known = {"lag_records": 4000, "lag_seconds": 900.0, "records": 0, "bytes": 0, "log_start": log_start}
        return PartitionReport(**row, **known, **held)

    def _report(self, ago_ms: int, log_start: int) -> Report:
        at_ms = unix_ms() - ago_ms
        known = {"link": self._link.name, "at_ms": at_ms, "application": str(getattr(self, "_applications", 0))}
        return plain_report(**known, partitions=(self._partition(0, log_start),))

    def _write(self, record: Report | TrafficReport | GroupSyncReport, ago_ms: int) -> None:
        key, value = encode(record)
        at_ms = unix_ms() - ago_ms
        self._producer.produce(naming.reports_topic(self._link.name), key=key, value=value, timestamp=at_ms)
        assert self._producer.flush(30) == 0


def test_every_alert_fires_in_a_drill_and_every_panel_has_data(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    names = {name: f"{topic_name}-{name}" for name in ("slow", "quick", "refused", "lost", "hand", "bare")}
    busy = make_link(topics={names["slow"]: 1, names["quick"]: 1, names["refused"]: 1})
    losing = make_link(topics={names["lost"]: 1}, policy=TopicPolicy(on_loss="halt"))
    hand = make_link(topics={names["hand"]: 2})
    bare = make_link(topics={names["bare"]: 1})
    for link in (busy, losing, hand, bare):
        link.make_topics()
    losing.publish()
    hand.publish(
        besides={
            "backfill": PlannedBackfill(
                budget=Budget(topic_class="", bytes_per_second=1_000_000, slot_shares=(1.0,)),
                hours=("00:00-12:00",),
                timezone="UTC",
            ),
            "replaced": ReplacedPlan(version=1, published_at_ms=unix_ms(), at_ms=unix_ms()),
        }
    )
    budget = Budget(topic_class="bulk", bytes_per_second=100_000, slot_shares=(1.0,))
    busy.publish(
        policies={
            names["slow"]: TopicPolicy(topic_class="bulk"),
            names["refused"]: TopicPolicy(max_message_bytes=5_000, on_refused="quarantine"),
        },
        budgets=(budget,),
        consumer_groups=PlannedGroupSync(include=(".*",), exclude=(), interval_seconds=1),
    )
    produce(losing, names["lost"], 100)
    slot = losing.start_slot()
    losing.until_copied()
    losing.kill(slot)  # SlotSilent
    by_hand = ByHand(hand)
    by_hand.speak()
    write_audit(busy, result_of(unix_ms(), "equal", unix_ms() - DAY_MS, topic=names["slow"]))
    produce(busy, names["slow"], 8_000, at_ms=unix_ms() - HOUR_MS, size=2_000)  # minutes of its budget
    produce(busy, names["refused"], 1, size=8_000)
    busy.start_slot()
    quarantine = Quarantine(handle_into(busy.destination.client_properties, "b", busy.name))
    eventually(lambda: quarantine.contents().entries(), what=lambda: f"it is in quarantine: {busy.log()}")
    settings = busy.settings
    for link in (losing, hand, bare):
        settings["links"] |= link.settings["links"]
    settings["clusters"]["away"] = {"bootstrap.servers": "127.0.0.1:1"}
    settings["links"]["away"] = {"source": "a", "destination": "away", "topics": {"include": ["x"]}}
    seen: dict[str, list[dict[str, Any]]] = {}
    fired: set[str] = set()
    empty = panels()

    def wanted(prometheus: Prometheus, *expected: str) -> bool:
        by_hand.speak()
        produce(busy, names["quick"], 5)  # arrives at once: latencies
        for name, firing in prometheus.alerts().items():
            seen.setdefault(name, firing)
        fired.update(prometheus.ever_fired())
        for title, queries in list(empty.items()):
            if all(prometheus.query(query) for query in queries):
                del empty[title]
        time.sleep(0.5)
        return set(expected) <= fired

    with application(busy), running_exporter(tmp_path, settings) as (prometheus, end_exporter):
        told = lambda: f"{sorted(set(alerts()) - fired)} have not fired; no data: {sorted(empty)}"  # noqa: E731

        def links(name: str, label: str = "link") -> set[str]:
            return {alert["labels"][label] for alert in prometheus.alerts().get(name, [])}

        eventually(lambda: wanted(prometheus) and links("StraitSlotSilent") == {losing.name}, what="only this one")
        assert "StraitRecordsLost" not in fired
        produce(losing, names["lost"], 200)
        admin = AdminClient(losing.source.client_properties)
        for future in admin.delete_records([TopicPartition(names["lost"], 0, 250)]).values():
            future.result()
        losing.start_slot()  # finds that records are gone, and halts
        others = set(alerts()) - ONLY_UNIT - {"StraitExporterDown"}
        eventually(lambda: wanted(prometheus, *others), what=told)
        eventually(lambda: wanted(prometheus) and not empty, what=told)
        assert links("StraitPartitionHalted") == {losing.name}
        assert links("StraitLinkUnreadable") == {"away"}
        assert links("StraitNoPlan") == {bare.name}
        assert links("StraitLossForeseen", "topic") == {names["hand"]}
        assert names["hand"] in links("StraitNoProgress", "topic")
        eventually(
            lambda: wanted(prometheus) and names["slow"] in links("StraitNotCaughtUp", "topic"), what="the slow one"
        )
        texts = [text for firing in seen.values() for alert in firing for text in alert["annotations"].values()]
        assert not [text for text in texts if re.search(r"error|<no value>|\{\{", text)], "templates are filled in"
        end_exporter()
        eventually(lambda: "StraitExporterDown" in prometheus.alerts(), what="its end is seen")


def write_audit(link: EngineLink, result: TopicResult) -> None:
    cluster = Cluster(link.destination.client_properties, "b")
    publish_results(Admin(*cluster), cluster, link.name, [result])


@contextmanager
def running_exporter(folder: Path, settings: dict[str, Any]) -> Iterator[tuple[Prometheus, Callable[[], None]]]:
    """A Prometheus that scrapes it, and what ends the exporter before."""
    with exporter(folder, settings, "--most", "2") as scraped:
        (folder / "prometheus").mkdir()
        with running(folder / "prometheus", scraped.url.removeprefix("http://"), impatient()) as prometheus:
            yield prometheus, scraped.end
