"""docker-compose.yaml and what belongs to it, read for tests."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
FILE = PROJECT / "docker-compose.yaml"

_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::?[-?][^}]*)?\}")


@cache
def compose() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def services() -> dict[str, dict[str, Any]]:
    return compose()["services"]


def variables_used() -> set[str]:
    return set(_VARIABLE.findall(FILE.read_text(encoding="utf-8")))


def example_variables() -> dict[str, str]:
    lines = (PROJECT / ".env.example").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def substituted(text: str) -> str:
    """With every variable as in .env.example."""
    return _VARIABLE.sub(lambda match: example_variables()[match.group(1)], text)


def mounts(service: str) -> list[tuple[str, str]]:
    """(from, to) of each volume."""
    return [
        (source, target) for source, target, *_ in (one.split(":") for one in services()[service].get("volumes", []))
    ]


def in_repository(service: str, path: str) -> Path | None:
    """The file of this repository that the service sees at ``path``, if it does."""
    for source, target in mounts(service):
        if source.startswith("./") and Path(path).is_relative_to(target):
            return PROJECT / source / Path(path).relative_to(target)
    return None
