"""axe-core over every view of the page, light and dark."""

from collections.abc import Callable
from urllib.parse import quote

import pytest
from axe_playwright_python.base import AxeResults
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from support.fixtures.page import ASKED, AWAY, CHANGED, READ, Site

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

SETTLED_MS = 300
"""After this, what was asked for has been drawn."""

View = tuple[str, Callable[[Page], object]]


def shows(text: str) -> Callable[[Page], object]:
    return lambda page: expect(page.locator("main")).to_contain_text(text)


def opened(page: Page) -> None:
    """With an explanation that was opened."""
    shows("of 63")(page)
    page.get_by_role("region", name="Partitions").locator("summary").first.click()


VIEWS: dict[str, View] = {
    "links": ("", shows(AWAY)),
    "link": (f"link/{READ}", shows("History")),
    "topics": (f"link/{READ}/topics", shows("orders")),
    "partitions": (f"link/{READ}/partitions", opened),
    "applications": (f"link/{READ}/applications", shows("Slots")),
    "plan": (f"link/{READ}/plan", shows("Published")),
    "link with an error": (f"link/{quote(AWAY, safe='')}", shows(AWAY)),
    "link to change": (f"link/{CHANGED}/partitions", shows("edit.a")),
    "link without a plan": (f"link/{ASKED}", shows(ASKED)),
    "groups": (f"link/{READ}/groups", shows("As of")),
    "recovery": (f"link/{READ}/recovery", shows("Readiness")),
    "partition": (f"link/{READ}/partition/orders/0", shows("How it is copied")),
}
"""Address -> what is waited for."""


def violations(page: Page, context: str | None = None) -> AxeResults:
    """Of what the page shows now: it would draw itself anew every two seconds, under the eyes of axe."""
    page.route("**/api/v1/**", lambda _: None)
    page.wait_for_timeout(SETTLED_MS)
    found = Axe().run(page, context=context)
    page.unroute_all(behavior="ignoreErrors")
    return found


def serious(found: AxeResults) -> list[str]:
    return [one["id"] for one in found.response["violations"] if one["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(site: Site, page: Page, view: str, scheme: str):
    address, wait = VIEWS[view]
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(f"{site.url}#/{address}")
    page.reload()  # the address differs from the one before in its hash alone
    wait(page)
    found = violations(page)
    assert not serious(found), found.generate_report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("view", "button"),
    [("recovery", "Fail over…"), ("recovery", "Rehearse…"), ("link", "Pause…"), ("link", "Edit topics…")],
)
def test_axe_finds_nothing_serious_in_a_dialog(site: Site, page: Page, view: str, button: str, scheme: str):
    address, wait = VIEWS[view]
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(f"{site.url}#/{address}")
    page.reload()
    wait(page)
    page.get_by_role("button", name=button, exact=True).first.click()
    expect(page.get_by_role("dialog").get_by_role("heading")).to_be_visible()
    found = violations(page, context="dialog")
    assert not serious(found), found.generate_report()


def test_axe_finds_what_is_wrong(site: Site, page: Page):
    page.goto(site.url)
    shows(AWAY)(page)
    page.route("**/api/v1/**", lambda _: None)
    page.wait_for_timeout(SETTLED_MS)
    page.evaluate(
        """() => {
          const main = document.querySelector("main");
          main.replaceChildren(document.createElement("input"), "hard to read");
          Object.assign(main.style, { color: "#888", background: "#999" });
        }"""
    )
    assert {"label", "color-contrast"} <= set(serious(violations(page)))


def test_airflows_home_page_with_the_widget(site: Site, page: Page):
    page.goto(site.airflow.url)
    widget = page.get_by_role("region", name="Strait links")
    expect(widget).to_contain_text(AWAY)
    found = violations(page, "[aria-label='Strait links']")
    assert not serious(found), found.generate_report()
