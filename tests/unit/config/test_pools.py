"""The pools of a links file: which links may share an application."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.config.links import LinksFile, parse
from strait.config.outline import pools_of
from strait.config.spark import Spark
from strait.errors import ConfigError

CLUSTERS = {"a": {"bootstrap.servers": "a:1"}, "b": {"bootstrap.servers": "b:1"}}
STANDALONE = {"master": "spark://host:7077"}


def parsed(links: dict[str, Any], pools: dict[str, Any]) -> LinksFile:
    given = {name: {"source": "a", "destination": "b"} | link for name, link in links.items()}
    return parse({"clusters": CLUSTERS, "links": given, "pools": pools}, where="test")


def problems(links: dict[str, Any], pools: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as error:
        parsed(links, pools)
    return list(error.value.problems)


def test_links_without_a_pool_are_as_before() -> None:
    file = parsed({"one": {}}, {})
    assert file.links["one"].pool is None
    assert file.pools == {}


def test_links_of_a_pool_run_where_it_runs() -> None:
    file = parsed({"one": {"pool": "main"}, "two": {"pool": "main"}, "three": {}}, {"main": {"spark": STANDALONE}})
    assert file.members("main") == ("one", "two")
    assert file.links["one"].spark == file.pools["main"].spark == Spark(master="spark://host:7077")
    assert file.links["three"].spark == Spark()


def test_a_link_names_a_pool_that_is_there_and_has_no_spark_of_its_own() -> None:
    assert problems({"one": {"pool": "mian"}}, {"main": {}}) == [
        "links.one.pool: `pools` has no pool 'mian'; did you mean 'main'?"
    ]
    (found,) = problems({"one": {"pool": "main", "spark": STANDALONE}}, {"main": {}})
    assert found.startswith("links.one.spark: ")


def test_a_pools_standby_is_that_of_all_its_links() -> None:
    (found,) = problems({"one": {"pool": "main", "groups": {"default": {"standby": True}}}}, {"main": {}})
    assert found.startswith("links.one.groups.default.standby: ")
    assert parsed({"one": {"pool": "main"}}, {"main": {"standby": True}}).pools["main"].standby


def test_an_application_has_one_name() -> None:
    (found,) = problems({"pool": {"groups": {"default": {}, "main": {}}}}, {"main": {}})
    assert found.startswith("pools.main: ")


@pytest.mark.parametrize("slots", [0, 1025, "many", 1.5])
def test_the_number_of_tasks_is_checked(slots: Any) -> None:
    assert problems({"one": {"pool": "main"}}, {"main": {"slots": slots}})


def test_the_default_pool_runs_links_that_name_none() -> None:
    links = {
        "one": {},
        "two": {"pool": False},
        "three": {"spark": STANDALONE},
        "four": {"groups": {"default": {"standby": True}}},
        "five": {"pool": "other"},
    }
    file = parsed(links, {"main": {"default": True, "standby": True}, "other": {}})
    assert (file.members("main"), file.members("other")) == (("one",), ("five",))
    assert {name for name, link in file.links.items() if link.pool is None} == {"two", "three", "four"}
    same = parsed({"one": {"spark": STANDALONE}, "two": {}}, {"main": {"default": True, "spark": STANDALONE}})
    assert same.members("main") == ("one", "two")
    assert problems({"one": {}}, {"main": {"default": True}, "other": {"default": True}}) == [
        "pools.other.default: pool main is the default already"
    ]


def test_the_pool_of_a_link_is_known_though_another_link_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "links.yaml"
    raw = {
        "clusters": CLUSTERS,
        "pools": {"main": {"default": True}},
        "links": {"one": {}, "two": {"pool": False, "x": 1}},
    }
    path.write_text(yaml.safe_dump(raw))
    assert pools_of(path) == {"one": "main"}
