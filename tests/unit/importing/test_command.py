"""`strait import`: a links file on standard output, what is not in it on standard error, and never a secret."""

import itertools
import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from strait.cli.main import app, exit_code
from strait.config.links import load
from strait.errors import ConfigError

PROPERTIES = r"""
clusters = eu, us
eu.bootstrap.servers = e:1
us.bootstrap.servers = u:1, \
    u:2
us.security.protocol = SASL_SSL
us.sasl.mechanism = PLAIN
us.sasl.jaas.config = PlainLoginModule required username="me" password="hunter2";
eu->us.enabled = true
eu->us.topics = orders, metrics\\..*
eu->us.groups = mine
eu->us.checkpoints.topic.replication.factor = 3
"""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["import", *map(str, words)], catch_exceptions=True)


def test_the_links_file_is_what_strait_reads(tmp_path: Path) -> None:
    (tmp_path / "mm2.properties").write_text(PROPERTIES)
    result = run("mm2", tmp_path / "mm2.properties", "--link", "mine", "--secrets-dir", "/run/secrets")
    assert result.exit_code == 0
    (tmp_path / "links.yaml").write_text(result.stdout)
    file = load(tmp_path / "links.yaml")
    assert file.links["mine"].topics.regex == (r"metrics\..*",)
    assert file.links["mine"].consumer_groups.include == ("mine",)
    assert file.clusters["us"]["bootstrap.servers"] == "u:1,u:2"
    assert file.clusters["us"]["sasl.password"] == "${directory:/run/secrets:us.sasl.password}"
    assert "# Put the secret of `us.sasl.jaas.config` into this file, /run/secrets/us.sasl.password." in result.stdout
    why = "the topic for checkpoints is created with the broker's defaults"
    assert result.stderr == f"behaves differently (1):\n  eu->us.checkpoints.topic.replication.factor: {why}\n"
    assert "hunter2" not in result.output


def test_json_has_the_same_and_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "mm2.properties").write_text(PROPERTIES)
    plain = run("mm2", tmp_path / "mm2.properties")
    result = run("mm2", tmp_path / "mm2.properties", "--json")
    said = json.loads(result.stdout)
    assert said["links_file"] == yaml.safe_load(plain.stdout)
    assert said["left_out"] == {
        "eu->us.checkpoints.topic.replication.factor": "the topic for checkpoints is created with the broker's defaults"
    }
    assert (said["first"], said["differs"], said["needless"]) == ({}, said["left_out"], {})
    assert {"at": ["links", "eu-to-us", "configs", "sync"], "note": "MirrorMaker 2's default."} in said["notes"]
    assert result.stderr == ""


LOST = """
us.sasl.mechanism = GSSAPI
us.sasl.jaas.config = Krb5LoginModule required keyTab="/x";
eu.security.protocol = SSL
eu.ssl.keystore.location = /etc/eu.jks
eu->us.transforms = some
eu->us.transforms.some.type = org.apache.kafka.connect.transforms.Filter
tasks.max = 2
us.producer.linger.ms = 5
eu.consumer.max.poll.records = 5
"""


def test_a_login_and_a_filter_that_are_lost_come_first_with_comments_and_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "mm2.properties").write_text(PROPERTIES + LOST)
    result = run("mm2", tmp_path / "mm2.properties")
    assert result.exit_code == 3
    lines = result.stderr.splitlines()
    assert lines[0] == "correct this first, at the comments FIRST in the links file (5):"
    lost = {"us.sasl.mechanism", "us.sasl.jaas.config", "eu.ssl.keystore.location"}
    lost |= {"eu->us.transforms", "eu->us.transforms.some.type"}
    assert {line.partition(":")[0].strip() for line in lines[1:6]} == lost
    assert lines[6] == "behaves differently (1):"
    assert lines[8] == "not needed (2); --verbose lists them"
    assert len(lines) == 9
    before = {}
    for line, following in itertools.pairwise(result.stdout.splitlines()):
        if "# FIRST: " in line and "# FIRST: " not in following:
            before[following.strip()] = line
    assert set(before) == {"eu:", "us:", "eu-to-us:"}
    shown = run("mm2", tmp_path / "mm2.properties", "--verbose").stderr.splitlines()
    assert shown[8] == "not needed (2):"
    assert {line.partition(":")[0].strip() for line in shown[9:]} == {
        "us.producer.linger.ms",
        "eu.consumer.max.poll.records",
    }
    (tmp_path / "links.yaml").write_text(result.stdout)
    validated = CliRunner().invoke(app, ["validate", "-f", str(tmp_path / "links.yaml")])
    assert "`sasl.mechanism` is missing" in str(validated.exception)


def test_both_directions_under_the_same_names_accept_producers_on_both_sides(tmp_path: Path) -> None:
    same = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
    back = "us->eu.enabled = true\nus->eu.topics = orders\n"
    file = tmp_path / "mm2.properties"
    for text, expects in ((PROPERTIES + same + back, True), (PROPERTIES + same, False), (PROPERTIES + back, False)):
        file.write_text(text)
        result = run("mm2", file)
        (tmp_path / "links.yaml").write_text(result.stdout)
        rules = [link.topics.rules for link in load(tmp_path / "links.yaml").links.values()]
        assert all((of and of[0].on_foreign == "expect") if expects else not of for of in rules)
        assert ("producers may write to both sides" in result.stdout) == expects


def test_a_connector_and_its_worker_are_read_together(tmp_path: Path) -> None:
    connector = {"name": "m", "config": {"consumer.bootstrap.servers": "e:1", "topics.whitelist": "orders"}}
    (tmp_path / "connector.json").write_text(json.dumps(connector))
    (tmp_path / "worker.properties").write_text("bootstrap.servers=u:1\n")
    result = run("mirus", tmp_path / "connector.json", tmp_path / "worker.properties")
    assert yaml.safe_load(result.stdout)["clusters"]["destination"] == {"bootstrap.servers": "u:1"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "cannot be read: "),
        ("{", "is not JSON"),
        ("topics=x", "neither `clusters` nor"),
        ("\xff", "is not UTF-8: line 1"),
    ],
)
def test_what_is_no_configuration_is_an_error(tmp_path: Path, text: str | None, error: str) -> None:
    file = tmp_path / "mm2.properties"
    if text is not None:
        file.write_text(text, encoding="latin-1")
    found = run("mm2", file).exception
    assert isinstance(found, ConfigError)
    assert error in str(found)
    assert exit_code(found) == 2
