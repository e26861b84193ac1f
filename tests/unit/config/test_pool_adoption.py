"""A links file gets a default pool: its text keeps comments and order, and means the same but for the pool."""

import json
from typing import Any

import pytest
import yaml

from strait.config.links import parse
from strait.config.pool_adoption import adopted
from strait.errors import ConfigError

FILE = """\
# Clusters of the shop.
clusters:
  a: {bootstrap.servers: "a:1"}   # Frankfurt
  b:
    bootstrap.servers: b:1
links:
  orders: {source: a, destination: b, topics: {include: [orders]}}
  # The large one.
  clicks:
    source: a
    destination: b
    groups: {default: {slots: 2, max_slots: 3}}
"""
SPARK = {"master": "spark://host:7077"}


def links(file: str, **changes: Any) -> str:
    """The file with other settings of its links."""
    raw = yaml.safe_load(file)
    for name, settings in changes.items():
        raw["links"][name] |= settings
    return yaml.safe_dump(raw)


def test_comments_and_order_stay_and_every_link_is_in_the_pool() -> None:
    found = adopted(FILE, "main", 8, "links file")
    assert found.text.startswith(FILE)
    assert yaml.safe_load(found.text[len(FILE) :]) == {"pools": {"main": {"default": True, "max_slots": 4}}}
    assert found.file == parse(yaml.safe_load(found.text), where="")
    assert found.file.members("main") == ("clicks", "orders")
    assert found.separate == {}


def test_the_pool_has_no_more_slots_than_this_machine_has_cores() -> None:
    assert adopted(FILE, "main", 2, "").file.pools["main"].most_slots == 2
    assert adopted(FILE, "main", 1, "").file.pools["main"].most_slots == 1


def test_links_that_a_pool_cannot_serve_stay_as_they_are() -> None:
    found = adopted(links(FILE, orders={"spark": SPARK}) + "", "main", 8, "")
    assert found.file.members("main") == ("clicks",)
    assert found.separate == {"orders": "it has another `spark` block"}
    assert found.file.links["orders"].spark.master == SPARK["master"]
    standby = links(FILE, orders={"groups": {"default": {"standby": True}}}, clicks={"pool": False})
    found = adopted(standby, "main", 8, "")
    assert found.separate == {"clicks": "it has a `pool` key", "orders": "a task group has a `standby`"}


def test_links_of_one_spark_cluster_stay_there_together() -> None:
    found = adopted(links(FILE, orders={"spark": SPARK}, clicks={"spark": SPARK}), "main", 2, "")
    assert found.file.members("main") == ("clicks", "orders")
    assert found.file.pools["main"].spark.master == SPARK["master"]
    assert found.file.pools["main"].max_slots == 4, "cores of this machine do not matter there"


def test_adopting_twice_changes_nothing() -> None:
    once = adopted(FILE, "main", 8, "").text
    assert adopted(once, "main", 8, "").text == once
    with pytest.raises(ConfigError, match="this pool is the default already"):
        adopted(once, "other", 8, "")


@pytest.mark.parametrize(
    "pools",
    [
        "pools:\n  main: {slots: 2}   # two\n",
        "pools:  # of Spark\n    main:\n        slots: 2\n        # end\n",
        "pools:\n  other: {slots: 2}\n  main: {slots: 2}\n",
    ],
)
def test_a_pool_that_is_there_becomes_the_default_and_keeps_its_settings(pools: str) -> None:
    found = adopted(pools + FILE, "main", 8, "")
    assert found.file.pools["main"].slots == 2
    assert found.file.pools["main"].default
    assert "# " in found.text and found.text.endswith(FILE)
    assert len(found.text.splitlines()) - len((pools + FILE).splitlines()) in (0, 1)


def test_another_pool_beside_those_that_are_there() -> None:
    found = adopted("pools:\n  other: {slots: 2}\n" + FILE, "main", 8, "")
    assert set(found.file.pools) == {"main", "other"}
    assert found.text.endswith("  other: {slots: 2}\n" + FILE)


def test_a_file_in_json_stays_json() -> None:
    found = adopted(json.dumps(yaml.safe_load(FILE)), "main", 8, "")
    assert found.file.members("main") == ("clicks", "orders")
    assert json.loads(found.text)["pools"] == {"main": {"default": True, "max_slots": 4}}


def test_a_file_whose_edit_would_mean_something_else_is_refused() -> None:
    flow = "pools: {other: {slots: 1}}\n" + FILE
    with pytest.raises(ConfigError, match="cannot be added without a change of the rest"):
        adopted(flow, "main", 8, "")
    with pytest.raises(ConfigError, match="cannot be added"):
        adopted(FILE + "...\n", "main", 8, "")
