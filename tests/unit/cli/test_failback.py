"""`strait failback` names the link that failed over; it is the link in the opposite direction that fails over."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from strait.cli import failover
from strait.cli.main import app, exit_code
from strait.errors import ConfigError

CLUSTERS = {name: {"bootstrap.servers": f"{name}:1"} for name in "abc"}


def links_file(folder: Path, *links: str) -> Path:
    """Each link is called by its ends: `a-b`, and whatever follows."""
    path = folder / "links.yaml"
    settings = {name: {"source": name[0], "destination": name[2]} for name in links}
    path.write_text(yaml.safe_dump({"clusters": CLUSTERS, "links": settings}))
    return path


def test_the_opposite_link_fails_over_also_for_groups_that_have_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: dict[str, object] = {}
    monkeypatch.setattr(failover, "failover", lambda link, *_, **given: called.update(given, link=link))
    path = links_file(tmp_path, "a-b", "b-a", "a-c", "c-a")
    done = CliRunner().invoke(app, ["failback", "a-b", "-f", str(path), "--dry-run", "--quiet", "3s"])
    assert done.exit_code == 0, done.output
    assert (called["link"], called["include_moved"], called["dry_run"], called["quiet"]) == ("b-a", True, True, 3.0)


@pytest.mark.parametrize(
    ("links", "error"),
    [
        (["a-b", "a-c"], "link a-b: no link copies the other way"),
        (["a-b", "b-a", "b-a-too"], "link a-b: several links copy the other way: b-a, b-a-too"),
    ],
)
def test_without_one_opposite_link_nothing_is_done(tmp_path: Path, links: list[str], error: str) -> None:
    done = CliRunner().invoke(app, ["failback", "a-b", "-f", str(links_file(tmp_path, *links))])
    assert isinstance(done.exception, ConfigError)
    assert exit_code(done.exception) == 2
    assert str(done.exception).startswith(error)
