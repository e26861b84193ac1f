"""The package's metadata: its version, and what is given to setuptools by `setup.py`."""

import re
import runpy
import sys
import tomllib
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

from strait import __version__
from strait.config.home import project_root


def test_the_package_and_the_provider_have_one_version() -> None:
    package, provider = (
        tomllib.loads((project_root() / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in ("", "provider")
    )
    assert package["version"] == provider["version"] == __version__
    assert provider["dependencies"] == [f"strait[airflow]=={__version__}"]


def test_a_release_is_built_with_versions_that_are_locked_by_hash() -> None:
    """A wheel records the version of setuptools."""
    lock = (project_root() / "requirements-build.lock").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^(\S+)==(\S+) \\\n    --hash=sha256:", lock, re.MULTILINE))
    for folder in ("", "provider"):
        project = tomllib.loads((project_root() / folder / "pyproject.toml").read_text(encoding="utf-8"))
        for requirement in map(Requirement, project["build-system"]["requires"]):
            assert requirement.specifier.contains(locked[requirement.name])
    makefile = (project_root() / "Makefile").read_text(encoding="utf-8")
    (build,) = re.findall(r'^BUILD = ("\$\$uv" build .*)$', makefile, re.MULTILINE)
    assert build.endswith("--build-constraints requirements-build.lock --require-hashes")
    assert makefile.count('"$$uv" build') == 1, "all others use BUILD"


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
