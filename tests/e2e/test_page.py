"""The page in a real Airflow, in a real browser, over a link between two real clusters."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml
from playwright.sync_api import Page, expect, sync_playwright

from strait.control.outcome import Outcome
from strait.control.plane import Control
from strait.embedded.airflow import LocalAirflow
from strait.embedded.paths import project_root
from strait.embedded.ports import free_ports
from support.fixtures.waiting import eventually
from support.kafka.topics import create

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

LONG = "t" * 249  # as long as Kafka allows
WAIT_MS = 60_000
MOST_BYTES = 300_000
ROUTES = ("", "page.js", "link.js", "page.css", "api/v1/links", "api/v1/links/shop", "api/v1/links/shop/partitions")


@dataclass(frozen=True, slots=True)
class Site:
    airflow: LocalAirflow

    @property
    def url(self) -> str:
        return f"{self.airflow.url}/strait/"

    def token(self, password: str | None = None) -> str:
        sent = {"username": "admin", "password": password or self.airflow.password}
        reply = httpx.post(f"{self.airflow.url}/auth/token", json=sent, trust_env=False, timeout=30)
        assert reply.status_code == 201, reply.text
        return str(reply.json()["access_token"])

    def get(self, path: str, token: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.get(self.url + path, headers=headers, trust_env=False, timeout=60)


def planned(outcome: Outcome) -> int:
    return sum(len(topic.slots) for plan in outcome.plans.values() for topic in plan.topics)


@pytest.fixture(scope="module")
def site(own_clusters, tmp_path_factory) -> Iterator[Site]:
    """One link that has a plan and no application, with 63 partitions; one whose cluster is not there."""
    folder = tmp_path_factory.mktemp("page")
    create(own_clusters.source, "orders", 60)
    create(own_clusters.source, LONG, 3)
    clusters = {
        "here": own_clusters.source.client_properties,
        "there": own_clusters.destination.client_properties,
        "nowhere": {"bootstrap.servers": "127.0.0.1:1"},
    }
    topics = {"include": ["orders", LONG]}
    links = {
        "shop": {"source": "here", "destination": "there", "topics": topics},
        "<b>lost & found</b>": {"source": "here", "destination": "nowhere", "topics": topics},
    }
    links_file = folder / "links.yaml"
    links_file.write_text(yaml.safe_dump({"clusters": clusters, "links": links}))
    with Control.of(links_file, "shop") as control:
        # A topic that was made a moment ago may be unknown to the broker that is asked; the next plan has it.
        eventually(lambda: planned(control.apply()) == 63, what="a plan of all partitions")
    airflow = LocalAirflow(
        folder / "airflow",
        project=project_root(),
        environment={"STRAIT_LINKS_FILE": str(links_file), "STRAIT_HOME": str(folder / "strait")},
    )
    port, *logs = free_ports(3)
    airflow.launch(port=port, log_ports=(logs[0], logs[1]))
    try:
        airflow.wait_until_healthy(300)
        yield Site(airflow)
    finally:
        airflow.stop()


@pytest.fixture(scope="module")
def page(site) -> Iterator[Page]:
    chromium = shutil.which("chromium")
    assert chromium, (
        "tests/e2e/test_page.py: starting a browser: there is no chromium (Debian: apt-get install chromium)"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context()
        context.set_default_timeout(WAIT_MS)
        context.add_cookies([{"name": "_token", "value": site.token(), "url": site.airflow.url, "httpOnly": True}])
        yield context.new_page()
        browser.close()


@pytest.mark.parametrize("path", ROUTES)
def test_nothing_is_answered_to_who_is_not_logged_in(site, path):
    assert site.get(path).status_code == 401
    assert site.get(path, "not.a.token").status_code in (401, 403)


def test_a_link_that_does_not_exist_is_one_line(site):
    reply = site.get("api/v1/links/none", site.token())
    assert reply.status_code == 404
    assert reply.json()["detail"].startswith("link none: ")


def test_no_secret_and_no_address_of_a_broker_is_answered(site, own_clusters):
    token = site.token()
    for path in ROUTES[3:]:
        assert own_clusters.source.bootstrap not in site.get(path, token).text


def test_links_that_need_a_person_stand_first_and_their_names_are_text(site, page):
    page.goto(site.url)
    rows = page.get_by_role("table").locator("tbody tr")
    expect(rows.nth(0)).to_contain_text("<b>lost & found</b>", timeout=WAIT_MS)
    expect(rows.nth(0)).to_contain_text("error", timeout=WAIT_MS)
    expect(rows.nth(1)).to_contain_text("slot_silent", timeout=WAIT_MS)
    assert page.locator("main b").count() == 0


def test_partitions_are_searched_sorted_filtered_and_paged(site, page):
    page.goto(site.url)
    page.get_by_role("link", name="shop", exact=True).click()
    rows = page.get_by_role("region", name="Partitions").locator("tbody tr")
    expect(page.locator("#range")).to_have_text("1–20 of 63", timeout=WAIT_MS)
    expect(rows).to_have_count(20)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#range")).to_have_text("21–40 of 63")
    page.get_by_label("Topic contains").fill("TTTT")
    expect(page.locator("#range")).to_have_text("1–3 of 3")
    page.get_by_role("button", name="Partition").click()
    expect(rows.nth(0)).to_contain_text(f"{LONG}-0")
    page.get_by_label("Reason").select_option("slot_silent")
    page.get_by_label("Topic contains").focus()
    expect(page.locator("#range")).to_have_text("1–3 of 3")
    rows.nth(0).locator("summary").click()
    expect(rows.nth(0)).to_contain_text("has not reported for")


def test_the_page_is_in_airflows_navigation_and_signed_in_there(site, page):
    page.goto(f"{site.airflow.url}/plugin/strait")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("link", name="shop", exact=True)).to_be_visible(timeout=WAIT_MS)


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
    page.goto(f"{site.url}#/link/shop")
    expect(page.locator("#range")).to_contain_text("of 63")
    expect(page.locator("html")).to_have_class("dark" if scheme == "dark" else "")
    page.screenshot(path=tmp_path / f"page-{scheme}-{width}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
