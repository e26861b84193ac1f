"""The package's metadata: its version, and what is given to setuptools by `setup.py`."""

import runpy
import sys
import tomllib
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from strait import __version__
from strait.config.home import project_root


def test_the_package_and_the_provider_have_one_version() -> None:
    package, provider = (
        tomllib.loads((project_root() / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in ("", "provider")
    )
    assert package["version"] == provider["version"] == __version__
    assert provider["dependencies"] == [f"strait[airflow]=={__version__}"]


@pytest.mark.parametrize(
    ("repository", "urls"),
    [
        ("", {}),
        ("https://git.example.org/team/strait.git", {"Source": "https://git.example.org/team/strait"}),
        ("https://bob:secret@git.example.org:8443/strait/", {"Source": "https://git.example.org:8443/strait"}),
        ("git@example.org:strait", None),
        ("/home/bob/strait", None),
    ],
)
def test_the_package_names_the_repository_that_it_is_built_for_and_no_password(
    monkeypatch: pytest.MonkeyPatch, repository: str, urls: dict[str, str] | None
) -> None:
    given: dict[str, Any] = {}
    stand_in: Any = ModuleType("setuptools")  # an environment need not have it
    stand_in.setup = given.update
    monkeypatch.setitem(sys.modules, "setuptools", stand_in)
    monkeypatch.setitem(sys.modules, "setuptools.command", ModuleType("setuptools.command"))
    monkeypatch.setitem(sys.modules, "setuptools.command.build_py", SimpleNamespace(build_py=object))  # type: ignore[arg-type]
    monkeypatch.setenv("STRAIT_REPOSITORY", repository)
    if urls is None:
        with pytest.raises(SystemExit):
            runpy.run_path(str(project_root() / "setup.py"))
    else:
        runpy.run_path(str(project_root() / "setup.py"))
        assert given["project_urls"] == urls
