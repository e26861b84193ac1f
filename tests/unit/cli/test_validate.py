"""`strait validate` and the other commands that need no cluster, as they are typed."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from typer.testing import CliRunner

from strait import __version__
from strait.cli import completing
from strait.cli.main import app
from strait.config.home import project_root
from strait.errors import ClusterUnavailable, ConfigError
from strait.net.consumer_groups import ConsumerGroups
from strait.state.link_handle import ConfiguredLink

ENDS = {"a": {"bootstrap.servers": "h:1"}, "b": {"bootstrap.servers": "h:2"}}
LINK = {"source": "a", "destination": "b", "topics": {"include": ["orders"]}}


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in arguments])
    if isinstance(done.exception, ConfigError):
        return 2, str(done.exception)
    return done.exit_code, done.output


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "links.yaml"


def test_a_complete_file_is_valid(file: Path) -> None:
    file.write_text(yaml.safe_dump({"clusters": ENDS, "links": {"l": LINK}}))
    assert run("validate", "-f", file) == (0, f"{file}: valid: l\n")


def test_a_file_without_links_is_valid_and_says_so(file: Path) -> None:
    file.write_text(yaml.safe_dump({"clusters": ENDS, "links": {}}))
    assert run("validate", "-f", file) == (0, f"{file}: valid: it has no links\n")


def test_a_file_in_another_encoding_is_refused_with_the_line(file: Path) -> None:
    file.write_bytes("clusters:\n  # Zürich\n".encode("latin-1"))
    problem = f"links file {file}: is not UTF-8: line 2: invalid start byte (save it as UTF-8)"
    assert run("validate", "-f", file) == (2, problem)


def test_several_problems_are_a_list_below_the_file(file: Path) -> None:
    file.write_text("clusters: []\nlinks: []\n")
    first, *problems = run("validate", "-f", file)[1].splitlines()
    assert first == f"links file {file}:"
    assert len(problems) == 2


@pytest.mark.parametrize(
    ("cluster", "topics", "problem"),
    [
        (
            {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u"},
            LINK["topics"],
            "clusters.a: `sasl.password` is missing",
        ),
        ({}, {}, "links.l.topics: selects no topic"),
        ({}, {"include": []}, "links.l.topics: selects no topic"),
        ({}, {"rules": [{"match": ".*", "on_loss": "continue"}]}, "links.l.topics: selects no topic"),
    ],
)
def test_what_airflow_may_add_is_missing_without_it(
    file: Path, cluster: dict[str, str], topics: object, problem: str
) -> None:
    ends = ENDS | {"a": ENDS["a"] | cluster, "other": {"bootstrap.servers": "h:3", "ssl.ca.location": "/ca"}}
    file.write_text(yaml.safe_dump({"clusters": ends, "links": {"l": LINK | {"topics": topics}}}))
    code, said = run("validate", "-f", file)
    assert (code, problem in said, "--airflow" in said) == (2, True, True)
    assert "clusters.other" not in said, "no link uses it"
    assert run("validate", "-f", file, "--airflow")[0] == 0


def test_a_value_that_librdkafka_rejects_is_refused_without_a_connection(file: Path) -> None:
    ends = ENDS | {"a": ENDS["a"] | {"socket.timeout.ms": "abc"}}
    file.write_text(yaml.safe_dump({"clusters": ends, "links": {"l": LINK}}))
    code, said = run("validate", "-f", file, "--airflow")
    assert code == 2
    assert said.startswith(f"links file {file}: clusters.a: `socket.timeout.ms`: librdkafka rejects the value")


def test_a_link_that_is_meant_to_be_empty_is_valid(file: Path) -> None:
    file.write_text(yaml.safe_dump({"clusters": ENDS, "links": {"l": LINK | {"topics": {"allow_empty": True}}}}))
    assert run("validate", "-f", file)[0] == 0


@pytest.mark.parametrize(
    ("group", "command"),
    [("", "validate"), ("quarantine", "replay"), ("audit", "verify"), ("import", "mm2"), ("pools", "adopt")],
)
def test_a_group_of_commands_alone_shows_its_help(group: str, command: str) -> None:
    code, said = run(*group.split())
    assert code == 0
    assert "Usage:" in said and command in said


@pytest.mark.parametrize("module", ["strait", "strait.cli.main"])
def test_a_module_is_the_command_where_no_script_is_installed(module: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(project_root() / "include")}
    command = [sys.executable, "-m", module, "version"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == ["strait", __version__]


def test_the_version_is_an_option_and_a_command() -> None:
    assert run("--version") == (0, f"strait {__version__}\n")
    code, said = run("version")
    assert code == 0
    assert said.splitlines()[0].split() == ["strait", __version__]
    assert "plugins" in said


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (("status", "n"), ["night"]),
        (("pause", ""), ["day", "night"]),
        (("validate", "day", "n"), ["night"]),
        (("wait", "--link", "d"), ["day"]),
        (("explain", "batch_too"), ["batch_too_large"]),
        (("offsets", "translate", "n"), ["night"]),
        (("groups", "n"), ["night"]),
    ],
)
def test_a_shell_completes_links_and_reason_codes(
    file: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], completed: list[str]
) -> None:
    file.write_text(yaml.safe_dump({"clusters": ENDS, "links": {"night": LINK, "day": LINK}}))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
    assert completions(monkeypatch, *words) == completed


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (("status", "night", ""), ["invoices", "orders"]),
        (("losses", "--link", "night", "--topic", "o"), []),  # it has no such option
        (("quarantine", "list", "night", "--topic", "o"), ["orders"]),
        (("audit", "run", "night", "orders", "i"), ["invoices"]),
        (("pause", "night", "inv"), ["invoices"]),
        (("status", "nigth", ""), []),
        (("groups", "night", "bill"), []),
    ],
)
def test_a_shell_completes_the_topics_of_the_file_and_waits_for_no_cluster_that_is_silent(
    file: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], completed: list[str]
) -> None:
    night = LINK | {"topics": {"include": ["orders", "invoices"]}}
    file.write_text(yaml.safe_dump({"clusters": ENDS, "links": {"night": night, "day": LINK}}))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
    monkeypatch.setattr(completing, "MOST_SECONDS", 0.01)
    over = threading.Event()

    def silent(*_: object) -> NoReturn:
        over.wait()
        raise ClusterUnavailable("a", "is silent")

    monkeypatch.setattr(ConfiguredLink, "admin", silent)
    monkeypatch.setattr(ConsumerGroups, "__enter__", silent)
    try:
        assert completions(monkeypatch, *words) == completed
    finally:
        over.set()


def completions(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    monkeypatch.setenv("COMP_WORDS", "\n".join(("strait", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv("_STRAIT_COMPLETE", "complete_bash")
    return CliRunner().invoke(app, prog_name="strait").output.split()
