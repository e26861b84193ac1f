"""The pools of a links file: which links may share an application."""

from typing import Any

import pytest

from strait.config.links import LinksFile, parse
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


def test_a_pool_has_no_standby() -> None:
    (found,) = problems({"one": {"pool": "main", "groups": {"default": {"standby": True}}}}, {"main": {}})
    assert found.startswith("links.one.groups.default.standby: ")


def test_an_application_has_one_name() -> None:
    (found,) = problems({"pool": {"groups": {"default": {}, "main": {}}}}, {"main": {}})
    assert found.startswith("pools.main: ")


@pytest.mark.parametrize("slots", [0, 1025, "many", 1.5])
def test_the_number_of_tasks_is_checked(slots: Any) -> None:
    assert problems({"one": {"pool": "main"}}, {"main": {"slots": slots}})
