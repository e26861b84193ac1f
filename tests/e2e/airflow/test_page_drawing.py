"""The page's charts and its map of clusters, in a browser without an Airflow."""

import math
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page

pytestmark = pytest.mark.airflow

HOUR_MS = 3_600_000
DRAWN = """async ([points, events]) => {
  const { charts } = await import("./chart.js");
  const one = (id) => ({ id, title: id, series: [{ name: "", points }], read: String, tick: String });
  document.getElementById("main").append(charts([one("Rate"), one("Lag")], 1000, { now: points.at(-1)[0], events }));
}"""
LAID_OUT = """async ([edges, room]) => {
  const { isDense, layout } = await import("./map_layout.js");
  return { dense: isDense(edges), ...layout(edges, room) };
}"""
ROOM = {"box": 100, "gap": 120, "width": 900}
POINTS = [[0, None], [1, 40], [2, None], [3, None], [4, 20], [5, 30]]


def drawn(page: Page, points: list[Any], *events: dict[str, Any]) -> None:
    page.evaluate(DRAWN, [[[hour * HOUR_MS, value] for hour, value in points], events])


def test_charts_have_axes_in_round_numbers_and_hatch_what_is_not_known(scripts: Page) -> None:
    drawn(scripts, POINTS)
    left, time = scripts.locator("svg").first, "text.axis:not(.left)"
    assert left.locator("text.axis.left").all_text_contents() == ["0", "10", "20", "30", "40"]
    assert left.locator(time).all_text_contents() == ["01:00", "02:00", "03:00", "04:00", "05:00"]
    gaps = scripts.locator("rect.gap")
    assert gaps.count() == 2, "one in each chart"
    begins, ends = (left.locator(time).nth(at).get_attribute("x") for at in (0, 3))
    first = gaps.first
    assert (begins, first.get_attribute("x")) == ("56", "56"), "from the last figure before it"
    assert float(first.get_attribute("width") or 0) == pytest.approx(float(ends or 0) - 56)
    assert (first.get_attribute("fill") or "").startswith("url(#hatch-")


def test_the_same_moment_is_marked_in_all_charts_with_its_figure_and_event(scripts: Page) -> None:
    drawn(scripts, POINTS, {"at_ms": 4 * HOUR_MS, "kind": "loss", "text": "orders-1: lost"})
    captions, pointers = scripts.locator("figcaption"), scripts.locator("line.pointed")
    assert captions.all_inner_texts() == ["Rate: 30 now, 20 to 40", "Lag: 30 now, 20 to 40"]
    chart = scripts.locator("svg").first
    event = chart.locator("line.event.loss")
    chart.hover(position={"x": float(event.get_attribute("x1") or 0), "y": 60})
    said = "20 at 01-01 04:00 UTC; orders-1: lost"
    assert captions.all_inner_texts() == [f"Rate: {said}", f"Lag: {said}"]
    assert [pointers.nth(at).get_attribute("visibility") for at in (0, 1)] == ["visible"] * 2
    chart.hover(position={"x": 57, "y": 60})
    assert captions.first.inner_text() == "Rate: 40 at 01-01 01:00 UTC"


def test_of_a_time_without_any_figure_nothing_is_drawn_and_a_single_one_is_visible(scripts: Page) -> None:
    drawn(scripts, [[0, None], [1, None]])
    assert scripts.locator("svg").count() == 0
    assert scripts.locator("figcaption").first.inner_text() == "Rate: nothing is known yet"
    drawn(scripts, [[1, 7]])
    assert scripts.locator("svg circle").first.get_attribute("cx") == "268", "in the middle of its chart"


@pytest.mark.parametrize(
    ("most", "is_time", "ticks"),
    [
        (0, False, [0, 1]),
        (9, False, [0, 5, 10]),
        (20_449, False, [0, 10_000, 20_000, 30_000]),
        (0.3, False, [0, 0.1, 0.2, 0.3]),
        (150, True, [0, 60, 120, 180]),
        (7_000, True, [0, 1_800, 3_600, 5_400, 7_200]),
        (263_000, True, [0, 86_400, 172_800, 259_200, 345_600]),
    ],
)
def test_axes_count_in_round_numbers(scripts: Page, most: float, is_time: bool, ticks: list[float]) -> None:
    asked = "async ([most, isTime]) => (await import('./scale.js')).ticks(most, isTime)"
    assert scripts.evaluate(asked, [most, is_time]) == ticks


def edge(source: str, destination: str, level: str = "good", **figures: Any) -> dict[str, Any]:
    badge = {"word": level, "level": level, "sign": "?"}
    figures = {"records_per_second": 10, "rate_unknown": 0, "lag_seconds": None, "seconds_to_loss": None} | figures
    named = {"links": 1, "names": [f"{source}-{destination}"], "pools": [], "pooled": 0}
    return {"source": source, "destination": destination, "badge": badge} | named | figures


def laid_out(page: Page, *edges: dict[str, Any], width: int = 900) -> tuple[dict[str, Any], dict[str, Any]]:
    """Name of its first cluster -> box; and all that was found."""
    found = page.evaluate(LAID_OUT, [list(edges), ROOM | {"width": width}])
    return {one["names"][0]: one for one in found["boxes"]}, found


def test_what_feeds_stands_left_of_what_it_feeds_and_lines_begin_and_end_at_their_boxes(scripts: Page) -> None:
    boxes, found = laid_out(scripts, edge("a", "b"), edge("b", "c"), edge("a", "c"), edge("c", "b"))
    assert boxes["a"]["x"] < boxes["b"]["x"] < boxes["c"]["x"]
    assert [one["back"] for one in found["edges"]] == [False, False, False, True]
    for one in found["edges"]:
        left, right = (one["destination"], one["source"]) if one["back"] else (one["source"], one["destination"])
        (start, _), (_, end) = one["points"][0], one["points"][-1]
        assert start["x"] == boxes[left]["x"] + 100 and end["x"] == boxes[right]["x"]
        for place, name in ((start, left), (end, right)):
            assert 0 <= place["y"] - boxes[name]["y"] <= boxes[name]["height"]
    over = next(one for one in found["edges"] if (one["source"], one["destination"]) == ("a", "c"))
    y = over["points"][0][1]["y"]
    assert not boxes["b"]["y"] < y < boxes["b"]["y"] + boxes["b"]["height"], "it passes b, and does not cross it"


def test_no_two_boxes_and_no_two_lines_between_two_columns_lie_on_each_other(scripts: Page) -> None:
    edges = [edge(f"s{number}", "hub") for number in range(5)] + [edge("hub", "lake"), edge("lake", "hub")]
    boxes, found = laid_out(scripts, *edges)
    column = sorted((one["y"], one["height"]) for one in boxes.values() if one["x"] == 0)
    assert len(column) == 5
    assert all(y + height < below for (y, height), (below, _) in pairwise(column))
    ends = sorted(
        one["points"][-1][1]["y"] for one in found["edges"] if one["destination"] == "hub" and not one["back"]
    )
    assert all(below - above >= 20 for above, below in pairwise(ends))
    assert found["height"] >= max(one["y"] + one["height"] for one in boxes.values())


def test_of_sixty_clusters_those_that_are_alike_are_one_box_and_urgent_ones_stand_alone(scripts: Page) -> None:
    edges = [edge(f"store-{number:02}", "hub", "person" if number == 7 else "good") for number in range(60)]
    edges[3] = edge("store-03", "hub", records_per_second=None, rate_unknown=1)
    boxes, found = laid_out(scripts, *edges)
    assert sorted(len(one["names"]) for one in boxes.values()) == [1, 1, 59]
    assert "store-07" in boxes
    many = next(one for one in found["edges"] if one["of"] == 59)
    assert (many["links"], many["records_per_second"], many["rate_unknown"]) == (59, 580, 1)
    assert found["height"] < 200


def test_a_mesh_is_dense_and_a_star_is_not(scripts: Page) -> None:
    names = [f"dc{number}" for number in range(5)]
    mesh = [edge(one, other) for one in names for other in names if one != other]
    assert laid_out(scripts, *mesh)[1]["dense"]
    assert not laid_out(scripts, *(edge(f"s{number}", "hub") for number in range(60)))[1]["dense"]


@pytest.mark.parametrize("seed", range(20))
def test_any_clusters_are_laid_out_within_the_drawing(scripts: Page, seed: int) -> None:
    places = [(seed * 7 + number * (seed + 3)) % 11 for number in range(12)]
    pairs = sorted({(one, other) for one, other in zip(places, places[3:], strict=False) if one != other})
    boxes, found = laid_out(scripts, *(edge(f"c{one}", f"c{other}") for one, other in pairs))
    assert len(found["edges"]) == len(pairs)
    for box in boxes.values():
        assert 0 <= box["x"] <= found["width"] - box["width"] and 0 <= box["y"] <= found["height"] - box["height"]
    assert all(
        math.isfinite(place[axis])
        for one in found["edges"]
        for pair in one["points"]
        for place in pair
        for axis in "xy"
    )


def test_figures_are_made_when_somebody_reads_them_and_stay_when_all_is_drawn_anew(scripts: Page) -> None:
    drawn(scripts, POINTS)
    figures = scripts.locator("#figures-Rate")
    assert figures.locator("tr").count() == 0
    figures.locator("summary").click()
    figures.locator("tbody tr").first.wait_for()
    assert figures.locator("tbody tr").all_inner_texts() == [
        "1970-01-01 05:00:00 UTC\t30",
        "1970-01-01 04:00:00 UTC\t20",
        "1970-01-01 01:00:00 UTC\t40",
    ]
    scripts.evaluate("document.getElementById('main').replaceChildren()")
    drawn(scripts, POINTS)
    assert figures.locator("tbody tr").count() == 3, "at once, or the page would jump"
    assert scripts.locator("#figures-Lag tbody tr").count() == 0


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ('{"detail": "Forbidden"}', "Airflow does not allow you to do this; ask its administrator."),
        ("<html>", "Airflow does not allow you to do this; ask its administrator."),
        (
            '{"detail": "link l: you may not change Variable strait_topics_l"}',
            "Airflow does not allow you to do this: link l: you may not change Variable strait_topics_l; ask its "
            "administrator.",
        ),
    ],
)
def test_what_is_not_allowed_is_named_if_the_answer_names_it(scripts: Page, detail: str, said: str) -> None:
    scripts.route("**/api/v1/links", lambda route: route.fulfill(status=403, body=detail))
    asked = "async () => (await import('./dom.js')).ask('links').catch((error) => error.message)"
    assert scripts.evaluate(asked) == said


def test_an_empty_list_has_no_pages(scripts: Page) -> None:
    paged = """async (total) => {
      const { listing, pager } = await import("./paging.js");
      const made = pager(listing("rows-", {}), total, () => {});
      document.getElementById("main").replaceChildren(made);
      return [made.checkVisibility(), made.textContent];
    }"""
    assert scripts.evaluate(paged, 0)[0] is False
    assert scripts.evaluate(paged, 3) == [True, "Previous 1–3 of 3 Next"]
