"""Fixtures of the page's tests. They share one Airflow: see `support.fixtures.page` for its links and users."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from support.fixtures.clusters import pair
from support.fixtures.page import VIEWER, Site, page_site


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
