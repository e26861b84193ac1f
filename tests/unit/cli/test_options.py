"""How commands find their link, and read durations."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from strait.cli.main import COMMANDS, app
from strait.cli.options import one_link, seconds
from strait.errors import ConfigError
from strait.reasons import Reason
from support import doc_tables, pages

CLUSTERS = 'clusters: {a: {bootstrap.servers: "127.0.0.1:1"}, b: {bootstrap.servers: "127.0.0.1:2"}}\n'
LINK = "{source: a, destination: b, topics: {include: [orders]}}"


@pytest.fixture
def one(tmp_path: Path) -> Path:
    file = tmp_path / "one.yaml"
    file.write_text(f"{CLUSTERS}links: {{a-to-b: {LINK}}}\n")
    return file


@pytest.fixture
def two(tmp_path: Path) -> Path:
    file = tmp_path / "two.yaml"
    file.write_text(f"{CLUSTERS}links: {{a-to-b: {LINK}, other: {LINK}}}\n")
    return file


def test_the_only_link_need_not_be_named(one: Path) -> None:
    assert one_link(one, None) == ("a-to-b", "")
    assert one_link(one, None, "orders", None, most=1) == ("a-to-b", "orders")
    assert one_link(one, None, "a-to-b", "orders", most=1) == ("a-to-b", "orders")


def test_of_several_links_one_is_named_first_or_by_the_option(two: Path) -> None:
    assert one_link(two, None, "other", "orders", most=1) == ("other", "orders")
    assert one_link(two, "other", "orders", None, most=1) == ("other", "orders")
    with pytest.raises(ConfigError, match="has several links: a-to-b, other"):
        one_link(two, None)
    with pytest.raises(ConfigError, match="has no link 'othr'; did you mean 'other'"):
        one_link(two, None, "othr")


def test_what_is_too_much_is_refused(one: Path, two: Path) -> None:
    with pytest.raises(ConfigError, match="has no link 'orders'"):
        one_link(one, None, "orders")
    with pytest.raises(ConfigError, match="unexpected argument 'orders'"):
        one_link(two, "other", "orders")


@pytest.mark.parametrize(("text", "value"), [("30s", 30), ("10m", 600), ("2h", 7200), ("250ms", 0.25), ("1.5", 1.5)])
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "-1s", "10 minutes", "s", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a duration such as 30s"):
        seconds(text)


def test_explain_has_the_meaning_and_the_remedy_of_every_code() -> None:
    for reason in Reason:
        shown = CliRunner().invoke(app, ["explain", reason]).output
        assert reason.meaning in shown
        assert reason.remedy in shown
    with pytest.raises(ConfigError, match="did you mean 'slot_silent'"):
        CliRunner().invoke(app, ["explain", "slot_silen"], catch_exceptions=False)


def test_validate_reads_the_default_file_and_names_every_mistake(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(one.parent)
    monkeypatch.delenv("STRAIT_LINKS_FILE", raising=False)
    one.rename("links.yaml")
    assert CliRunner().invoke(app, ["validate"]).output == "links.yaml: valid: a-to-b\n"
    Path("links.yaml").write_text(f"{CLUSTERS}links: {{a-to-b: {{source: a, destination: c, topic: {{}}}}}}\n")
    with pytest.raises(ConfigError) as refused:
        CliRunner().invoke(app, ["validate"], catch_exceptions=False)
    assert "did you mean 'topics'" in str(refused.value)
    assert "'c'" in str(refused.value)


@pytest.mark.parametrize("command", ["run", "plan", "apply", "status", "wait", "pause", "stop", "quarantine list"])
def test_h_is_help_everywhere(command: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), "-h"])
    assert (done.exit_code, "Usage:" in done.output) == (0, True)


@pytest.mark.parametrize("words", [["--json"], ["-o", "json"], ["--output=JSON"]])
def test_json_is_one_line_with_a_schema_version(one: Path, words: list[str]) -> None:
    result = CliRunner().invoke(app, ["validate", "-f", str(one), *words])
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    assert json.loads(line) == {"schema_version": 1, "file": str(one), "valid": True, "links": ["a-to-b"]}


def test_yaml_says_the_same_and_each_item_of_a_list_has_its_version() -> None:
    told = {form: CliRunner().invoke(app, ["explain", "paused", "-o", form]).stdout for form in ("json", "yaml")}
    assert told["yaml"].startswith("---\n")
    assert yaml.safe_load(told["yaml"]) == json.loads(told["json"])
    assert [item["schema_version"] for item in json.loads(told["json"])] == [1]


def test_an_argument_that_looks_like_the_option_stays_an_argument() -> None:
    result = CliRunner().invoke(app, ["explain", "--", "--json"])
    assert isinstance(result.exception, ConfigError)
    assert "no reason code '--json'" in str(result.exception)


def test_every_command_has_examples_that_can_be_typed_on_its_help_page() -> None:
    for name, command in doc_tables.commands().items():
        lines = command.epilog.splitlines()
        assert lines and all(line.startswith("strait ") for line in lines), name
        shown = CliRunner().invoke(app, [*name.split()[1:], "-h"]).stdout
        for line in lines:
            pages.parse(line)
            assert line in shown, name


def test_a_group_of_commands_shows_an_example_of_each() -> None:
    groups = {name.split()[1] for name in doc_tables.commands() if len(name.split()) == 3}
    groups -= {"demo", "audit"}  # their help is that of the command that they run without a name
    assert groups >= {"quarantine", "tail", "offsets", "import"}
    for group in groups:
        shown = CliRunner().invoke(app, [group, "-h"]).stdout.partition("Examples:")[2]
        for name in (one for one in doc_tables.commands() if one.startswith(f"strait {group} ")):
            assert f"   {name} " in f"{shown} ".replace("\n", " \n"), name


def test_the_list_of_commands_has_the_first_sentences_of_their_help() -> None:
    """It is shown without importing a command, so it is written twice."""
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert " ".join(command.help.partition("\n\n")[0].split()) == COMMANDS[name][1], name


def test_the_help_and_the_completion_of_commands_import_none_of_them() -> None:
    code = (
        "import sys, typer; from strait.cli.main import app\n"
        "group = typer.main.get_command(app)\n"
        "context = group.make_context('strait', ['status'], resilient_parsing=True)\n"
        "group.get_help(context)\n"
        "print([found.value for found in group.shell_complete(context, 'sta')])\n"
        "print([name for name in sys.modules if name.startswith(('strait.cli.status', 'strait.control', 'kafka'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert "Show state, lag and issues" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["['status', 'start']", "[]"]
