"""What the `strait` command says and how it ends when something is wrong: one line, and an exit code that tells why."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.control.acknowledging import acknowledge
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import Loss
from strait.state.topics import ensure_state_topics
from strait.state.writer import StateWriter
from support.fixtures.waiting import eventually
from support.kafka.groups import commit

pytestmark = pytest.mark.broker

STRAIT = Path(sys.executable).with_name("strait")
PASSWORD = "hunter2-and-more"
NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


def strait(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"STRAIT_HOME": str(tmp_path / "home")}
    return subprocess.run(
        [STRAIT, *arguments], capture_output=True, text=True, timeout=120, check=False, env=environment
    )


def links_file(tmp_path: Path, source: Any, destination: Any, /, **settings: Any) -> Path:
    raw = {
        "clusters": {"a": dict(source), "b": dict(destination)},
        "links": {"a-to-b": {"source": "a", "destination": "b"} | settings},
    }
    path = tmp_path / "links.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def refusal(tmp_path: Path, path: Path, command: str = "plan", link: str = "a-to-b") -> tuple[int, str]:
    done = strait(tmp_path, command, "--config", str(path), "--link", link)
    assert "Traceback" not in done.stderr
    assert PASSWORD not in done.stderr + done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return done.returncode, line


@pytest.mark.core
@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"topcis": {}}, "links.a-to-b.topcis: unknown key; did you mean 'topics'?"),
        ({"create_topics": "no"}, "links.a-to-b.create_topics: must be true or false"),
        ({"destination": "a"}, "each topic would be copied onto itself"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "apply", "status", "run"])
def test_a_wrong_configuration_is_one_line_and_exit_code_2(
    tmp_path: Path, settings: dict[str, Any], what: str, command: str
) -> None:
    code, line = refusal(tmp_path, links_file(tmp_path, NOBODY, NOBODY, **settings), command)
    assert code == 2
    assert what in line


def test_a_link_that_is_not_there_is_told_with_its_nearest_name(tmp_path: Path) -> None:
    code, line = refusal(tmp_path, links_file(tmp_path, NOBODY, NOBODY), link="a-to-c")
    assert code == 2
    assert "`links` has no link 'a-to-c'; did you mean 'a-to-b'?" in line


def test_a_file_that_is_not_there_is_exit_code_2(tmp_path: Path) -> None:
    code, line = refusal(tmp_path, tmp_path / "nothing.yaml")
    assert code == 2
    assert "nothing.yaml: cannot be read" in line


def test_a_property_that_no_cluster_has_is_exit_code_2(tmp_path: Path) -> None:
    wrong = NOBODY | {"sasl.pasword": PASSWORD}
    code, line = refusal(tmp_path, links_file(tmp_path, wrong, NOBODY))
    assert code == 2
    assert "clusters.a: `sasl.pasword` is not a property that a cluster may have; did you mean 'sasl.password'?" in line


@pytest.mark.parametrize("command", ["plan", "apply", pytest.param("status", marks=pytest.mark.core), "run"])
def test_a_cluster_that_cannot_be_reached_is_one_line_and_exit_code_1(tmp_path: Path, command: str) -> None:
    code, line = refusal(tmp_path, links_file(tmp_path, NOBODY, NOBODY), command)
    assert code == 1
    assert "cluster " in line
    assert "Connection refused" in line


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A cluster that wants a password."""
    with Cluster(tmp_path_factory.mktemp("guarded"), users={"strait": PASSWORD}) as cluster:
        yield cluster


@pytest.mark.core
@pytest.mark.parametrize("end", ["a", "b"])
@pytest.mark.parametrize("command", ["plan", "run"])
def test_wrong_credentials_are_one_line_that_says_so_and_exit_code_1(
    tmp_path: Path, clusters: Any, guarded: Cluster, end: str, command: str
) -> None:
    right = dict(guarded.client_properties)
    wrong = right | {"sasl.password": PASSWORD + "x"}
    path = links_file(
        tmp_path, wrong if end == "a" else right, wrong if end == "b" else clusters.source.client_properties
    )
    code, line = refusal(tmp_path, path, command)
    assert code == 1
    assert f"cluster {end}: " in line
    assert "uthentication failed" in line
    assert f"check clusters.{end}: security.protocol, sasl.*" in line


def test_plain_text_spoken_to_a_listener_that_wants_a_password_is_one_line(tmp_path: Path, guarded: Cluster) -> None:
    plain = {"bootstrap.servers": guarded.bootstrap}
    code, line = refusal(tmp_path, links_file(tmp_path, plain, plain))
    assert code == 1
    assert "cluster a: " in line


def test_two_names_for_one_cluster_are_exit_code_2(tmp_path: Path, clusters: Any) -> None:
    same = clusters.source.client_properties
    code, line = refusal(tmp_path, links_file(tmp_path, same, same))
    assert code == 2
    assert "source a and destination b are the same Kafka cluster" in line


def test_fewer_cores_than_slots_are_refused_with_both_numbers(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    path = links_file(tmp_path, NOBODY, NOBODY, groups={"default": {"slots": cores + 1}})
    code, line = refusal(tmp_path, path, "run")
    assert code == 1
    assert f"have {cores + 1} slots" in line
    assert f"may use {cores} cores" in line


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file where the folder should be")
    code, line = refusal(tmp_path, links_file(tmp_path, NOBODY, NOBODY), "run")
    assert code == 1
    assert f"making {home}/run/a-to-b-" in line


@pytest.mark.core
def test_plan_apply_and_status_speak_json(tmp_path: Path, clusters: Any, topic_name: str) -> None:
    Admin(clusters.source.client_properties, "a").create([NewTopic(topic_name, 2, 1)])
    path = links_file(
        tmp_path,
        clusters.source.client_properties,
        clusters.destination.client_properties,
        topics={"include": [topic_name]},
    )
    said = {}
    for command in ("plan", "apply", "status"):
        done = strait(tmp_path, command, "--config", str(path), "--link", "a-to-b", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        said[command] = json.loads(done.stdout)
    assert [item["topic"] for item in said["plan"]["create"]] == [topic_name]
    assert said["apply"]["created"] == [topic_name]
    assert [(row["partition"], row["reason"]) for row in said["status"]["partitions"]] == [
        (0, "slot_silent"),
        (1, "slot_silent"),
    ]


def test_the_status_of_a_topic_that_nobody_has_is_an_error(tmp_path: Path, clusters: Any, topic_name: str) -> None:
    Admin(clusters.source.client_properties, "a").create([NewTopic(topic_name, 1, 1)])
    ends = clusters.source.client_properties, clusters.destination.client_properties
    path = links_file(tmp_path, *ends, topics={"include": [topic_name]})
    where = ("--config", str(path), "--link", "a-to-b")
    assert strait(tmp_path, "apply", *where).returncode == 0
    done = strait(tmp_path, "status", *where, topic_name[:-1])
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        f"neither its plan nor cluster a has a topic '{topic_name[:-1]}'; did you mean '{topic_name}'?" in done.stderr
    )
    assert strait(tmp_path, "status", *where, topic_name).returncode == 0
    done = strait(tmp_path, "status", "--config", str(path), "a-to")  # as the only link is it taken for a topic
    assert (done.returncode, "has a topic 'a-to'; did you mean 'a-to-b'?" in done.stderr) == (2, True)


@pytest.mark.core
def test_a_shell_completes_topics_that_the_link_selects_and_consumer_groups_of_the_source(
    tmp_path: Path, clusters: Any, topic_name: str
) -> None:
    source = clusters.source.client_properties
    Admin(source, "a").create([NewTopic(f"{topic_name}{end}", 1, 1) for end in (".a", ".b", "-other")])
    group = f"{topic_name}-readers"
    commit(clusters.source, group, {TopicPartition(f"{topic_name}.a", 0): 0})
    path = links_file(tmp_path, source, source, topics={"regex": [rf"{topic_name}\..*"]})

    def completed(*words: str) -> list[str]:
        environment = {"COMP_WORDS": "\n".join(("strait", *words)), "COMP_CWORD": str(len(words))}
        environment |= {"_STRAIT_COMPLETE": "complete_bash", "STRAIT_LINKS_FILE": str(path)}
        return subprocess.run(
            [STRAIT], capture_output=True, text=True, timeout=60, check=True, env=os.environ | environment
        ).stdout.split()

    selected = [f"{topic_name}.a", f"{topic_name}.b"]
    eventually(lambda: completed("status", "a-to-b", topic_name) == selected, what="its topics")
    eventually(lambda: completed("groups", "a-to-b", topic_name) == [group], what="the group")


@pytest.mark.core
def test_losses_are_listed_for_people_and_programs(tmp_path: Path, clusters: Any, topic_name: str) -> None:
    link = "l" + topic_name[-8:]
    properties = clusters.destination.client_properties
    path = links_file(tmp_path, clusters.source.client_properties, properties)
    path.write_text(path.read_text().replace("a-to-b", link))
    where = ("--config", str(path), "--link", link)
    done = strait(tmp_path, "losses", *where)
    assert (done.returncode, done.stdout) == (0, f"link {link}: no losses recorded\n")
    ensure_state_topics(Admin(properties, "b"), link, None)
    place = {"link": link, "topic": "orders", "partition": 3, "side": "source", "from_offset": 1000, "to_offset": 2000}
    loss = Loss(cause="source_data_lost", at_ms=1_700_000_000_000, action="continued", detail="why", **place)
    writer = StateWriter(properties, "b", link)
    writer.write_loss(loss)
    assert writer.flush(60)
    shown = strait(tmp_path, "losses", *where).stdout
    assert "2023-11-14 22:13:20  orders-3  source  1,000  2,000  continued  source_data_lost: why" in shown
    assert json.loads(strait(tmp_path, "losses", *where, "--json").stdout) == [
        {"schema_version": 1, **loss.model_dump(), "acknowledged": None}
    ]
    assert json.loads(strait(tmp_path, "losses", *where, "--json", "orders").stdout) == [
        {"schema_version": 1, **loss.model_dump(), "acknowledged": None}
    ]
    done = strait(tmp_path, "losses", *where, "order")
    assert (done.returncode, done.stdout) == (2, "")
    assert "neither its plan nor its loss log has a topic 'order'; did you mean 'orders'?" in done.stderr


@pytest.mark.core
def test_losses_are_acknowledged_in_the_links_state_and_later_ones_are_new(
    tmp_path: Path, clusters: Any, topic_name: str
) -> None:
    link = "l" + topic_name[-8:]
    properties = clusters.destination.client_properties
    path = links_file(tmp_path, clusters.source.client_properties, properties)
    path.write_text(path.read_text().replace("a-to-b", link))
    where = ("--config", str(path), "--link", link)
    ensure_state_topics(Admin(properties, "b"), link, None)
    said = ("--acknowledge", "--by", "ann", "--reason", "test data")
    done = strait(tmp_path, "losses", *where, *said)
    assert (done.returncode, "no loss is left to acknowledge" in done.stderr) == (2, True)
    place = {"link": link, "topic": "orders", "side": "source", "from_offset": 1000, "to_offset": 2000}
    writer = StateWriter(properties, "b", link)

    def lose(partition: int) -> None:
        loss = Loss(cause="source_data_lost", at_ms=1, action="continued", detail="", partition=partition, **place)
        writer.write_loss(loss)
        assert writer.flush(60)

    lose(0)
    lose(1)
    of = ConfiguredLink.load(path, link)
    acknowledge(of, by="page", reason="", count=1)  # has seen the first alone
    found = json.loads(strait(tmp_path, "losses", *where, "--new", "--json").stdout)
    assert [loss["partition"] for loss in found] == [1]
    assert strait(tmp_path, "losses", *where, *said).stdout == f"link {link}: 2 losses are acknowledged by ann\n"
    lose(2)
    with of.state("losses") as state:
        state.catch_up()
        assert state.trouble is None
        assert [said and said.by for said in state.loss_acknowledgements] == ["page", "ann", None]
    shown = strait(tmp_path, "losses", *where).stdout.splitlines()
    assert [line.endswith(": test data") for line in shown] == [False, False, True, False]
    assert shown[-1].endswith("new")


@pytest.mark.core
def test_help_and_version_load_neither_kafka_nor_spark() -> None:
    code = (
        "import sys, strait.cli.main\n"
        "heavy = {'confluent_kafka', 'kafka', 'pyspark', 'airflow', 'pandas'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
    done = subprocess.run([STRAIT, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("strait ")


def test_an_unknown_option_is_exit_code_2() -> None:
    assert subprocess.run([STRAIT, "plan", "--lnik", "x"], capture_output=True, timeout=60, check=False).returncode == 2
