"""A links file with many links: what is wrong with one of them, or with its cluster, is nobody else's trouble."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.config.links import load, load_link
from strait.config.outline import link_names, links_with_approval
from strait.errors import ConfigError
from strait_airflow import settings
from strait_airflow.outline import outline

CLUSTERS: dict[str, Any] = {name: {"bootstrap.servers": f"{name}:9092"} for name in ("eu", "us", "asia")}
GOOD = {"source": "eu", "destination": "us"}


def file_of(tmp_path: Path, links: dict[str, Any], **clusters: Any) -> Path:
    path = tmp_path / "links.yaml"
    path.write_text(yaml.safe_dump({"clusters": CLUSTERS | clusters, "links": links}))
    return path


@pytest.mark.parametrize(
    "bad",
    [
        {"source": "nowhere", "destination": "us"},
        {"source": ["eu"]},
        "words",
        None,
        [],
        {"topics": 5},
        {"approval": []},
    ],
)
def test_a_wrong_link_is_refused_alone(tmp_path: Path, bad: Any) -> None:
    path = file_of(tmp_path, {"good": GOOD, "bad": bad})
    assert link_names(path) == ("bad", "good")
    assert links_with_approval(path) == frozenset()
    assert load_link(path, "good").links["good"].destination == "us"
    with pytest.raises(ConfigError, match=r"links\.bad"):
        load_link(path, "bad")


def test_a_wrong_cluster_is_trouble_for_the_links_that_use_it(tmp_path: Path) -> None:
    path = file_of(tmp_path, {"good": GOOD, "bad": GOOD | {"source": "asia"}}, asia={"client.id": "no address"})
    assert set(load_link(path, "good").clusters) == {"eu", "us"}
    with pytest.raises(ConfigError, match=r"clusters\.asia: `bootstrap.servers` is required"):
        load_link(path, "bad")


def test_a_misspelt_cluster_is_told_with_the_nearest_of_all(tmp_path: Path) -> None:
    path = file_of(tmp_path, {"bad": GOOD | {"source": "asai"}})
    with pytest.raises(ConfigError, match=r"`clusters` has no cluster 'asai'; did you mean 'asia'\?"):
        load_link(path, "bad")


def test_who_wants_to_be_asked_is_known_whatever_else_is_wrong(tmp_path: Path) -> None:
    path = file_of(tmp_path, {"asked": {"approval": "required", "source": 5}, "not": GOOD})
    assert links_with_approval(path) == frozenset({"asked"})


def test_two_applications_of_one_name_are_refused(tmp_path: Path) -> None:
    """Each link would take the other's application for its own, with wrong settings, and replace it for ever."""
    grouped = {"groups": {"default": {}, "eu-x": {}}}
    path = file_of(
        tmp_path, {"orders": GOOD | grouped, "orders-eu": GOOD | {"groups": {"default": {}, "x": {}}}, "z": GOOD}
    )
    for link, other, group in (("orders", "orders-eu", "eu-x"), ("orders-eu", "orders", "x")):
        with pytest.raises(ConfigError, match=rf"links\.{link}\.groups\.{group}: link {other} has an application"):
            load_link(path, link)
    with pytest.raises(ConfigError, match="rename the group"):
        load(path)
    assert load_link(path, "z").links["z"].source == "eu"
    wrong = file_of(tmp_path, {"orders": GOOD, "orders-default": 5, "broken": GOOD | {"groups": 5}})
    assert load_link(wrong, "orders").links["orders"].source == "eu"


def test_a_template_that_is_not_filled_in_hides_no_dag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_of(tmp_path, {"good": GOOD})
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(path))
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    assert outline().links == ("good",)
    path.write_text("clusters: {eu: {bootstrap.servers: {{ .Values.eu }}}}\nlinks: {}\n")
    assert outline().links == ("good",)


def test_a_connections_login_takes_the_place_of_the_files_under_either_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path, {"good": GOOD}, eu=CLUSTERS["eu"] | {"sasl.mechanisms": "PLAIN"})
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(path))
    monkeypatch.setattr(settings, "_connection", lambda *_, **__: {"sasl.mechanism": "SCRAM-SHA-512"})
    assert settings.clusters_of("good").clusters["eu"] == CLUSTERS["eu"] | {"sasl.mechanism": "SCRAM-SHA-512"}
