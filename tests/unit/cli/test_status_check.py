"""`strait status --check` fails if a partition waits, whether one link, one topic or all links are named."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from strait.cli import status as status_command
from strait.cli.main import app
from strait.control.link_status import LinkStatus
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status

STUCK = PartitionStatus("pay", 1, "pay", 0, "waiting", "batch_too_large", "", 7, 27, 20, 3.0)
WELL = PartitionStatus("orders", 0, "orders", 0, "caught_up", "", "", 5, 5, 0, 0.0)


@pytest.mark.parametrize(
    ("words", "rows", "code"),
    [
        (["l"], (WELL, STUCK), 1),
        ([], (WELL, STUCK), 1),
        (["l", "pay"], (WELL, STUCK), 1),
        (["l", "orders"], (WELL, STUCK), 0),
        (["l"], (WELL,), 0),
    ],
)
def test_whatever_waits_longer_than_the_bound_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], rows: tuple[PartitionStatus, ...], code: int
) -> None:
    status = Status("l", "default", 1, False, (SlotStatus(0, False, 100),), rows)

    def found(*_: Any, **__: Any) -> LinkStatus:
        return LinkStatus("l", "a", "b", (status,), ())

    for name in ("link_status", "link_groups"):
        monkeypatch.setattr(status_command, name, found)
    path = tmp_path / "links.yaml"
    clusters = {name: {"bootstrap.servers": f"{name}:1"} for name in "ab"}
    path.write_text(yaml.safe_dump({"clusters": clusters, "links": {"l": {"source": "a", "destination": "b"}}}))
    done = CliRunner().invoke(app, ["status", *words, "-f", str(path), "--check", "--for", "0s"])
    assert done.exit_code == code, done.output
    assert ("link l: pay-1 has waited for 0 s: batch_too_large" in done.output) == bool(code)
