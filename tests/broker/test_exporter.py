"""`strait exporter` as Prometheus scrapes it, over links on real brokers."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.exporter.conventional import NAMES
from strait.exporter.metrics import LINKS
from strait.exporter.place_metrics import PLACES
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.exporting import exporter

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


def produce(link: EngineLink, topic: str, records: int) -> None:
    """As many to each partition, stamped now."""
    producer = Producer(link.source.client_properties)
    for number in range(records):
        producer.produce(topic, b"value %d" % number, partition=number % link.topics[topic])
    assert producer.flush(60) == 0


@pytest.mark.core
def test_figures_are_those_of_the_link_and_counters_never_go_back(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    produce(link, topic_name, 500)
    with exporter(tmp_path, link.settings, "--conventional") as scraped:
        where = {"link": link.name, "topic": topic_name}
        eventually(lambda: scraped.value("strait_records_total", **where) == 500, what="all are counted")
        assert scraped.value("strait_up", link=link.name) == 1
        assert scraped.value("strait_healthy", link=link.name) == 1
        assert scraped.value("strait_lag_records", **where) == 0
        assert scraped.value("strait_partitions", link=link.name, state="caught_up") == 2
        assert scraped.value("strait_slots_silent", link=link.name) == 0
        assert scraped.value("strait_slot_applications_total", link=link.name) == 1
        text = scraped.text()
        described = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
        for family in (*LINKS, *PLACES):
            assert f"{family.name}{'_total' if family.kind == 'counter' else ''}" in described

        def batches() -> float:
            return sum(
                scraped.value("strait_batches_total", link=link.name, how=how) or 0 for how in ("passed", "merged")
            )

        eventually(lambda: batches() > 0, what="a whole report of the slot")
        produce(link, topic_name, 500)  # the link is idle: these have a latency
        eventually(lambda: scraped.value("strait_records_total", **where) == 1000, what="all are counted")
        latencies = partial(scraped.value, "strait_latency_seconds_count", link=link.name)
        eventually(latencies, what="another whole report of the slot")
        buckets = {
            dict(labels)["le"]: value
            for (name, labels), value in scraped.samples().items()
            if name == "strait_latency_seconds_bucket"
        }
        counts = [buckets[bound] for bound in sorted(buckets, key=float)]
        assert counts == sorted(counts), "buckets are cumulative"
        assert counts[-1] == scraped.value("strait_latency_seconds_count", link=link.name)
        assert counts[-1] > 0

        group = {"consumergroup": link.name, "topic": topic_name}
        assert scraped.value("kafka_consumergroup_current_offset", **group, partition="0") == 500
        assert scraped.value("kafka_consumergroup_lag", **group, partition="1") == 0
        count = {"source": "a", "target": "b", "topic": topic_name, "partition": "0"}
        assert scraped.value("kafka_connect_mirror_mirrorsourceconnector_record_count", **count) == 500
        assert all(f"# TYPE {name.name} " in text for name in NAMES)

        link.kill(slot)
        eventually(lambda: scraped.value("strait_slots_silent", link=link.name) == 1, what="it is missed")
        assert scraped.value("strait_healthy", link=link.name) == 0
        assert scraped.value("strait_records_total", **where) == 1000
        produce(link, topic_name, 10)
        again = link.start_slot()
        eventually(lambda: scraped.value("strait_records_total", **where) == 1010, what="it goes on counting")
        assert scraped.value("strait_slots_silent", link=link.name) == 0
        link.publish(stopped=True)
        again.wait(60)
        eventually(lambda: scraped.value("strait_stopped", link=link.name) == 1, what="it is stopped")
        time.sleep(6)  # longer than a slot may be silent
        assert scraped.value("strait_slots_silent", link=link.name) == 0, "nobody is missed of a link at rest"


def test_a_cluster_that_is_away_shows_and_delays_no_other_link(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    settings = link.settings
    settings["clusters"]["away"] = {"bootstrap.servers": "127.0.0.1:1"}
    settings["links"]["lost"] = {"source": "a", "destination": "away", "topics": {"include": ["x"]}}
    with exporter(tmp_path, settings) as scraped:
        eventually(lambda: scraped.value("strait_up", link=link.name) == 1, what="the link is seen", within_seconds=8)
        eventually(lambda: scraped.value("strait_up", link="lost") == 0, what="the other one is missed")
        began = time.monotonic()
        scraped.text()
        assert time.monotonic() - began < 5, "a scrape waits for no cluster"
        assert scraped.value("strait_plan_version", link="lost") is None, "nothing is invented"
        assert scraped.value("strait_observation_age_seconds", link="lost") is not None


def test_partitions_on_request_and_a_bound_on_their_number(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(topics={topic_name: 3})
    link.make_topics()
    link.publish()
    link.start_slot()
    link.until_seen()
    with exporter(tmp_path, link.settings, "--by-partition", "--most", "2") as scraped:
        eventually(lambda: scraped.value("strait_series_left_out", link=link.name) == 1, what="one is left out")
        found = {dict(labels)["partition"] for name, labels in scraped.samples() if name == "strait_lag_records"}
        assert len(found) == 2


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "exporter.example"])  # noqa: S104
def test_beyond_loopback_it_listens_with_a_token_alone(tmp_path: Path, address: str) -> None:
    links = tmp_path / "links.json"
    cluster = {"bootstrap.servers": "127.0.0.1:1"}
    link = {"source": "a", "destination": "b", "topics": {"include": ["t"]}}
    links.write_text(json.dumps({"clusters": {"a": cluster, "b": cluster}, "links": {"a-to-b": link}}))
    refused = subprocess.run(
        [Path(sys.executable).with_name("strait"), "exporter", "-f", str(links), "--address", address, "--port", "0"],
        env={name: value for name, value in os.environ.items() if name != "STRAIT_EXPORTER_TOKEN"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 1
    assert f"listening on {address} without a token" in refused.stderr
    assert "--no-token" in refused.stderr


def test_who_has_not_the_token_learns_nothing(make_link: MakeLink, topic_name: str, tmp_path: Path) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    options = ("--token-file", str(secret))
    refused = subprocess.run(
        [Path(sys.executable).with_name("strait"), "exporter", "-f", str(tmp_path / "links.json"), *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode != 0
    secret.chmod(0o600)
    with exporter(tmp_path, link.settings, *options) as scraped:
        assert scraped.get(token="").status_code == 401
        assert scraped.get(token="s3creT").status_code == 401
        assert "strait_" not in scraped.get(token="wrong").text
        assert scraped.get(token="s3cret").status_code == 200
        assert scraped.get("/", token="s3cret").status_code == 404
