"""Applications are started with the selection that is in force."""

from types import SimpleNamespace
from typing import Any

import pytest

from strait.config.links import Topics, parse
from strait.errors import ConfigError
from strait_airflow import applications, control, pools, settings


@pytest.mark.parametrize("is_valid", [True, False])
def test_that_of_the_variable_unless_it_is_invalid(monkeypatch: pytest.MonkeyPatch, is_valid: bool) -> None:
    topics, given = {"include": ["of-the-file"]}, []
    clusters = {name: {"bootstrap.servers": "127.0.0.1:1"} for name in "ab"}
    file = parse(
        {"clusters": clusters, "links": {"l": {"source": "a", "destination": "b", "topics": topics}}}, where=""
    )

    def of_the_variable(_: str) -> Topics:
        if not is_valid:
            raise ConfigError("Variable", ["is invalid"])
        return Topics(include=("of-the-variable",))

    def ensure_all(file: Any, link: str, *_: Any, **__: Any) -> list[str]:
        given.append(file.links[link].topics.include)
        return ["done"]

    monkeypatch.setattr(settings, "clusters_of", lambda _: file)
    monkeypatch.setattr(settings, "_live_topics", of_the_variable)
    monkeypatch.setattr(control, "_plans", lambda *_: ({"default": SimpleNamespace()}, {}, {}))
    monkeypatch.setattr(applications, "launcher", lambda _: None)
    monkeypatch.setattr(applications, "ensure_all", ensure_all)
    monkeypatch.setattr(applications, "end_orphans", lambda _: [])
    monkeypatch.setattr(pools, "tidy", lambda *_: [])
    assert control.applications("l") == "done"
    assert given == [("of-the-variable",) if is_valid else ("of-the-file",)]
