"""The package of an application has every library that its driver and slots import."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from strait.launch.package import LIBRARIES, SIGNER, remove_commands

OF_SPARK = frozenset({"pyspark", "pyspark-client", "py4j"})
LOADED = """
import importlib, json, pkgutil, sys
import strait.engine, strait.net, strait.spark, strait.wire
for package in (strait.engine, strait.net, strait.spark, strait.wire):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
loaded = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
print(json.dumps([file for name, file in loaded.items() if file and name.partition(".")[0] == "strait"]))
"""


def imported(file: Path) -> Iterator[str]:
    """The packages that it imports anywhere, also inside of functions."""
    if file.suffix != ".py":
        return
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def normal(distribution: str) -> str:
    return re.split(r"[^\w.-]", distribution)[0].lower().replace("_", "-")


def needs(distribution: str) -> list[str]:
    """None of what only another version of Python needs, and is not installed."""
    try:
        return requires(distribution) or []
    except PackageNotFoundError:
        return []


def with_what_they_need(distributions: frozenset[str]) -> frozenset[str]:
    found, left = set[str](), {normal(one) for one in distributions}
    while left:
        found |= left
        left = {normal(need) for one in left for need in needs(one) if "extra ==" not in need} - found
    return frozenset(found)


def test_it_has_every_library_that_is_imported_there() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=120, check=True)
    modules = {name for file in json.loads(done.stdout) for name in imported(Path(file))}
    distributions = packages_distributions()
    needed = {normal(one) for module in modules for one in distributions.get(module, ())} - {"strait"}
    assert needed >= {"confluent-kafka", "pydantic", "kafka-python"}, "nothing was looked at"
    missing = needed - with_what_they_need(frozenset({*LIBRARIES, SIGNER})) - OF_SPARK
    assert not missing


def test_nothing_in_it_tells_which_python_built_it(tmp_path: Path) -> None:
    contents = []
    for python in ("/usr/bin/python3", "/home/alice/strait/.venv/bin/python"):
        packages = tmp_path / python.strip("/").replace("/", "-")
        (packages / "bin").mkdir(parents=True)
        (packages / "tool-1.0.dist-info").mkdir()
        command = f"#!{python}\nimport tool\n"
        (packages / "bin" / "tool").write_text(command)
        listed = f"bin/tool,sha256={hash(command)},{len(command)}\ntool.py,sha256=x,1\nbinary/tool.py,sha256=x,1\n"
        (packages / "tool-1.0.dist-info" / "RECORD").write_text(listed)
        remove_commands(packages)
        contents.append({str(at.relative_to(packages)): at.read_text() for at in packages.rglob("*") if at.is_file()})
    assert contents[0] == contents[1]
    assert contents[0] == {"tool-1.0.dist-info/RECORD": "tool.py,sha256=x,1\nbinary/tool.py,sha256=x,1\n"}
