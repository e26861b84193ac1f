"""Many links in one file: several sources into one destination, one source to several, and bad ones beside good
ones."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from strait.config.links import load_link
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends

pytestmark = pytest.mark.broker

STRAIT = Path(sys.executable).with_name("strait")


@pytest.fixture
def topic(topic_name: str) -> str:
    return topic_name[-8:]


@pytest.fixture
def path(clusters: Any, three_brokers: Cluster, tmp_path: Path, topic: str) -> Path:
    """Two sources into one destination, one of them to another as well; a wrong link, and one whose cluster is away."""

    def link(source: str, destination: str, **naming: str) -> dict[str, Any]:
        return {"source": source, "destination": destination, "topics": {"include": [topic]}, "naming": naming}

    raw = {
        "clusters": {
            "a": dict(clusters.source.client_properties),
            "b": dict(clusters.destination.client_properties),
            "c": dict(three_brokers.client_properties),
            "away": {"bootstrap.servers": "127.0.0.1:1"},
            "wrong": {"no.address": "1"},
        },
        "links": {
            f"{topic}-a-b": link("a", "b", policy="prefix", prefix="a."),
            f"{topic}-c-b": link("c", "b", policy="prefix", prefix="c."),
            f"{topic}-a-c": link("a", "c", policy="suffix", suffix=".a"),
            f"{topic}-away": link("a", "away"),
            f"{topic}-bad": {"source": "a", "destinatoin": "b"},
            f"{topic}-wrong": link("wrong", "b"),
        },
    }
    path = tmp_path / "links.yaml"
    path.write_text(yaml.safe_dump(raw))
    for cluster, partitions in ((clusters.source, 2), (three_brokers, 1)):
        Admin(cluster.client_properties, "x").create([NewTopic(topic, partitions, 1)])
    return path


def produce(cluster: Cluster, topic: str, text: str, count: int) -> None:
    producer = Producer(cluster.client_properties)
    for number in range(count):
        producer.produce(topic, f"{text} {number}".encode())
    assert producer.flush(30) == 0


@contextmanager
def slot_of(path: Path, link: str, folder: Path) -> Iterator[None]:
    """Plan a link, and run its slot."""
    with Control.of(path, link) as control:
        plan = control.apply().plan
        spec = control.spec(plan, ledger_dir=folder / "ledger", checkpoint_dir=folder / "checkpoint")
    spec_path = folder / f"{link}.json"
    spec.write(spec_path)
    unlike = json.dumps({"changed": {}, "clock_jumps_seconds": 0.0})
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "support.links.slot_process", str(spec_path), "0", unlike]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def strait(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([STRAIT, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_links_copy_side_by_side_whatever_is_wrong_with_others(
    clusters: Any, three_brokers: Cluster, path: Path, tmp_path: Path, topic: str
) -> None:
    produce(clusters.source, topic, "from a", 100)
    produce(three_brokers, topic, "from c", 50)
    ab, cb, ac = (f"{topic}-{ends}" for ends in ("a-b", "c-b", "a-c"))
    with slot_of(path, ab, tmp_path), slot_of(path, cb, tmp_path), slot_of(path, ac, tmp_path):
        for cluster, copy, partitions, records in (
            (clusters.destination, f"a.{topic}", 2, 100),
            (clusters.destination, f"c.{topic}", 1, 50),
            (three_brokers, f"{topic}.a", 2, 100),
        ):
            eventually(
                lambda cluster=cluster, copy=copy, partitions=partitions, records=records: (
                    sum(ends(cluster, copy, partitions)) == records
                ),
                what=f"{copy} is copied",
            )
        told = strait("status", "--config", str(path), "--json")
    assert told.returncode == 1, "some could not be looked at"
    rows = {row["link"]: row for row in json.loads(told.stdout)}
    assert [rows[link]["state"] for link in (ab, cb, ac)] == ["copying"] * 3
    assert [rows[link]["partitions"] for link in (ab, cb, ac)] == [2, 1, 2]
    assert "cluster away: " in rows[f"{topic}-away"]["error"]
    assert "destinatoin: unknown key; did you mean 'destination'?" in rows[f"{topic}-bad"]["error"]
    assert "clusters.wrong" in rows[f"{topic}-wrong"]["error"]


def test_why_any_topic_of_the_source_is_not_copied(clusters: Any, path: Path, topic: str) -> None:
    link = f"{topic}-a-b"
    Admin(clusters.source.client_properties, "a").create(
        [NewTopic(name, 1, 1) for name in (f"{topic}-x", f"{topic}-excluded")]
    )
    raw = yaml.safe_load(path.read_text())
    raw["links"][link]["topics"] = {"regex": [f"{topic}(-excluded)?"], "exclude": [".*-excluded"]}
    path.write_text(yaml.safe_dump(raw))
    options = ("--config", str(path), "--link", link, "--json")
    before = json.loads(strait("status", topic, *options).stdout)
    assert before["left_out"][0]["reason"] == "plan_missing"
    with Control(load_link(path, link), link) as control:
        control.apply()
    whole = json.loads(strait("status", *options).stdout)
    assert [(row["topic"], row["reason"]) for row in whole["left_out"]] == [(f"{topic}-excluded", "excluded")]
    assert [row["reason"] for row in whole["partitions"]] == ["slot_silent"] * 2
    (row,) = json.loads(strait("status", f"{topic}-x", *options).stdout)["left_out"]
    assert (row["reason"], f"is it meant by '{topic}'?" in row["detail"]) == ("not_selected", True)
    nothing = strait("status", f"{topic}-nothing", *options)
    assert nothing.returncode == 2
    assert f"neither its plan nor cluster a has a topic '{topic}-nothing'" in nothing.stderr


def test_a_source_that_is_away_hides_nothing_of_what_the_destination_knows(path: Path, topic: str) -> None:
    link = f"{topic}-a-b"
    with Control.of(path, link) as control:
        control.apply()
    raw = yaml.safe_load(path.read_text())
    raw["clusters"]["a"] = raw["clusters"]["away"]
    path.write_text(yaml.safe_dump(raw))
    told = strait("status", "--config", str(path), "--link", link)
    assert (told.returncode, told.stderr) == (0, "")
    assert "slot_silent" in told.stdout
    assert "other topics of the source are unknown: cluster a: " in told.stdout
