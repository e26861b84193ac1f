"""A pool's spec while its application runs: what is written is followed, what cannot be read changes nothing."""

from pathlib import Path

import pytest

from strait.config.app_spec import PoolSpec
from strait.errors import ConfigError
from strait.launch.spec_file import SpecFile

SPEC = PoolSpec(pool="main", slots=1, slot_memory_bytes=1, checkpoint_dir="/c")


def test_a_new_spec_is_followed_and_one_that_cannot_be_read_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spec.json"
    SPEC.write(path)
    file = SpecFile(path)
    assert file.read() is file.read(), "it is parsed once"
    changed = SPEC.model_copy(update={"loads": {"a/default/0": 1.0}})
    changed.write(path)
    assert file.read() == changed
    path.write_text("{")
    assert file.read() == changed
    file.read()
    assert caplog.text.count("the last settings of the pool stay current") == 1
    SPEC.model_copy(update={"strait": "9.9.9"}).write(path)
    assert file.read() == changed
    path.unlink()
    assert file.read() == changed
    SPEC.write(path)
    assert file.read() == SPEC


def test_a_new_spec_whose_reading_failed_once_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A shared directory may fail for a moment, and the spec does not change again for months."""
    path = tmp_path / "spec.json"
    SPEC.write(path)
    file = SpecFile(path)
    changed = SPEC.model_copy(update={"loads": {"a/default/0": 1.0}})
    changed.write(path)

    def fail(_: Path) -> PoolSpec:
        raise ConfigError("application spec", ["cannot be read: Stale file handle"])

    with monkeypatch.context() as broken:
        broken.setattr(PoolSpec, "read", fail)
        assert file.read() == file.read() == SPEC
    assert caplog.text.count("the last settings of the pool stay current") == 1
    assert file.read() == changed
    assert file.read() is file.read()


def test_without_a_spec_there_is_nothing_to_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        SpecFile(tmp_path / "spec.json")
