"""Every view of the page in each state of links, and what it says while answers are missing, in a browser over made-up links:
without Airflow and clusters."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from support.fixtures.page import WAIT_MS
from support.pictures.page import DRAWN, Made, served
from support.pictures.scenes import SCENES

pytestmark = pytest.mark.airflow

DESK, PHONE = 1280, 400
NOT_TEXT = re.compile(r"undefined|NaN|Infinity|\[object|null\b")
Site = tuple[Made, str]


@pytest.fixture(scope="module")
def made() -> Iterator[Site]:
    with served() as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": DESK, "height": 900})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.problems = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.problems.append(str(error)))  # type: ignore[attr-defined]
    yield page
    context.close()


def show(page: Page, made: Site, scene: str, view: str, width: int = DESK) -> None:
    site, url = made
    site.scene = scene
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("about:blank")
    page.goto(f"{url}#/{SCENES[scene].views[view]}")
    page.wait_for_function(DRAWN)


def stay(page: Page) -> None:
    """Let what is shown not be drawn anew."""
    page.route("**/api/v1/**", lambda _: None)


@pytest.mark.parametrize("scene", SCENES)
def test_every_view_fits_a_desk_and_a_phone_and_shows_only_what_is_known(page: Page, made: Site, scene: str) -> None:
    for view in SCENES[scene].views:
        for width in (DESK, PHONE):
            show(page, made, scene, view, width)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
            assert not NOT_TEXT.findall(page.locator("main").inner_text()), view
    assert page.problems == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene != "stores"])
def test_axe_finds_nothing_serious_in_any_state(page: Page, made: Site, scene: str, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    for view in SCENES[scene].views:
        show(page, made, scene, view)
        stay(page)
        found = Axe().run(page)
        page.unroute_all(behavior="ignoreErrors")
        serious = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
        assert not serious, (view, found.generate_report())


def test_in_an_outage_nothing_is_claimed_that_is_not_known(page: Page, made: Site) -> None:
    show(page, made, "outage", "links")
    rows = page.get_by_role("region", name="Links").locator("tbody tr")
    silent = rows.filter(has=page.get_by_role("link", name="shop", exact=True))
    lag, time, loss, rate = (silent.locator("td.number").nth(at) for at in range(4))
    assert [each.inner_text() for each in (lag, time, rate)] == ["–"] * 3
    expect(loss).to_have_text("1 h 30 min")
    expect(loss.locator(".bad")).to_have_count(1)
    expect(silent.locator(".badge")).to_have_class(re.compile("person"))
    old = rows.filter(has=page.get_by_role("link", name="broken", exact=True))
    expect(old).to_have_class(re.compile("stale"))
    expect(old).to_contain_text("all figures are 4 min old")
    never = rows.filter(has=page.get_by_role("link", name="away", exact=True))
    assert set(never.locator("td.number").all_inner_texts()) == {"–"}
    show(page, made, "outage", "broken-link")
    expect(page.locator("main")).to_have_class(re.compile("stale"))
    expect(page.locator("#as-of")).to_have_text(re.compile("As of 4 min"))
    show(page, made, "outage", "recovery")
    expect(page.locator("#as-of")).to_have_text(re.compile("As of 4 min"))  # a part of the view
    show(page, made, "outage", "broken-groups")
    expect(page.locator("main")).to_contain_text("how many of 9 are in sync is unknown")
    show(page, made, "outage", "away-topics")
    expect(page.get_by_role("region", name="Topics")).to_contain_text("Not known.")


def test_a_link_without_a_plan_says_so_and_what_publishes_one(page: Page, made: Site) -> None:
    show(page, made, "empty", "link")
    main = page.locator("main")
    expect(main).to_contain_text("No plan has been published, so nothing is copied.")
    expect(main).not_to_contain_text("Lag, records")
    expect(main.get_by_role("button", name="Restart…")).to_have_count(0)
    show(page, made, "empty", "links")
    row = page.get_by_role("region", name="Links").locator("tbody tr").filter(has_text="shop")
    assert row.locator("td.number").first.inner_text() == "–"


def test_before_the_first_answer_nothing_is_said_to_be_missing(page: Page, made: Site) -> None:
    for view in SCENES["reading"].views:
        show(page, made, "reading", view)
        said = page.locator("main").inner_text()
        assert not re.search(r"No such|None\.|None yet|never|no plan", said), view


def test_a_slow_answer_is_waited_for_visibly_without_what_was_shown_before(page: Page, made: Site) -> None:
    show(page, made, "busy", "links")
    held: list[Route] = []
    page.route("**/links/shop*", lambda route: held.append(route))
    page.get_by_role("link", name="shop", exact=True).click()
    main = page.locator("main")
    expect(main).to_contain_text("Loading …")
    expect(main.locator("table")).to_have_count(0)
    for route in held:
        route.continue_()
    page.unroute("**/links/shop*")
    expect(page.get_by_role("heading", name="shop", exact=True)).to_be_visible()


def test_a_link_that_is_removed_while_it_is_shown_is_not_shown_any_longer(page: Page, made: Site) -> None:
    show(page, made, "busy", "link")
    expect(page.get_by_role("button", name="Pause…")).to_be_visible()
    made[0].scene = "none"
    main = page.locator("main")
    expect(main.get_by_role("alert")).to_contain_text("link shop: there is none that you may see")
    expect(main.get_by_role("button")).to_have_count(0)
    expect(page.locator("#as-of")).to_have_text("")
    main.get_by_role("link", name="All links").click()
    expect(main).to_contain_text("No link that you may see.")


def test_links_are_shown_though_airflow_cannot_tell_of_itself(page: Page, made: Site) -> None:
    page.route("**/api/v1/airflow", lambda route: route.fulfill(status=500, body="{}", content_type="application/json"))
    show(page, made, "busy", "links")
    expect(page.locator("main").get_by_role("alert")).to_have_text(
        "Whether Airflow's components run is not known: Airflow answers 500."
    )
    expect(page.get_by_role("link", name="shop", exact=True)).to_be_visible()


def test_whose_session_has_ended_keeps_the_last_figures_gray_and_can_sign_in(page: Page, made: Site) -> None:
    show(page, made, "busy", "link")
    refused = json.dumps({"detail": "Not authenticated"})
    page.route("**/api/v1/**", lambda route: route.fulfill(status=401, body=refused, content_type="application/json"))
    expect(page.locator("#trouble")).to_have_text("You are not signed in to Airflow any more.")
    expect(page.get_by_role("link", name="Sign in to Airflow")).to_be_visible()
    expect(page.locator("main")).to_have_class(re.compile("stale"))
    expect(page.get_by_role("heading", name="shop", exact=True)).to_be_visible()
    page.unroute("**/api/v1/**")
    expect(page.locator("#trouble")).to_have_text("")
    expect(page.get_by_role("link", name="Sign in to Airflow")).to_be_hidden()


def test_a_run_is_followed_again_after_a_new_login_and_begun_once(page: Page, made: Site) -> None:
    begun: list[str] = []
    looks = iter([(200, "queued"), (401, ""), (200, "success")])

    def answer(route: Route) -> None:
        path = route.request.url.split("/api/v2/")[1]
        status = 200
        told: dict[str, Any] = {"is_paused": False, "task_instances": []}
        if route.request.method == "POST":
            begun.append(path)
        elif "/dagRuns/" in path and not path.endswith("taskInstances"):
            status, told["state"] = next(looks)
        route.fulfill(status=status, body=json.dumps(told), content_type="application/json")

    page.route("**/api/v2/**", answer)
    show(page, made, "busy", "link")
    page.get_by_role("button", name="Pause…").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    status = dialog.locator(".run [role=status]")
    expect(status).to_have_text("You are not signed in to Airflow any more. The run goes on.")
    expect(status).to_have_text("Done.")
    assert len(begun) == 1


def test_on_a_phone_a_map_of_three_columns_is_a_list_of_pairs_the_most_urgent_first(page: Page, made: Site) -> None:
    show(page, made, "chain", "links")
    drawn = page.get_by_role("region", name="Map of clusters and links")
    expect(drawn.locator("svg")).to_have_count(1)
    wanted = drawn.locator("a.edge").count()
    show(page, made, "chain", "links", PHONE)
    pairs = drawn.locator("li")
    expect(pairs).to_have_count(wanted)
    expect(pairs.first).to_contain_text("! region-us → hub region-us-to-hub: lost in")
    pairs.first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="region-us-to-hub", exact=True)).to_be_visible()
    show(page, made, "stores", "links", PHONE)
    expect(drawn.locator("svg")).to_have_count(1)
