"""The package's metadata: what is given to setuptools by `setup.py`."""

import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from strait.config.home import project_root


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
