"""Fixtures of the page's tests. They share one Airflow: see `support.fixtures.page` for its links and users."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from strait.config.home import project_root
from support.fixtures.clusters import pair
from support.fixtures.page import VIEWER, Site, page_site

STATIC = project_root() / "plugins/strait_airflow/page/static"
SITE = "http://page.test/"


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with pair(tmp_path_factory) as clusters, page_site(tmp_path_factory.mktemp("page"), clusters) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "the page's tests: starting a browser: there is no chromium (Debian: apt-get install chromium)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(site: Site, browser: Browser) -> Page:
    """A window in which the administrator is logged in."""
    return site.open(browser)


@pytest.fixture(scope="module")
def viewer_page(site: Site, browser: Browser) -> Page:
    """The same for one who may read, and change nothing."""
    return site.open(browser, VIEWER)


@pytest.fixture
def scripts(browser: Browser) -> Iterator[Page]:
    """An empty page without an Airflow that may load the files of Strait's."""

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(SITE)
        body = (STATIC / name).read_text(encoding="utf-8") if name else "<!DOCTYPE html><main id=main></main>"
        route.fulfill(body=body, content_type="text/javascript" if name else "text/html")

    page = browser.new_page()
    page.route("**/*", answer)
    page.goto(SITE)
    yield page
    page.close()
