"""What `strait plan --pool` shows: which Spark task would host which slot, and links that cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.cli import pool_plan
from strait.cli.options import Output
from strait.config.app_spec import Seat
from strait.control.pool import Observed
from strait.errors import ConfigError
from strait.state.link_handle import ConfiguredLink


@pytest.fixture
def links_file(tmp_path: Path) -> Path:
    link = {"source": "a", "destination": "b", "pool": "main"}
    clusters = {name: {"bootstrap.servers": f"{name}:1"} for name in "ab"}
    raw = {"clusters": clusters, "pools": {"main": {"slots": 2}}, "links": dict.fromkeys(("one", "two", "away"), link)}
    path = tmp_path / "links.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


@pytest.fixture(autouse=True)
def observed(monkeypatch: pytest.MonkeyPatch) -> None:
    def observe(link: ConfiguredLink) -> Observed:
        if link.name == "away":
            return Observed(link.name, error="cluster b: timed out")
        seats = tuple(Seat(link.name, "default", slot) for slot in range(2))
        return Observed(link.name, seats, {seats[0]: 5_000_000.0} if link.name == "one" else {})

    monkeypatch.setattr(pool_plan, "observe", observe)


def test_slots_are_shown_with_their_tasks_and_what_is_not_known_as_such(
    links_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool_plan.show_pool(links_file, "main", Output.TABLE)
    said = capsys.readouterr().out
    assert said.startswith("pool main: 4 slots of 3 links in 2 Spark tasks\n")
    assert "5.0" in said
    assert "link away: cluster b: timed out" in said
    assert sum(line.split()[-1:] == ["-"] for line in said.splitlines()) == 3


def test_programs_read_the_same(links_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool_plan.show_pool(links_file, "main", Output.JSON)
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (said["pool"], said["tasks"], said["errors"]) == ("main", 2, {"away": "cluster b: timed out"})
    assert sorted(slot["task"] for slot in said["slots"]) == [0, 0, 1, 1]
    assert {slot["bytes_per_second"] for slot in said["slots"]} == {5_000_000.0, None}


def test_a_pool_that_is_not_there_is_named(links_file: Path) -> None:
    with pytest.raises(ConfigError, match="`pools` has no pool 'mian'; did you mean 'main'"):
        pool_plan.show_pool(links_file, "mian", Output.TABLE)
