"""The ways from Airflow to the page and back: addresses, links, and the widget on the home page."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from support.fixtures.page import AWAY, READ, Site
from support.fixtures.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.airflow, pytest.mark.core]

NAV = "/plugin/strait"
NO_LINK = {"links": [], "total": 0, "summary": {"links": 0, "looking": 0, "states": []}}


def inside(page: Page):
    """The page in Airflow's frame."""
    return page.frame_locator("iframe[title=Strait]")


def title(page: Page):
    return inside(page).get_by_role("heading", level=2)


def test_an_address_of_airflow_leads_to_a_link_and_follows_what_is_shown(site: Site, page: Page):
    page.goto(f"{site.airflow.url}{NAV}#/link/{quote(AWAY, safe='')}")
    expect(title(page)).to_have_text(AWAY)
    inside(page).get_by_role("link", name="All links").click()
    inside(page).get_by_role("link", name=READ, exact=True).click()
    expect(title(page)).to_have_text(READ)
    expect(page).to_have_url(re.compile(f"{NAV}.*#/link/{READ}$"))
    page.reload()
    expect(title(page)).to_have_text(READ)
    page.goto(page.url)  # as a bookmark
    expect(title(page)).to_have_text(READ)


def test_back_shows_the_view_before(site: Site, page: Page):
    page.goto(f"{site.airflow.url}{NAV}")
    inside(page).get_by_role("link", name=READ, exact=True).click()
    expect(title(page)).to_have_text(READ)
    page.go_back()
    expect(title(page)).to_have_text("Links")
    expect(page).not_to_have_url(re.compile("#/link/"))


def test_a_link_of_the_page_opens_its_dag_in_airflow_and_not_in_the_frame(site: Site, page: Page):
    page.goto(f"{site.airflow.url}{NAV}#/link/{READ}")
    inside(page).get_by_role("link", name=f"strait_{READ}", exact=True).click()
    expect(page).to_have_url(f"{site.airflow.url}/dags/strait_{READ}")
    page.go_back()
    inside(page).get_by_role("link", name="runs", exact=True).click()
    expect(page).to_have_url(re.compile(f"/dags/strait_{READ}/runs"))


def test_the_page_of_a_dag_leads_to_its_link(site: Site, page: Page):
    described = site.airflows("GET", f"dags/strait_{READ}/details", site.token()).json()["doc_md"]
    (address,) = re.findall(r"\]\((\S+)\)", described)
    page.goto(address)
    expect(title(page)).to_have_text(READ)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_has_the_colors_font_and_radii_of_the_airflow_around_it(site: Site, page: Page, theme: str):
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.goto(f"{site.airflow.url}{NAV}")
    expect(title(page)).to_have_text("Links")
    theirs = page.evaluate(
        """() => {
          const look = getComputedStyle(document.documentElement);
          return ["colors-bg", "colors-fg", "fonts-body", "radii-md"].map((one) => look.getPropertyValue(`--chakra-${one}`));
        }"""
    )
    assert all(theirs), "Airflow names them otherwise"
    ours = """() => {
      const look = getComputedStyle(document.documentElement);
      return ["--back", "--text", "--font", "--radius"].map((one) => look.getPropertyValue(one));
    }"""
    eventually(lambda: page.frames[-1].evaluate(ours) == [one.strip() for one in theirs], what="Airflow's look")
    page.emulate_media(color_scheme="light")


def test_airflows_home_page_tells_what_needs_a_person_and_leads_there(site: Site, page: Page):
    page.goto(site.airflow.url)
    widget = page.get_by_role("region", name="Strait links")
    expect(widget).to_contain_text(re.compile(r"\d+ links: .*1 unreadable"))
    expect(widget.get_by_role("listitem").first).to_contain_text(AWAY)
    assert widget.locator("b").count() == 0
    widget.get_by_role("link", name=AWAY).click()
    expect(title(page)).to_have_text(AWAY)


def test_the_widget_tells_when_it_learns_nothing(site: Site, page: Page):
    page.route("**/strait/api/v1/links?*", lambda route: route.fulfill(status=503))
    page.goto(site.airflow.url)
    expect(page.get_by_role("region", name="Strait links")).to_contain_text("503")
    page.unroute("**/strait/api/v1/links?*")


def test_a_user_who_may_see_no_link_is_shown_no_widget(site: Site, page: Page):
    page.route("**/strait/api/v1/links?*", lambda route: route.fulfill(json=NO_LINK))
    with page.expect_response("**/strait/api/v1/links?*"):
        page.goto(site.airflow.url)
    expect(page.get_by_role("region", name="Strait links")).to_have_count(0)
    page.unroute("**/strait/api/v1/links?*")
