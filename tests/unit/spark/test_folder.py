"""What one application leaves of its folder, and what the next one clears away."""

import os
import time
from pathlib import Path

import pytest

from strait.config.app_spec import AppSpec
from strait.spark import folder

WEEK_SECONDS = 7 * 86400


@pytest.fixture
def spec(tmp_path: Path) -> AppSpec:
    return AppSpec(
        link="link",
        group="default",
        source_name="a",
        source={},
        destination_name="b",
        destination={},
        slots=1,
        slot_memory_bytes=1,
        ledger_seconds=1,
        ledger_dir=str(tmp_path / "ledger"),
        checkpoint_dir=str(tmp_path / "checkpoint"),
    )


def age(spec: AppSpec, application: str, seconds: float) -> None:
    at = time.time() - seconds
    os.utime(folder.folder_of(spec, application), (at, at))


def test_only_what_nobody_used_for_a_week_is_cleared_away(spec: AppSpec) -> None:
    for application in ("killed", "busy", "quiet"):
        folder.make(spec, application)
        folder.checkpoint(spec, application).mkdir()
    age(spec, "killed", WEEK_SECONDS + 60)
    age(spec, "quiet", WEEK_SECONDS - 3600)
    age(spec, "busy", WEEK_SECONDS + 60)
    folder.touch(spec, "busy")
    folder.make(spec, "new")
    assert {path.name for path in Path(spec.checkpoint_dir).iterdir()} == {"busy", "quiet", "new"}


def test_it_removes_its_own_folder_also_when_that_is_gone_already(spec: AppSpec) -> None:
    folder.make(spec, "one")
    folder.remove(spec, "one")
    folder.touch(spec, "one")
    folder.remove(spec, "one")
    assert list(Path(spec.checkpoint_dir).iterdir()) == []


def test_slots_do_not_see_a_folder_in_the_drivers_working_directory(spec: AppSpec) -> None:
    assert folder.slots_may_see(spec)
    assert not folder.slots_may_see(spec.model_copy(update={"checkpoint_dir": "checkpoint"}))


def test_hadoop_reads_the_path_of_a_checkpoint_as_it_is(spec: AppSpec) -> None:
    """Its `Path` decodes no `%20`, so an encoded one would be a directory of another name."""
    spec = spec.model_copy(update={"checkpoint_dir": "/data/my home/jürgen@example+x%20"})
    expected = "file:///data/my home/jürgen@example+x%20/one/checkpoint"
    assert folder.checkpoint_location(spec, "one") == expected
