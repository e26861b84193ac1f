"""The page's dialogs, as a person uses them."""

import re

from playwright.sync_api import Locator, Page, expect

RUN_MS = 120_000
"""Airflow's scheduler starts a run within seconds, on a busy machine within many."""


def dialog(page: Page, name: str) -> Locator:
    found = page.get_by_role("dialog", name=name)
    expect(found).to_be_visible()
    return found


def told(found: Locator, text: str | re.Pattern[str], kind: str = "good") -> None:
    """Wait until the dialog says how it ended, and look at that."""
    status = found.locator(".run [role=status]")
    expect(status).to_have_class(re.compile("good|bad"), timeout=RUN_MS)
    expect(status).to_contain_text(text)
    expect(status).to_have_class(kind)


def done(found: Locator, text: str | re.Pattern[str], kind: str = "good") -> None:
    """The same, and close it."""
    told(found, text, kind)
    found.get_by_role("button", name="Close").click()
    expect(found).to_have_count(0)
