"""A file with exported records is there whole, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strait.control.tail_export import to_file
from strait.errors import ClusterUnavailable, ConfigError, SetupError
from strait.model import TopicPartition
from strait.state.tail_records import TailRecord

RECORDS = [TailRecord("t", number % 2, number, 1, b"k", b"v", ()) for number in range(5)]


def test_a_file_counts_what_it_holds(tmp_path: Path) -> None:
    counted = to_file(tmp_path / "tail", iter(RECORDS))
    assert counted == {TopicPartition("t", 0): 3, TopicPartition("t", 1): 2}
    assert len((tmp_path / "tail").read_text().splitlines()) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["tail"]


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def records() -> Iterator[TailRecord]:
        yield from RECORDS
        raise ClusterUnavailable("a", "gone")

    with pytest.raises(ClusterUnavailable):
        to_file(tmp_path / "tail", records())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "tail").write_text("mine")
    with pytest.raises(ConfigError, match="exists; name another one"):
        to_file(tmp_path / "tail", RECORDS)
    (tmp_path / "other.part").write_text("of another export")
    with pytest.raises(ConfigError, match="another export writes it"):
        to_file(tmp_path / "other", RECORDS)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "tail": "mine",
        "other.part": "of another export",
    }

    def records() -> Iterator[TailRecord]:
        (tmp_path / "later").write_text("mine, too")
        yield from RECORDS

    with pytest.raises(ConfigError, match="exists; name another one"):
        to_file(tmp_path / "later", records())
    assert (tmp_path / "later").read_text() == "mine, too"
    (tmp_path / "later").unlink()
    with pytest.raises(SetupError, match="File name too long"):
        to_file(tmp_path / ("long" * 100), RECORDS)
    with pytest.raises(SetupError, match="No such file or directory"):
        to_file(tmp_path / "no-directory" / "tail", RECORDS)
