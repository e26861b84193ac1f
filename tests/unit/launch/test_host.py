"""What is said of a host."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from strait.cli.main import app
from strait.launch import host
from strait.launch.host import Verdict


@pytest.mark.parametrize(
    ("version", "verdict"),
    [((3, 10), Verdict.FAILED), ((3, 11), Verdict.OK), ((3, 13), Verdict.OK), ((3, 14), Verdict.WARNING)],
)
def test_pythons_that_are_not_tested_are_told(version: tuple[int, int], verdict: Verdict) -> None:
    assert host.python(version).verdict is verdict


@pytest.mark.parametrize(
    ("pyspark", "client", "verdict"),
    [
        ("4.2.0", "4.2.0", Verdict.OK),
        ("4.2.0", "", Verdict.OK),
        ("4.2.0", "4.1.0", Verdict.FAILED),
        ("", "4.2.0", Verdict.FAILED),
    ],
)
def test_spark_and_its_client_must_be_of_one_version(pyspark: str, client: str, verdict: Verdict) -> None:
    check = host.spark(pyspark, client)
    assert check.verdict is verdict
    assert bool(check.remedy) is (verdict is Verdict.FAILED)


def test_what_is_short_is_a_warning_with_its_figure() -> None:
    assert host.load(46.2, 2) == (
        "load",
        Verdict.WARNING,
        "load 46 on 2 cores",
        "stop other work, or give the host more cores",
    )
    assert host.load(7.9, 2).verdict is Verdict.OK
    assert host.memory(1 << 29).found == "0.5 GiB available"
    assert host.memory(1 << 29).verdict is Verdict.WARNING
    assert host.disk(Path("/somewhere"), 1 << 30).verdict is Verdict.WARNING
    assert host.disk(Path("/somewhere"), 3 << 30).verdict is Verdict.OK


def test_a_cluster_that_is_away_fails_and_a_missing_file_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STRAIT_LINKS_FILE", raising=False)
    shown = CliRunner().invoke(app, ["doctor"])
    assert shown.exit_code == 0, shown.output
    assert "there is none" in shown.output
    file = tmp_path / "links.yaml"
    file.write_text(
        "clusters: {a: {bootstrap.servers: '127.0.0.1:1'}, b: {bootstrap.servers: '127.0.0.1:2'}}\n"
        "links: {a-to-b: {source: a, destination: b, topics: {include: [t]}}}\n"
    )
    shown = CliRunner().invoke(app, ["doctor", "-f", str(file)])
    assert shown.exit_code == 1
    (line,) = [line for line in shown.output.splitlines() if line.startswith("a as source")]
    assert "failed" in line
    assert "Connection refused" in line
    file.write_text("links: []\n")
    shown = CliRunner().invoke(app, ["doctor", "-f", str(file)])
    assert shown.exit_code == 1
    assert "strait validate" in shown.output
