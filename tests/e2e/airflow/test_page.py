"""The page in a real Airflow, in a real browser, over a link between two real clusters."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from strait.config.home import project_root
from support.fixtures.page import LONG, READ, TOKEN, VIEWER
from support.fixtures.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.airflow, pytest.mark.core]

MOST_BYTES = 250_000
LOOK_MS = 2_000
OF_LINK = (
    "",
    "/by_topic",
    "/partitions",
    "/partition?topic=orders&partition=0",
    "/groups",
    "/group?group=x",
    "/recovery",
    "/quarantine/0",
)
OF_LINK += ("/failover?id=x", "/history", "/runs?topic=orders&partition=0", "/applications", "/quarantine", "/topics")
FILES = ("", "page.js", "link.js", "home.js", "page.css")
ROUTES = (*FILES, "api/v1/links", "api/v1/map", "api/v1/history", *(f"api/v1/links/{READ}{path}" for path in OF_LINK))


@pytest.mark.parametrize("path", ROUTES)
def test_nothing_is_answered_to_who_is_not_logged_in(site, path):
    assert site.get(path).status_code == 401
    assert site.get(path, "not.a.token").status_code in (401, 403)


def test_metrics_are_for_who_has_their_token_and_for_no_user(site):
    assert site.get("metrics").status_code == 401
    assert site.get("metrics", site.token()).status_code == 401

    def up() -> bool:
        found = site.get("metrics", TOKEN)
        assert found.status_code == 200
        return f'strait_up{{link="{READ}"}} 1.0' in found.text

    eventually(up, what="metrics of a link")


def test_a_link_that_does_not_exist_is_one_line(site):
    reply = site.get("api/v1/links/none", site.token())
    assert reply.status_code == 404
    assert reply.json()["detail"].startswith("link none: ")


def test_no_secret_and_no_address_of_a_broker_is_answered(site):
    token = site.token()
    for path in ROUTES[len(FILES) :]:
        assert site.clusters.source.bootstrap not in site.get(path, token).text


def test_links_that_need_a_person_stand_first_and_their_names_are_text(site, page):
    page.goto(site.url)
    rows = page.get_by_role("table").locator("tbody tr")
    expect(rows.nth(0)).to_contain_text("<b>lost & found</b>")
    expect(rows.nth(0)).to_contain_text("unreadable")
    expect(rows.filter(has_text="shop")).to_contain_text("slot_silent")
    assert page.locator("main b").count() == 0


def test_partitions_are_searched_sorted_filtered_and_paged(site, page):
    page.goto(site.url)
    page.get_by_role("link", name="shop", exact=True).click()
    page.get_by_role("link", name="Partitions").click()
    rows = page.get_by_role("region", name="Partitions").locator("tbody tr")
    expect(page.locator("#range")).to_have_text("1–20 of 63")
    expect(rows).to_have_count(20)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#range")).to_have_text("21–40 of 63")
    page.get_by_label("Topic contains").fill("TTTT")
    expect(page.locator("#range")).to_have_text("1–3 of 3")
    page.get_by_role("button", name="Partition").click()
    expect(rows.nth(0)).to_contain_text(f"{LONG}-0")
    page.get_by_label("Reason").select_option("slot_silent")
    expect(page.locator("#range")).to_have_text("1–3 of 3")
    rows.nth(0).locator("summary").click()
    expect(rows.nth(0)).to_contain_text("has not reported")
    page.get_by_label("Reason").select_option(label="any")
    page.get_by_label("Topic contains").fill("")
    expect(page.locator("#range")).to_have_text("1–20 of 63")


def test_a_new_look_takes_away_neither_what_is_selected_nor_where_the_keyboard_is(site, page):
    page.goto("about:blank")
    page.goto(f"{site.url}#/link/{READ}/partitions")
    search = page.get_by_label("Topic contains")
    search.fill("orders")
    expect(page.locator("#range")).to_have_text("1–20 of 60")
    search.evaluate("field => field.setSelectionRange(1, 4)")
    page.wait_for_timeout(2 * LOOK_MS)
    assert page.evaluate("[document.activeElement.id, getSelection().toString()]") == ["search", "rde"]
    page.evaluate("getSelection().selectAllChildren(document.querySelector('[aria-label=Partitions] tbody td'))")
    page.wait_for_timeout(2 * LOOK_MS)
    assert page.evaluate("getSelection().toString()").startswith("orders-")
    page.get_by_label("Reason").focus()
    page.get_by_label("Reason").select_option("slot_silent")
    page.wait_for_timeout(2 * LOOK_MS)
    assert page.evaluate("document.activeElement.id") == "reason"
    search.fill("")


def test_the_page_is_in_airflows_navigation_and_signed_in_there(site, page):
    page.goto(f"{site.airflow.url}/plugin/strait")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("link", name="shop", exact=True)).to_be_visible()


def test_nothing_comes_from_elsewhere_and_the_page_is_small(site, page):
    asked, size, said = [], 0, []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.goto(site.url)
    expect(page.get_by_role("link", name="shop", exact=True)).to_be_visible()
    size = sum(path.stat().st_size for path in Path(project_root(), "plugins/strait_airflow/page/static").iterdir())
    assert size <= MOST_BYTES
    assert all(url.startswith(site.airflow.url) for url in asked), asked
    assert [one for one in said if "Content Security Policy" in one] == []
    assert "default-src 'self'" in site.get("", site.token()).headers["content-security-policy"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1300), ("dark", 1300), ("light", 380)])
def test_it_is_readable_light_dark_and_narrow(site, page, tmp_path, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{site.url}#/link/shop/partitions")
    expect(page.locator("#range")).to_contain_text("of 63")
    expect(page.locator("html")).to_have_class("dark" if scheme == "dark" else "")
    page.screenshot(path=tmp_path / f"page-{scheme}-{width}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_user_who_may_only_read_sees_the_links_and_may_not_trigger_what_changes_them(site):
    token = site.token(VIEWER)
    assert {row["link"] for row in site.get("api/v1/links", token).json()["links"]} >= {"shop", "edits", "asked"}
    body = {"logical_date": None, "conf": {"link": "edits", "action": "pause"}}
    assert site.airflows("POST", "dags/strait-pause/dagRuns", token, body).status_code == 403
