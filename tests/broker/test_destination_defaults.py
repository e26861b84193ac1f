"""A destination whose defaults and abilities are not the source's: a copy keeps what its source keeps."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config.links import LinksFile, parse
from strait.control.executor import acceptable
from strait.control.link_status import link_status
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin
from strait.model import ClusterFacts, TopicPartition
from strait.planning.status.rows import PartitionStatus
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied
from support.kafka.topics import create, look
from support.links.copying import copying

pytestmark = pytest.mark.broker

DEFAULTS = {
    "log.cleanup.policy": "compact,delete",
    "log.retention.ms": "3600000",
    "log.retention.check.interval.ms": "300",
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "message.max.bytes": "100000",
}
SEVERAL_CHECKS_SECONDS = 5.0


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """By default its topics keep records for an hour, and one of each key."""
    with Cluster(tmp_path_factory.mktemp("forgetful"), properties=DEFAULTS) as cluster:
        yield cluster


def link_of(topic: str) -> str:
    return f"d{topic[-8:]}"


def links_file(source: Cluster, destination: Cluster, topic: str, **settings: Any) -> LinksFile:
    link = {"source": "a", "destination": "b", "topics": {"include": [topic]}} | settings
    clusters = {"a": source.client_properties, "b": destination.client_properties}
    return parse({"clusters": clusters, "links": {link_of(topic): link}}, where="links file")


def produce_old(cluster: Cluster, topic: str, records: int, age_seconds: float = 7200) -> None:
    """Two hours old, of five keys."""
    producer, then = Producer(cluster.client_properties), int((time.time() - age_seconds) * 1000)
    for number in range(records):
        producer.produce(topic, str(number), str(number % 5), partition=0, timestamp=then + number)
    assert producer.flush(30) == 0


def test_a_copy_keeps_what_its_source_keeps_whatever_the_defaults_are(
    clusters: Any, forgetful: Cluster, topic_name: str, tmp_path: Path
) -> None:
    create(clusters.source, topic_name, 1)
    produce_old(clusters.source, topic_name, 300)
    with Control(links_file(clusters.source, forgetful, topic_name), link_of(topic_name)) as control:
        control.apply()
        with copying(control, tmp_path):
            eventually(lambda: ends(forgetful, topic_name, 1) == [300], what="all copied")
            time.sleep(SEVERAL_CHECKS_SECONDS)
            assert_copied(clusters.source, forgetful, topic_name, 1)
        names = ("cleanup.policy", "retention.ms", "max.message.bytes")
        theirs = Admin(clusters.source.client_properties, "a").configs(topic_name, names)
        assert Admin(forgetful.client_properties, "b").configs(topic_name, names) == theirs
        assert control.forecast(control.propose()).risks == ()


def test_a_copy_that_keeps_less_is_a_risk_at_every_plan(clusters: Any, forgetful: Cluster, topic_name: str) -> None:
    create(clusters.source, topic_name, 1)
    create(forgetful, topic_name, 1)
    with Control(links_file(clusters.source, forgetful, topic_name), link_of(topic_name)) as control:
        for _ in range(2):
            proposal = control.propose()
            found = control.forecast(proposal).risks
            kept = [risk.code for risk in found if risk.topic == topic_name]
            assert kept == ["copy_compacted", "shorter_retention", "smaller_messages"]
            assert f"risk      {topic_name}: copy_compacted" in control.show(proposal).text
            control.apply(proposal)


def test_what_the_destination_does_not_accept_is_left_out_and_told(clusters: Any, topic_name: str) -> None:
    create(clusters.source, topic_name, 1, segment_ms="70000", retention_ms="77000")
    with Control(links_file(clusters.source, clusters.destination, topic_name), link_of(topic_name)) as control:
        proposal = control.propose()
        unknown = {"message.format.version": "3.0-IV1", "remote.storage.enable": "true", "segment.bytes": "1000"}
        (wanted,) = proposal.create
        wanted = replace(wanted, configs=(*wanted.configs, *unknown.items()))
        (found,) = acceptable(control._destination, control.link, [wanted])
        assert dict(found.left_out) == unknown and found.configs == proposal.create[0].configs
        assert topic_name not in Admin(clusters.destination.client_properties, "b").partition_counts()
        assert control.apply(proposal).created
    assert look(clusters.destination, topic_name).topic_configs["segment.ms"] == "70000"


def test_what_the_destination_refuses_to_synchronize_is_named_at_every_plan(
    clusters: Any, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a source with an older release, whose topics have a configuration that no longer exists."""
    create(clusters.source, topic_name, 1, segment_ms="70000")
    create(clusters.destination, topic_name, 1)
    observe = Control._observe_source

    def of_an_older_release(control: Control) -> ClusterFacts:
        facts = observe(control)
        topic = facts.topics[topic_name]
        more = topic.topic_configs | {"message.format.version": "3.0-IV1"}
        return replace(facts, topics={**facts.topics, topic_name: replace(topic, topic_configs=more)})

    monkeypatch.setattr(Control, "_observe_source", of_an_older_release)
    file = links_file(clusters.source, clusters.destination, topic_name, configs={"sync": True})
    with Control(file, link_of(topic_name)) as control:
        for number in range(3):
            proposal = control.propose()
            (risk,) = proposal.state_risks
            assert (risk.code, risk.topic) == ("config_refused", topic_name) and "message.format.version" in risk.detail
            assert f"risk      {topic_name}: config_refused" in control.show(proposal).text
            outcome = control.apply(proposal)
            assert not outcome.refused and "config_refused" in outcome.as_text()
            assert bool(outcome.done) is (number == 0), "the others are set, once"
    assert look(clusters.destination, topic_name).topic_configs["segment.ms"] == "70000"


def test_records_that_vanish_by_the_destinations_settings_are_in_the_loss_log(
    clusters: Any, forgetful: Cluster, topic_name: str, tmp_path: Path
) -> None:
    create(clusters.source, topic_name, 1)
    produce_old(clusters.source, topic_name, 300)
    create(forgetful, topic_name, 1, cleanup_policy="delete", retention_ms="3600000", segment_ms="1000")
    file = links_file(clusters.source, forgetful, topic_name)
    with (
        Control(file, link_of(topic_name)) as control,
        StateReader(forgetful.client_properties, "b", link_of(topic_name), follow=("losses",)) as log,
    ):
        with copying(control, tmp_path):
            eventually(lambda: ends(forgetful, topic_name, 1) == [300], what="all copied")
            eventually(lambda: starts(forgetful, topic_name) == 300, what="all deleted")
        assert control.apply().proposal.deleted_there
        log.catch_up()
        (loss,) = log.losses
        assert (loss.cause, loss.side, loss.action) == (Reason.DESTINATION_KEEPS_LESS, "source", "continued")
        assert (loss.from_offset, loss.to_offset) == (0, 300) and "retention.ms" in loss.detail
        assert not control.apply().proposal.deleted_there, "once"
        log.catch_up()
        assert log.losses == (loss,)


def test_records_that_the_destination_compacts_away_are_named_with_their_number(
    clusters: Any, forgetful: Cluster, topic_name: str, tmp_path: Path
) -> None:
    create(clusters.source, topic_name, 1)
    produce_old(clusters.source, topic_name, 300)
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.ms": "1000"}
    create(forgetful, topic_name, 1, **compacted)
    file, name = links_file(clusters.source, forgetful, topic_name), link_of(topic_name)
    with Control(file, name) as control:
        with copying(control, tmp_path):
            eventually(lambda: ends(forgetful, topic_name, 1) == [300], what="all copied")
            assert not control.apply().proposal.deleted_there, "nothing is compacted yet"
            produce_old(clusters.source, topic_name, 1, 3600)  # begins a segment, so that the one before is compacted
            eventually(lambda: control.apply().proposal.deleted_there, what="holes in the copy")
            row = eventually(lambda: caught_up(file, name), what="the status has it")
            assert row.reason == Reason.DESTINATION_KEEPS_LESS and "cleanup.policy=compact" in row.detail
            assert "compaction has deleted 295 of the 300 records" in row.detail
        with StateReader(forgetful.client_properties, "b", name, follow=("losses",)) as log:
            log.catch_up()
            (loss,) = log.losses
        assert (loss.cause, loss.from_offset, loss.to_offset) == (Reason.DESTINATION_KEEPS_LESS, 0, 300)


def caught_up(file: LinksFile, link: str) -> PartitionStatus | None:
    (row,) = link_status(ConfiguredLink.of(file, link)).rows
    return row if row.state == "caught_up" else None


def starts(cluster: Cluster, topic: str) -> int:
    place = TopicPartition(topic, 0)
    return Admin(cluster.client_properties, "b").offsets_each([place], "earliest").results[place]
