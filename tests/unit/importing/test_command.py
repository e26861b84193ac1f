"""`strait import`: a links file on standard output, what is not in it on standard error, and never a secret."""

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
    assert (
        result.stderr
        == "left out  eu->us.checkpoints.topic.replication.factor: the topic for checkpoints is created with the broker's defaults\n"
    )
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
    assert {"at": ["links", "eu-to-us", "configs", "sync"], "note": "MirrorMaker 2's default."} in said["notes"]
    assert result.stderr == ""


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
        ("\xff", "cannot be read"),
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
