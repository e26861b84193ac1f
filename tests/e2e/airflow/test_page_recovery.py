"""Rehearsing, failing over and removing a fence from the page, in a real browser, by a real Airflow."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from strait.control.failover import failover
from strait.control.failover.journal import Journal
from strait.state.failover_records import Failover
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import GivenAcl
from support.dialogs import RUN_MS, dialog, done, told
from support.fixtures.page import ADMIN, GATEWAY, MOVED, Site
from support.links.handles import handle_into

pytestmark = [pytest.mark.e2e, pytest.mark.airflow, pytest.mark.core]


@pytest.fixture
def recovery(site: Site, page: Page) -> Page:
    """The view of the link that is failed over."""
    page.goto("about:blank")
    page.goto(f"{site.url}#/link/{MOVED}/recovery")
    expect(page.get_by_role("button", name="Fail over…")).to_be_enabled()
    return page


def history(site: Site) -> list[Failover]:
    return list(failover.history(ConfiguredLink.load(site.links_file, MOVED)))


def stopped(site: Site) -> bool:
    """Whether the plan in force has the link stopped."""
    with StateReader(site.clusters.destination.client_properties, "there", MOVED, follow=("plan",)) as state:
        state.catch_up()
        return bool(state.plans["default"].stopped)


def journal(site: Site) -> Journal:
    return Journal(handle_into(dict(site.clusters.destination.client_properties), "there", MOVED))


def record(name: str, outcome: Any, **facts: Any) -> Failover:
    """A planned failover that somebody else has begun."""
    ends = {"link": MOVED, "source": "here", "destination": "there", "kind": "planned", "by": "ann"}
    return Failover(
        id=name, turn=name, outcome=outcome, strait_version="1", began_at_ms=1_700_000_000_000, **ends, **facts
    )


def reports(page: Page) -> Locator:
    return page.get_by_role("region", name="Reports").locator("tbody tr")


def test_a_rehearsal_is_begun_followed_and_its_report_is_there(site, recovery):
    recovery.get_by_role("button", name="Rehearse…").click()
    asks = dialog(recovery, f"Rehearse a failover of {MOVED}")
    asks.get_by_label("Reason").fill("<b>each month</b>")
    asks.get_by_role("button", name="Rehearse", exact=True).click()
    told(asks, "% of the steps hold")
    expect(asks.get_by_role("region", name="Log of the task")).to_contain_text("failed copying")
    done(asks, "% of the steps hold")
    (record,) = history(site)
    assert (record.kind, record.by, record.reason) == ("rehearsal", ADMIN, "<b>each month</b>")
    expect(reports(recovery).first).to_contain_text("rehearsal")
    expect(recovery.locator("main")).to_contain_text(f"{record.score} % of {len(record.steps)} steps held")
    assert recovery.locator("main b").count() == 0


def test_a_wave_is_rehearsed_and_looked_at_by_the_rules_of_the_command_line(site, recovery):
    recovery.get_by_role("button", name="Rehearse…").click()
    asks = dialog(recovery, f"Rehearse a failover of {MOVED}")
    asks.get_by_text("Only some topics (a wave)").click()
    groups = asks.get_by_label("Consumer groups")
    groups.fill("billing.*")
    refused = "A wave moves topics, and these groups with them: name topics, too."
    assert groups.evaluate("field => field.validationMessage") == refused
    asks.get_by_label("Topics").fill("edit\\..*")
    assert groups.evaluate("field => field.validationMessage") == ""
    asks.get_by_role("button", name="Rehearse", exact=True).click()
    done(asks, "% of the steps hold")
    assert (history(site)[-1].wave_topics, history(site)[-1].wave_groups) == (("edit\\..*",), ("billing.*",))
    expect(reports(recovery).first).to_contain_text("rehearsal, a wave of edit\\..*")

    recovery.get_by_role("button", name="Fail over…").click()
    asks = dialog(recovery, f"Fail over link {MOVED}")
    asks.get_by_text("Only some topics (a wave)").click()
    asks.get_by_label("Topics").fill("(")
    asks.get_by_role("button", name="Dry run").click()
    told(asks, "'(' is not a regular expression", "bad")
    expect(asks.get_by_label(f"Type {MOVED}")).to_be_disabled()
    asks.get_by_label("Kind").select_option("unplanned")
    expect(asks.get_by_label("Topics")).to_be_hidden()  # a wave drains its topics, which needs the source
    asks.get_by_role("button", name="Close").click()


def test_a_failover_is_looked_at_with_the_same_settings_and_begun_by_typing_the_links_name(site, recovery):
    before = history(site)
    recovery.get_by_role("button", name="Fail over…").click()
    asks = dialog(recovery, f"Fail over link {MOVED}")
    typed, now = asks.get_by_label(f"Type {MOVED}"), asks.get_by_role("button", name="Fail over now")
    log = asks.get_by_role("region", name="Log of the task")
    expect(typed).to_be_disabled()
    asks.get_by_label("Kind").select_option("unplanned")
    asks.get_by_role("button", name="Dry run").click()
    status = asks.locator(".run [role=status]")
    expect(status).to_contain_text("would wait for, or fail at: source", timeout=RUN_MS)
    expect(status).not_to_have_class("good")
    expect(log).to_contain_text("a planned failover loses nothing")

    expect(typed).to_be_enabled()
    asks.get_by_text("More settings").click()
    asks.get_by_label("Fail over although the source answers").check()
    expect(typed).to_be_disabled()  # what was looked at was something else
    asks.get_by_role("button", name="Dry run").click()
    told(asks, "dry run: all holds")
    expect(log).to_contain_text("is not asked for anything, even if it answers")
    assert history(site) == before
    assert not stopped(site)

    typed.fill("leave")
    expect(now).to_be_disabled()
    typed.fill(MOVED)
    now.click()
    done(asks, re.compile(f"link {MOVED}: unplanned failover .* done in"))
    *_, record = history(site)
    assert (record.kind, record.outcome, record.by) == ("unplanned", "done", ADMIN)
    ran = next(step for step in record.steps if step.name == "after stop")
    assert ran.detail.startswith(f"DAG {GATEWAY}: run ")
    given = json.loads(site.switched.read_text())
    assert (given["link"], given["topics"], given["destination"]["name"]) == (MOVED, ["edit.a"], "there")
    assert stopped(site)
    expect(reports(recovery).first).to_contain_text("unplanned")


def test_a_fence_that_was_left_can_be_removed(site, recovery):
    """The source has no authorizer, so it has no such rule any more: the run has asked it."""
    rule = GivenAcl(
        name="edit.a", pattern="LITERAL", principal="User:orders", host="*", operation="WRITE", permission="DENY"
    )
    journal(site).write(record("left", "done", fence=(rule,)))
    recovery.get_by_role("button", name="Remove the fence…").click()
    asks = dialog(recovery, f"Remove the fence of {MOVED}")
    asks.get_by_role("button", name="Remove the fence", exact=True).click()
    done(asks, "0 ACLs removed")
    assert history(site)[-1].fence == ()


def test_a_wave_that_was_cut_off_is_offered_with_its_topics_and_a_report_names_what_waves_have_left(site, recovery):
    cut_off = record("cut", "running", wave_topics=("edit.*", "pay"), wave_groups=("billing",))
    journal(site).write(cut_off)
    recovery.get_by_role("button", name="Continue the failover…").click()
    asks = dialog(recovery, f"Fail over link {MOVED}")
    expect(asks.get_by_label("Topics")).to_have_value("edit.*\npay")
    expect(asks.get_by_label("Consumer groups")).to_have_value("billing")
    asks.get_by_role("button", name="Close").click()
    journal(site).write(cut_off.model_copy(update={"outcome": "aborted"}))
    journal(site).write(record("rest", "done", still_paused=("edit.a",)))
    recovery.goto(f"{site.url}#/link/{MOVED}/recovery/rest")
    left = recovery.get_by_role("list", name="What was left behind")
    expect(left).to_contain_text(f"link {MOVED} is stopped: strait start {MOVED}")
    expect(left).to_contain_text("1 topic that earlier waves moved is still paused: edit.a")
    expect(recovery.get_by_role("list", name="What to do next")).to_contain_text(
        "start producers and consumers on there"
    )
