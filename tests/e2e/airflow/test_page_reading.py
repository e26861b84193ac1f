"""What the page shows of consumer groups, recovery, one partition and the past, to one who may only read."""

import pytest
from confluent_kafka import Consumer, TopicPartition
from playwright.sync_api import Page, expect

from strait.config.links import load_link
from strait.control.failover import failover
from strait.control.failover.turn import Settings
from strait.state.link_handle import ConfiguredLink
from support.fixtures.page import LONG, READ, Site
from support.kafka.topics import produce

pytestmark = [pytest.mark.e2e, pytest.mark.airflow, pytest.mark.core]

GROUP = "<i>billing</i>/2"
COMMITTED = 5


@pytest.fixture(scope="module")
def group(site: Site) -> str:
    """Has committed an offset on the source, and has no members."""
    produce(site.clusters.source, "orders", 10)
    settings = {"group.id": GROUP, "enable.auto.commit": False}
    consumer = Consumer(dict(site.clusters.source.client_properties) | settings)
    consumer.commit(offsets=[TopicPartition("orders", 0, COMMITTED)], asynchronous=False)
    consumer.close()
    return GROUP


@pytest.fixture(scope="module")
def rehearsal(site: Site) -> str:
    """The id of a rehearsal."""
    file = load_link(site.links_file, READ, reverse=True)
    return failover.rehearse(ConfiguredLink.of(file, READ), Settings(by="ann", reason="to know"), lambda _: None).id


def test_a_consumer_group_says_where_it_would_continue_and_why_not_where_it_is(site, viewer_page: Page, group):
    viewer_page.goto(f"{site.url}#/link/{READ}")
    viewer_page.get_by_role("link", name="Groups").click()
    row = viewer_page.get_by_role("region", name="Consumer groups").locator("tbody tr").filter(has_text=group)
    expect(row).to_contain_text("1 ahead of the copy")
    assert viewer_page.locator("main i").count() == 0
    viewer_page.get_by_label("Group contains").fill("nobody")
    expect(viewer_page.locator("main")).to_contain_text("No consumer group is like that.")
    expect(viewer_page.locator("#groups-range")).to_be_hidden()
    viewer_page.get_by_label("Group contains").fill("BILL")
    row.get_by_role("link").click()
    offset = viewer_page.get_by_role("region", name="Offsets").locator("tbody tr")
    expect(offset).to_contain_text("orders-0")
    expect(offset.locator("td").nth(1)).to_have_text(str(COMMITTED))
    offset.locator("summary").click()
    expect(offset).to_contain_text("would continue where that ends")


def test_recovery_shows_how_ready_the_link_is_what_is_missing_and_the_report(site, viewer_page: Page, rehearsal):
    viewer_page.goto(f"{site.url}#/link/{READ}/recovery")
    main = viewer_page.locator("main")
    expect(main).to_contain_text("steps held at the rehearsal of")
    expect(main.locator("li").filter(has_text="failed copying")).to_be_visible()
    expect(main.get_by_role("img", name="Steps that hold, in rehearsals")).to_be_visible()
    for name in ("Fail over…", "Rehearse…"):
        expect(main.get_by_role("button", name=name)).to_be_disabled()
    main.get_by_role("region", name="Reports").get_by_role("link").first.click()
    expect(main).to_contain_text(f"rehearsal {rehearsal}")
    expect(main).to_contain_text("to know")
    expect(main.get_by_role("region", name="Steps").locator("tbody tr").first).to_be_visible()


def test_a_partition_says_where_it_stands_why_and_what_to_do(site, viewer_page: Page):
    viewer_page.goto(f"{site.url}#/link/{READ}/partitions")
    viewer_page.get_by_label("Topic contains").fill("ttt")
    viewer_page.get_by_role("link", name=f"{LONG}-0").click()
    main = viewer_page.locator("main")
    expect(main.get_by_role("heading", name=f"{LONG}-0")).to_be_visible()
    expect(main).to_contain_text("slot_silent: ")
    expect(main).to_contain_text("End of the source")
    expect(main.get_by_role("region", name="Losses")).to_contain_text("None.")
    expect(main.get_by_role("region", name="Offset map")).to_contain_text("generation 1")


def test_an_address_of_something_that_is_not_there_is_one_line(site, viewer_page: Page):
    for view, said in (("partition/none/7", "has no partition none-7"), ("recovery/none", "no failover none is known")):
        viewer_page.goto(f"{site.url}#/link/{READ}/{view}")
        expect(viewer_page.locator("main").get_by_role("alert")).to_contain_text(said)
