"""Applications are started with the selection that is in force."""

from types import SimpleNamespace
from typing import Any

import pytest

from strait.config.links import Topics, parse
from strait.errors import ConfigError
from strait_airflow import applications, settings, submitting


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

    def supervisor(file: Any, link: str, _: Any) -> Any:
        given.append(file.links[link].topics.include)
        launcher = SimpleNamespace(state=lambda _: None)
        return SimpleNamespace(ensure=lambda *_, **__: ["done"], launcher=launcher)

    monkeypatch.setattr(settings, "clusters_of", lambda _: file)
    monkeypatch.setattr(settings, "_live_topics", of_the_variable)
    monkeypatch.setattr(submitting, "_plans", lambda *_: ({"default": SimpleNamespace()}, {}, {}))
    monkeypatch.setattr(applications, "supervisor", supervisor)
    asked = {"group": "default", "standby": False, "name": "strait-l-default"}
    assert submitting.submit("l", asked)["line"] == "done"
    assert given == [("of-the-variable",) if is_valid else ("of-the-file",)]
