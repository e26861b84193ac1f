"""Links with more new topics than a controller creates, and a broker describes, by one request."""

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.kafka.connection import DESCRIBED_AT_ONCE, Outcomes
from strait.model import is_known_id
from support.fixtures.waiting import eventually

pytestmark = pytest.mark.broker

STRAIT = Path(sys.executable).with_name("strait")
TOPICS = 650
OVERRIDES = (
    dict.fromkeys(
        ("retention.ms", "segment.ms", "flush.messages", "flush.ms", "max.compaction.lag.ms", "min.compaction.lag.ms"),
        "1000000",
    )
    | dict.fromkeys(
        ("delete.retention.ms", "file.delete.delay.ms", "index.interval.bytes", "segment.bytes", "segment.index.bytes"),
        "2000000",
    )
    | {"min.cleanable.dirty.ratio": "0.4", "preallocate": "false", "unclean.leader.election.enable": "false"}
)
assert TOPICS * (1 + 1 + len(OVERRIDES)) > 10_000, "records that the controller would have to write at once"
assert TOPICS > DESCRIBED_AT_ONCE


def strait(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([STRAIT, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=500)


def write_links(folder: Path, own_clusters: Any, **settings: Any) -> None:
    raw = {
        "clusters": {
            "a": dict(own_clusters.source.client_properties),
            "b": dict(own_clusters.destination.client_properties),
        },
        "links": {"many": {"source": "a", "destination": "b", "replication_factor": 1, **settings}},
    }
    (folder / "links.yaml").write_text(yaml.safe_dump(raw))


def names(cluster: Cluster, prefix: str) -> list[str]:
    return [name for name in AdminClient(cluster.client_properties).list_topics(timeout=60).topics if prefix in name]


def test_a_link_begins_that_needs_more_than_a_controller_creates_by_one_request(
    own_clusters: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Admin(own_clusters.source.client_properties, "a")
    source.create_each([NewTopic(f"many-{number}", 1, 1) for number in range(TOPICS)]).or_raise()
    eventually(lambda: len(names(own_clusters.source, "many-")) == TOPICS, what="the source shows its topics")
    write_links(tmp_path, own_clusters, topics={"regex": ["many-.*"]}, configs={"overrides": OVERRIDES})
    done = strait(tmp_path, "apply", "-o", "json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said["created"]) == TOPICS
    assert said["refused"] == {}
    assert len(said["plans"]["default"]["topics"]) == TOPICS
    assert not said["plans"]["default"]["waiting"]
    assert len(names(own_clusters.destination, "many-")) == TOPICS
    again = strait(tmp_path, "plan", "--detailed-exitcode")
    assert again.returncode == 0, f"nothing is left to do: {again.stdout}{again.stderr}"

    monkeypatch.setattr("strait.kafka.admin.CHANGES_AT_ONCE", 1_000_000)
    whole = source.create_each([NewTopic(f"whole-{number}", 1, 1, OVERRIDES) for number in range(TOPICS)])
    assert not whole.results, "all in one request are refused"
    assert {"more than 10,000 partitions" in error.hint for error in whole.failures.values()} == {True}


def test_a_topic_that_cannot_be_created_fails_the_command_and_no_other_topic(own_clusters: Any, tmp_path: Path) -> None:
    source = Admin(own_clusters.source.client_properties, "a")
    source.create([NewTopic("small", 1, 1), NewTopic("fits", 1, 1)])
    Admin(own_clusters.destination.client_properties, "b").create([NewTopic("fits", 1, 1)])
    write_links(tmp_path, own_clusters, topics={"include": ["small", "fits"]}, replication_factor=9)
    done = strait(tmp_path, "apply")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "refused   small:" in done.stdout
    assert "1 partition of 1 topic" in done.stdout


def test_a_topic_that_one_broker_lists_and_another_does_not_know_yet_has_an_id_or_is_left_out(
    own_clusters: Any, topic_name: str
) -> None:
    properties = own_clusters.source.client_properties
    Admin(properties, "a").create([NewTopic(topic_name, 1, 1)])

    class FromALateBroker(Admin):
        """The first ``late`` descriptions are those of a broker that has not heard of the topic."""

        late = 2

        def _describe(self, topics: Collection[str], **options: Any) -> Outcomes[str, Any]:
            found = super()._describe(topics, **options)
            if self.late:
                self.late -= 1
                return Outcomes({**found.results, topic_name: None}, found.failures)
            return found

    late = FromALateBroker(properties, "a")
    (topic,) = (one for one in late.observe(topic_name.__eq__).topics.values() if one.topic == topic_name)
    assert is_known_id(topic.topic_id)
    assert late.late == 0
    late.late = sys.maxsize
    assert topic_name not in late.observe(topic_name.__eq__).topics
