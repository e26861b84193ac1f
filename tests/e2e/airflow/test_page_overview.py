"""The overview of links, and what every view says of the age of its figures, in a real browser."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from support.fixtures.page import AWAY, READ, Site
from support.fixtures.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

PHONE = {"width": 400, "height": 900}
DESK = {"width": 1280, "height": 900}
TABS = ("topics", "partitions", "groups", "recovery", "applications", "plan")


@pytest.fixture
def overview(site: Site, page: Page) -> Page:
    page.set_viewport_size(DESK)  # type: ignore[arg-type]
    page.goto("about:blank")
    page.goto(site.url)
    expect(links(page).filter(has_text=READ)).to_contain_text("slot_silent")
    return page


def links(page: Page) -> Locator:
    return page.get_by_role("region", name="Links").locator("tbody tr")


def part(page: Page, text: str | re.Pattern[str]) -> Locator:
    return page.get_by_role("group", name="Summary").get_by_role("button", name=text)


@pytest.mark.core
def test_of_slots_that_do_not_report_nothing_is_known(overview):
    row = links(overview).filter(has=overview.get_by_role("link", name=READ, exact=True))
    expect(row).to_contain_text(re.compile("no report|starting"))
    assert row.locator("td.number").all_inner_texts() == ["–"] * 6
    overview.get_by_role("link", name=READ, exact=True).click()
    overview.get_by_role("link", name="Applications").click()
    slot = overview.get_by_role("region", name="Slots").locator("tbody tr").first
    expect(slot).to_contain_text("none")
    overview.get_by_role("link", name="Topics").click()
    topics = overview.get_by_role("region", name="Topics").locator("tbody tr")
    expect(topics.filter(has_text="orders")).to_contain_text("60")
    topics.get_by_role("link", name="orders", exact=True).click()
    expect(overview.locator("#range")).to_have_text("1–20 of 60")


@pytest.mark.core
def test_each_part_of_the_summary_filters_and_the_address_says_so(overview):
    all_of_them = links(overview).count()
    part(overview, re.compile("unreadable")).click()
    expect(links(overview)).to_have_count(1)
    expect(links(overview)).to_contain_text(AWAY)
    expect(overview).to_have_url(re.compile(r"#/\?state=unreadable$"))
    overview.reload()
    expect(links(overview)).to_have_count(1)
    expect(part(overview, re.compile("unreadable"))).to_have_attribute("aria-pressed", "true")
    part(overview, re.compile("unreadable")).click()
    expect(links(overview)).to_have_count(all_of_them)
    part(overview, re.compile("needs? an operator")).click()
    expect(links(overview).first).to_contain_text(AWAY)
    expect(overview).to_have_url(re.compile("state=person"))


def test_links_are_searched_and_sorted_and_an_address_shows_the_same(site, overview):
    overview.get_by_label("Link or cluster contains").fill("SHO")
    expect(links(overview)).to_have_count(1)
    expect(overview).to_have_url(re.compile(r"\?search=SHO$"))
    overview.get_by_label("Link or cluster contains").fill("there")  # a cluster
    overview.get_by_role("button", name="Link", exact=True).click()
    overview.get_by_role("button", name="Link ↑").click()
    expect(overview.get_by_role("button", name="Link ↓")).to_be_visible()
    names = links(overview).locator("td.title")
    shown = names.all_inner_texts()
    assert READ in shown
    assert shown == sorted(shown, reverse=True)
    address = overview.url
    overview.goto("about:blank")
    overview.goto(address)
    expect(names).to_have_text(shown)
    overview.get_by_label("Link or cluster contains").fill("nothing like this")
    expect(overview.locator("main")).to_contain_text("No link is like that.")


def test_while_nothing_is_answered_the_last_figures_stay_gray_with_their_age(overview):
    expect(overview.locator("#as-of")).to_have_text(re.compile(r"As of \d+ s ago"))
    rows = links(overview).count()
    overview.route("**/api/v1/**", lambda route: route.abort())
    expect(overview.locator("#trouble")).to_contain_text("Airflow does not answer")
    expect(overview.locator("main")).to_have_class(re.compile("stale"))
    expect(overview.locator("#as-of")).to_have_class(re.compile("bad"))
    assert links(overview).count() == rows
    overview.unroute("**/api/v1/**")
    expect(overview.locator("main")).not_to_have_class(re.compile("stale"))


def test_on_a_phone_each_link_is_a_card_with_its_name_state_and_reason(site, overview):
    overview.set_viewport_size(PHONE)
    row = links(overview).filter(has=overview.get_by_role("link", name=READ, exact=True))
    expect(row.locator("td.wide").first).to_be_hidden()
    assert overview.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for cell in ("td.title", "td.plain", "td.why"):
        # None if the row was drawn anew at this moment
        box = eventually(lambda cell=cell: row.locator(cell).bounding_box(), what=f"a place of {cell}")
        assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["width"]
    for view in ("", *(f"/{tab}" for tab in TABS), "/partition/orders/0"):
        overview.goto(f"{site.url}#/link/{READ}{view}")
        expect(overview.locator("#as-of")).to_contain_text("As of")
        assert overview.evaluate("document.documentElement.scrollWidth <= innerWidth"), view


def test_an_address_without_a_view_leads_back(site, overview):
    overview.goto(f"{site.url}#/nowhere")
    expect(overview.locator("main")).to_contain_text("The page has no such view.")
    overview.get_by_role("link", name="All links").click()
    expect(links(overview).first).to_be_visible()


@pytest.mark.core
def test_the_map_shows_who_feeds_whom_and_each_line_leads_to_its_links(overview):
    drawn = overview.get_by_role("region", name="Map of clusters and links")
    expect(drawn.get_by_role("link", name="cluster here: its links")).to_be_visible()
    expect(overview.locator("main")).to_contain_text("1 link is not on the map")  # its settings are refused
    several = drawn.get_by_role("link", name=re.compile("^here to there: [0-9]+ links, no report, rate unknown$"))
    expect(several).to_have_class(re.compile("passing"))
    told = several.get_attribute("aria-label")
    assert told is not None
    several.click()
    expect(links(overview)).to_have_count(int(told.split(": ")[1].split()[0]))
    expect(overview).to_have_url(re.compile("source=here&destination=there"))
    overview.get_by_role("button", name="here → there ×").click()
    expect(links(overview).filter(has_text=AWAY)).to_have_count(1)
    drawn.get_by_role("link", name="cluster here: its links").click()
    expect(overview.get_by_label("Link or cluster contains")).to_have_value("here")


def test_each_tab_of_a_link_is_an_address_and_names_its_command(site, overview):
    for tab, command in {
        "": "status shop",
        "topics": "status shop",
        "partitions": "status shop -o wide",
        "applications": "applications shop",
        "plan": "plan shop",
    }.items():
        overview.goto("about:blank")
        overview.goto(f"{site.url}#/link/{READ}{tab and '/'}{tab}")
        now = overview.get_by_role("navigation", name="Views of the link").locator("[aria-current=page]")
        expect(now).to_have_text(tab.capitalize() or "Overview")
        expect(overview.locator(".command code")).to_have_text(f"strait {command}")


def test_a_topic_an_offset_and_a_command_are_copied_as_tools_take_them(site, overview):
    overview.context.grant_permissions(["clipboard-read", "clipboard-write"])
    overview.goto(f"{site.url}#/link/{READ}/partition/orders/0")
    for what, copied in {"the topic's name": "orders", "the command": "strait status shop orders"}.items():
        button = overview.get_by_role("button", name=f"Copy {what}")
        button.click()
        expect(button).to_have_text("Copied")
        assert overview.evaluate("navigator.clipboard.readText()") == copied
