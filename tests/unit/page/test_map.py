"""Which clusters the page shows as connected, and how."""

from dataclasses import replace

from strait.exporter.observation import Observation
from strait_airflow.page.views.links import LinksQuestion, link_row, links_page
from strait_airflow.page.views.map import map_of
from unit.page.test_views import LOST, NOW, row, seen

GOOD, LOSING = seen(row("x", 0, 0, "caught_up"), link="good"), seen(row("x", 0, 30, "waiting", LOST), link="losing")


def rows(**found: Observation | None):
    return [link_row(name, one, NOW) for name, one in found.items()]


def test_links_between_the_same_clusters_are_one_edge_as_urgent_as_the_most_urgent_of_them():
    (found,) = map_of(rows(good=replace(GOOD, pool="main"), losing=LOSING))["edges"]
    assert (found["source"], found["destination"], found["links"], found["names"]) == ("a", "b", 2, ["good", "losing"])
    assert found["badge"]["level"] == "person"
    assert (found["lag_seconds"], found["pools"], found["pooled"]) == (3.0, ["main"], 1)


def test_a_rate_after_an_error_and_of_silent_slots_is_unknown_and_so_is_where_a_new_link_leads():
    broken = replace(GOOD, error="cluster b: away")
    found = map_of(rows(broken=broken, new=None))
    (edge,) = found["edges"]
    assert (edge["records_per_second"], edge["rate_unknown"], found["unknown"]) == (None, 1, 1)
    (edge,) = map_of(rows(good=GOOD, broken=broken))["edges"]
    assert (edge["records_per_second"], edge["rate_unknown"]) == (0.0, 1)


def test_each_direction_and_each_pool_is_there():
    back = replace(GOOD, source="b", destination="a", pool="main")
    found = map_of(rows(good=GOOD, back=back, other=replace(LOSING, pool="main")))
    assert [(one["source"], one["destination"]) for one in found["edges"]] == [("a", "b"), ("b", "a")]
    assert [(one["name"], one["links"], one["badge"]["level"]) for one in found["pools"]] == [("main", 2, "person")]


def test_an_edge_and_a_pool_filter_the_links():
    given = rows(good=GOOD, back=replace(GOOD, source="b", destination="a", pool="main"), new=None)

    def names(**asked: str) -> list[str]:
        return [one["link"] for one in links_page(given, LinksQuestion(**asked))["links"]]

    assert names(source="a", destination="b") == ["good"]
    assert names(pool="main") == ["back"]
    assert names(source="b", destination="b") == []
    assert names() == ["new", "back", "good"]
