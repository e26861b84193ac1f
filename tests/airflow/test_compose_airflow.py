"""What docker-compose.yaml tells Airflow, asked of Airflow itself."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.fixtures.compose import PROJECT, services

pytestmark = pytest.mark.airflow

AIRFLOW = {name: service for name, service in services().items() if name.startswith("airflow-")}


def test_every_setting_is_an_option_of_airflow():
    from airflow.configuration import conf

    names = {name for service in AIRFLOW.values() for name in service["environment"] if name.startswith("AIRFLOW__")}
    assert len(names) > 10
    for name in names:
        section, option = name.removeprefix("AIRFLOW__").lower().split("__")
        known = conf.configuration_description.get(section, {}).get("options", {})
        assert option in known, name


def test_every_command_is_one_of_airflow():
    from airflow.cli import cli_parser

    commands = {command.name for command in cli_parser.airflow_commands}
    for service in AIRFLOW.values():
        if len(service["command"]) == 1:
            assert service["command"][0] in commands


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """As in the containers, but with SQLite and an own home."""
    home = tmp_path_factory.mktemp("compose")
    own = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    return own | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_ADMIN_PASSWORD": 'quite "secret"',
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "RETENTION_DAYS": "14",
        "SPARK_REST_KEY": base64.urlsafe_b64encode(bytes(32)).decode(),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


def run(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_start_seeds_and_the_next_leaves_edits_alone(environment):
    init = str(PROJECT / "docker" / "init.sh")
    run(environment, init)

    passwords = Path(environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    assert json.loads(passwords.read_text(encoding="utf-8")) == {"admin": 'quite "secret"'}
    assert passwords.stat().st_mode & 0o077 == 0
    token = passwords.with_name("spark_token")
    assert token.read_text(encoding="ascii").count(".") == 2
    assert token.stat().st_mode & 0o077 == 0
    (source,) = json.loads(run(environment, "airflow", "connections", "get", "strait_source", "--output", "json"))
    assert source["extra_dejson"] == {"bootstrap.servers": "kafka-source:9092"}

    run(environment, "airflow", "variables", "set", "strait_topics_shop", '{"include": ["edited"]}')
    run(environment, init)
    seeded = run(environment, "airflow", "variables", "get", "strait_topics_shop")
    assert json.loads(seeded) == {"include": ["edited"]}


def test_maintenance_deletes_old_logs_and_keeps_new_ones(environment):
    run(environment, "airflow", "db", "migrate")
    logs = Path(environment["AIRFLOW_HOME"]) / "logs"
    old, new = logs / "dag_id=x" / "old.log", logs / "dag_id=x" / "new.log"
    for file in (old, new):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    os.utime(old, (0, 0))

    run(environment, str(PROJECT / "docker" / "maintenance.sh"), "once")
    assert not old.exists()
    assert new.exists()
