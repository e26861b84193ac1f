"""What the page changes, by Airflow's own interface, in a real browser; and that Airflow refuses those who may not."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from strait.config.links import load_link
from strait.control.pausing import edit as change
from strait.control.pausing import resume
from strait.control.quarantine import Quarantine
from strait.errors import ConfigError
from strait.kafka.admin import Admin
from strait.planning.plan.draft import Draft
from strait.planning.plan.pauses import Scope
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import Loss, Plan, Waiting
from strait.state.writer import StateWriter
from strait.wire.records import Record
from support.dialogs import RUN_MS, dialog, done, told
from support.fixtures.page import ADMIN, ASKED, CHANGED, RULES, VIEWER, Site
from support.fixtures.waiting import eventually
from support.kafka.topics import create
from support.links.handles import handle_into
from support.links.quarantined import keep_aside

pytestmark = [pytest.mark.e2e, pytest.mark.airflow, pytest.mark.core]

MONITOR, VARIABLE = f"strait_{CHANGED}", f"strait_topics_{CHANGED}"
APPROVAL = f"strait_{ASKED}_approval"


@pytest.fixture(scope="module", autouse=True)
def put_aside(site: Site) -> None:
    """Three records. The page counts them once a minute, so they are there before anything else."""
    for topic, offsets in {"edit.a": (1, 2), "edit.b": (3,)}.items():
        records = [Record(offset, 1_600_000_000_000, b"k", b"v", ()) for offset in offsets]
        keep_aside(site.clusters.destination, CHANGED, *records, topic=topic, destination=f"{CHANGED}.{topic}")


def lose(site: Site, partition: int) -> None:
    place: dict[str, Any] = {"topic": "edit.a", "partition": partition, "from_offset": 10, "to_offset": 20}
    said: dict[str, Any] = {"side": "source", "cause": "source_data_lost", "action": "continued", "detail": ""}
    writer = StateWriter(site.clusters.destination.client_properties, "there", CHANGED)
    writer.write_loss(Loss(link=CHANGED, at_ms=1_700_000_000_000, **place, **said))
    assert writer.flush(60)


@pytest.fixture
def link(site: Site, page: Page) -> Page:
    """The view of the link that is changed."""
    page.goto("about:blank")
    page.goto(f"{site.url}#/link/{CHANGED}")
    expect(page.get_by_role("button", name="Pause…", exact=True)).to_be_visible()
    return page


@pytest.fixture
def rows(site: Site, page: Page) -> Page:
    """The view of its partitions."""
    page.goto("about:blank")
    page.goto(f"{site.url}#/link/{CHANGED}/partitions")
    expect(page.get_by_role("region", name="Partitions")).to_be_visible()
    return page


def plan_of(site: Site, link: str) -> Plan | None:
    """As it is published."""
    with StateReader(site.clusters.destination.client_properties, "there", link, follow=("plan",)) as state:
        state.catch_up()
        return state.plans.get("default")


def pauses(site: Site) -> list[tuple[str, int | None, str, str]]:
    plan = plan_of(site, CHANGED)
    assert plan is not None
    return [(one.topic, one.partition, one.by, one.reason) for one in plan.pauses]


def test_a_link_is_paused_and_resumed_by_whoever_is_logged_in(site, rows):
    rows.get_by_role("button", name="Pause…", exact=True).click()
    asks = dialog(rows, f"Pause: link {CHANGED}")
    asks.get_by_label("Reason").fill("<i>for a test</i>")
    asks.get_by_role("button", name="Pause", exact=True).click()
    done(asks, "published plan")
    assert pauses(site) == [("", None, ADMIN, "<i>for a test</i>")]
    expect(rows.get_by_role("region", name="Partitions").locator("tbody tr").first).to_contain_text("paused")

    rows.get_by_role("button", name="Resume…", exact=True).click()
    asks = dialog(rows, f"Resume: link {CHANGED}")
    expect(asks).to_contain_text("paused by admin")
    expect(asks).to_contain_text("<i>for a test</i>")
    asks.get_by_role("button", name="Resume", exact=True).click()
    done(asks, "published plan")
    assert pauses(site) == []


def test_a_partition_is_paused_from_its_row_and_resumed_there_and_the_run_is_airflows(site, rows):
    rows.get_by_role("button", name="Pause edit.a-1").click()
    asks = dialog(rows, f"Pause: link {CHANGED}")
    asks.get_by_role("button", name="Pause", exact=True).click()
    expect(asks.get_by_role("link", name="The run in Airflow")).to_have_attribute(
        "href", re.compile("/dags/strait-pause/runs/manual__")
    )
    done(asks, "published plan")
    assert pauses(site) == [("edit.a", 1, ADMIN, "")]
    rows.get_by_role("button", name="Resume edit.a-1").click()
    asks = dialog(rows, f"Resume: link {CHANGED}")
    asks.get_by_role("button", name="Resume", exact=True).click()
    done(asks, "published plan")
    assert pauses(site) == []


def test_losses_that_are_shown_are_acknowledged_and_one_that_comes_meanwhile_stays_new(site, link):
    lose(site, 1)
    losses = link.get_by_role("region", name="Losses").locator("tbody tr")
    expect(losses.filter(has_text="edit.a-1")).to_contain_text("new")
    link.get_by_role("button", name="Acknowledge…").click()
    asks = dialog(link, f"Acknowledge losses: link {CHANGED}")
    lose(site, 2)  # while the operator is typing
    asks.get_by_label("Reason").fill("<i>seen</i>")
    asks.get_by_role("button", name="Acknowledge", exact=True).click()
    done(asks, f"1 loss is acknowledged by {ADMIN}")
    expect(losses.filter(has_text="edit.a-1")).to_contain_text(f"by {ADMIN}")
    expect(losses.filter(has_text="edit.a-1")).to_contain_text("<i>seen</i>")
    expect(losses.filter(has_text="edit.a-2")).to_contain_text("new")
    link.goto(f"{site.url}#/?state=lost")
    expect(link.get_by_role("region", name="Links").locator("tbody tr")).to_contain_text("1 new loss")


def test_a_deleted_topic_is_decided_about_from_its_row(site, rows):
    file, before = load_link(site.links_file, CHANGED), plan_of(site, CHANGED)
    assert before is not None
    gone = Waiting(
        topic="edit.a", partitions=(0, 1, 2), reason=Reason.DESTINATION_DELETED, detail="edits.edit.a is gone"
    )
    waits = replace(Draft.of(before), topics=(), waiting=(gone,))
    change(ConfiguredLink.of(file, CHANGED), lambda _: (Scope(), (), {"default": waits}))
    rows.get_by_role("button", name="Decide about edit.a").first.click()
    asks = dialog(rows, f"Decide: link {CHANGED}, topic edit.a")
    expect(asks).to_contain_text("edits.edit.a is gone")
    asks.get_by_label("Decision").select_option("restart")
    asks.get_by_label("Reason").fill("a mistake")
    asks.get_by_role("button", name="Decide", exact=True).click()
    done(asks, "published plan")
    decided = plan_of(site, CHANGED)
    assert decided is not None
    assert f"restart was decided by {ADMIN}" in decided.waiting[0].detail
    assert "a mistake" in decided.waiting[0].detail
    change(ConfiguredLink.of(file, CHANGED), lambda _: (Scope(), (), {"default": Draft.of(before)}))


def test_a_run_begins_once_though_airflow_fails_and_an_answer_is_lost(site, rows):
    asked: list[str] = []

    def failing(route: Route) -> None:
        asked.append(route.request.post_data_json["dag_run_id"])
        if len(asked) == 1:
            route.fulfill(status=500)
        elif len(asked) == 2:
            assert route.fetch().ok
            route.abort()
        else:
            route.continue_()

    rows.route("**/api/v2/dags/strait-pause/dagRuns", failing)
    rows.get_by_role("button", name="Pause edit.a-0").click()
    asks = dialog(rows, f"Pause: link {CHANGED}")
    asks.get_by_role("button", name="Pause", exact=True).click()
    done(asks, "published plan")
    rows.unroute("**/api/v2/dags/strait-pause/dagRuns")
    assert len(asked) == 3 and len(set(asked)) == 1
    assert pauses(site) == [("edit.a", 0, ADMIN, "")]
    resume(ConfiguredLink.load(site.links_file, CHANGED), Scope("edit.a", 0))


def test_a_dialog_opens_in_airflows_frame_and_gives_the_keyboard_back(site, page):
    page.goto(f"{site.airflow.url}/plugin/strait#/link/{CHANGED}")
    frame = page.frame_locator("iframe")
    pause = frame.get_by_role("button", name="Pause…", exact=True)
    expect(pause).to_be_visible()
    pause.focus()
    page.keyboard.press("Enter")
    asks = frame.get_by_role("dialog", name=f"Pause: link {CHANGED}")
    expect(asks).to_be_visible()
    page.wait_for_timeout(2500)  # the page behind has been drawn anew
    page.keyboard.press("Escape")
    expect(asks).to_have_count(0)
    expect(pause).to_be_focused()
    assert pauses(site) == []


def test_what_fails_says_why_in_the_dialog_and_can_be_tried_again(site, rows):
    rows.get_by_role("button", name="Pause edit.a-2").click()
    asks = dialog(rows, f"Pause: link {CHANGED}")
    asks.get_by_role("button", name="Pause", exact=True).click()
    done(asks, "published plan")
    rows.get_by_role("button", name="Resume edit.a-2").click()
    asks = dialog(rows, f"Resume: link {CHANGED}")
    file = load_link(site.links_file, CHANGED)
    resume(ConfiguredLink.of(file, CHANGED), Scope("edit.a", 2))  # somebody else was faster
    asks.get_by_role("button", name="Resume", exact=True).click()
    told(asks, "is not paused", "bad")
    expect(asks.get_by_role("button", name="Resume", exact=True)).to_be_enabled()
    rows.keyboard.press("Escape")
    expect(asks).to_have_count(0)
    with pytest.raises(ConfigError):
        resume(ConfiguredLink.of(file, CHANGED), Scope("edit.a", 2))


def edit(link: Page) -> Locator:
    link.get_by_role("button", name="Edit topics…").click()
    return dialog(link, f"Topics of link {CHANGED}")


def test_topics_are_checked_while_typing_previewed_and_saved_with_all_else_that_the_block_says(site, link):
    editor = edit(link)
    expect(editor).to_contain_text("Kept as they are: rules")
    topics, excluded = editor.get_by_role("textbox", name="Topics"), editor.get_by_label("Exclude")
    expect(topics).to_have_value("edit.a")
    save = editor.get_by_role("button", name="Save")
    excluded.fill("edit.[")
    expect(editor.locator("ul.bad")).to_contain_text("exclude.0")
    expect(editor.get_by_role("button", name="Preview")).to_be_disabled()
    excluded.fill("")
    topics.fill("edit.b\nnowhere")
    expect(editor.get_by_role("button", name="Preview")).to_be_enabled()
    expect(save).to_be_disabled()
    editor.get_by_role("button", name="Preview").click()
    shown = editor.get_by_role("region", name="Preview")
    for text in ("+ copies edit.b", "- leaves edit.a", "+ creates edits.edit.b", "nowhere: "):
        expect(shown).to_contain_text(text)
    topics.fill("edit.a\nedit.b")
    expect(save).to_be_disabled()  # what was shown was something else
    editor.get_by_role("button", name="Preview").click()
    expect(shown).to_contain_text("+ copies edit.b")
    expect(shown).not_to_contain_text("leaves")
    save.click()
    done(editor, f"DAG {MONITOR} is paused in Airflow")
    stored = site.airflows("GET", f"variables/{VARIABLE}", site.token()).json()["value"]
    assert json.loads(stored) == {"include": ["edit.a", "edit.b"], "rules": RULES}
    plan = plan_of(site, CHANGED)
    assert plan is not None
    assert {topic.source for topic in plan.topics} == {"edit.a"}, "the page itself plans nothing"


def test_an_edit_that_somebody_else_has_made_meanwhile_is_not_written_over(site, link):
    editor = edit(link)
    editor.get_by_role("textbox", name="Topics").fill("edit.a")
    editor.get_by_role("button", name="Preview").click()
    expect(editor.get_by_role("button", name="Save")).to_be_enabled()
    theirs = json.dumps({"include": ["edit.b"], "rules": RULES})
    site.airflows("PATCH", f"variables/{VARIABLE}", site.token(), {"key": VARIABLE, "value": theirs})
    editor.get_by_role("button", name="Save").click()
    done(editor, "Somebody has changed the topics meanwhile", "bad")
    assert site.airflows("GET", f"variables/{VARIABLE}", site.token()).json()["value"] == theirs


def unpause(site: Site, dag: str) -> None:
    reply = site.airflows("PATCH", f"dags/{dag}?update_mask=is_paused", site.token(), {"is_paused": False})
    assert reply.status_code == 200, reply.text


def test_after_saving_the_run_that_acts_upon_it_is_shown_until_it_is_over(site, link):
    unpause(site, MONITOR)
    eventually(lambda: site.launcher.state(f"strait-{CHANGED}-default"), what="the application")
    editor = edit(link)
    editor.get_by_role("textbox", name="Topics").fill("edit.a\nedit.b")
    editor.get_by_role("button", name="Preview").click()
    expect(editor.get_by_role("button", name="Save")).to_be_enabled()
    editor.get_by_role("button", name="Save").click()
    done(editor, re.compile("plan [0-9]+: 5 partitions of 2 topics"))
    plan = plan_of(site, CHANGED)
    assert plan is not None
    assert {topic.source for topic in plan.topics} == {"edit.a", "edit.b"}


def test_an_application_is_restarted(site, link):
    before = site.launcher.state(f"strait-{CHANGED}-default")
    link.get_by_role("button", name="Restart…").click()
    asks = dialog(link, f"Restart: link {CHANGED}")
    asks.get_by_role("button", name="Restart", exact=True).click()
    done(asks, f"strait-{CHANGED}-default: submitted")
    after = site.launcher.state(f"strait-{CHANGED}-default")
    assert after is not None and before is not None
    assert after.id != before.id
    assert after.state.alive


def test_what_waits_for_approval_is_shown_rejected_and_approved(site, page):
    unpause(site, APPROVAL)
    page.goto(f"{site.url}#/link/{ASKED}")
    changes = page.get_by_role("region", name="Changes to approve")
    expect(changes).to_contain_text("+ copies    edit.a", timeout=RUN_MS)
    page.get_by_role("button", name="Reject…").click()
    asks = dialog(page, f"Reject: Strait, link {ASKED}: make these changes?")
    asks.get_by_role("button", name="Reject", exact=True).click()
    done(asks, f"rejected by {ADMIN}")
    expect(changes).to_have_count(0)
    there = Admin(site.clusters.destination.client_properties, "there")
    assert f"{ASKED}.edit.a" not in there.observe(lambda _: True).topics

    site.airflows("DELETE", f"variables/strait_rejected_{ASKED}", site.token())
    # The link's watch would ask again, too, after a pause that has grown with each time it was refused.
    site.airflows("POST", f"dags/{APPROVAL}/dagRuns", site.token(), {"logical_date": None})
    expect(changes).to_contain_text("+ copies    edit.a", timeout=RUN_MS)
    page.get_by_role("button", name="Approve…").click()
    asks = dialog(page, f"Approve: Strait, link {ASKED}: make these changes?")
    asks.get_by_role("button", name="Approve", exact=True).click()
    done(asks, "plan 1: 3 partitions of 1 topic")
    assert f"{ASKED}.edit.a" in there.observe(lambda _: True).topics


def left_aside(site: Site) -> list[int]:
    contents = Quarantine(handle_into(site.clusters.destination.client_properties, "there", CHANGED)).contents()
    return [entry.offset for entry in contents.entries() if not entry.settled]


def test_the_content_of_a_quarantined_record_is_for_who_may_replay_it(site, link, viewer_page):
    link.get_by_role("button", name="Show the record edit.b-0 offset 3").click(timeout=90_000)
    shown = link.get_by_role("dialog", name="edit.b-0, offset 3")
    expect(shown.get_by_role("definition").filter(has_text="1 bytes")).to_be_visible()
    shown.get_by_role("button", name="Show value").click()
    expect(shown.get_by_role("definition").last).to_have_text("v")
    shown.get_by_role("button", name="Close").click()
    contents = Quarantine(handle_into(site.clusters.destination.client_properties, "there", CHANGED)).contents()
    path = f"api/v1/links/{CHANGED}/quarantine/{contents.entries()[0].at}?value=true"
    assert site.get(path, site.token(VIEWER)).status_code == 403
    assert site.get(path, site.token()).json()["value"]["text"] == "v"
    assert site.get(path).status_code == 401
    viewer_page.goto(f"{site.url}#/link/{CHANGED}")
    expect(viewer_page.get_by_role("button", name="Show the record edit.b-0 offset 3")).to_be_disabled(timeout=90_000)


def test_quarantined_records_are_shown_dropped_and_replayed(site, link):
    drop = link.get_by_role("button", name="Drop quarantined…")
    expect(drop).to_be_visible(timeout=90_000)
    drop.click()
    asks = dialog(link, f"Drop: quarantine of link {CHANGED}")
    asks.get_by_label("Records of").select_option("edit.a")
    asks.get_by_role("button", name="Go").click()
    told(asks, "drop would settle 2 records")
    expect(asks.get_by_role("region", name="Log of the task")).to_contain_text("edit.a-0 offset 1: batch_refused")
    assert left_aside(site) == [1, 2, 3]
    asks.get_by_label("First").select_option("no")
    asks.get_by_role("button", name="Go").click()
    done(asks, "settled 2 records")
    assert left_aside(site) == [3]

    link.get_by_role("button", name="Replay quarantined…").click()
    asks = dialog(link, f"Replay: quarantine of link {CHANGED}")
    asks.get_by_label("First").select_option("no")
    asks.get_by_role("button", name="Go").click()
    told(asks, "name another topic with --to", "bad")
    create(site.clusters.destination, "replayed")
    asks.get_by_label("Write into").fill("replayed")
    asks.get_by_role("button", name="Go").click()
    done(asks, "settled 1 record")
    assert left_aside(site) == []


def test_who_may_only_read_finds_the_buttons_disabled_and_the_reason(site, viewer_page):
    viewer_page.goto(f"{site.url}#/link/{CHANGED}/partitions")
    for name in ("Pause…", "Edit topics…", "Restart…"):
        expect(viewer_page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    expect(viewer_page.locator("main")).to_contain_text("Airflow does not let you pause and resume")
    expect(viewer_page.get_by_role("button", name="Pause edit.a-0")).to_be_disabled()


def test_the_page_is_told_which_changes_its_user_may_make(site):
    told = {user: site.get(f"api/v1/links/{ASKED}", site.token(user)).json()["may"] for user in (ADMIN, VIEWER)}
    assert {"pause", "edit", "restart", "approve", "quarantine", "failover"} <= told[ADMIN].keys()
    assert set(told[ADMIN].values()) == {True}
    assert set(told[VIEWER].values()) == {False}


CHANGES = [
    ("POST", "dags/strait-pause/dagRuns", {"logical_date": None, "conf": {"link": CHANGED}}),
    ("POST", "dags/strait-failover/dagRuns", {"logical_date": None, "conf": {"link": CHANGED}}),
    ("POST", "dags/strait-quarantine/dagRuns", {"logical_date": None, "conf": {"link": CHANGED}}),
    ("POST", f"dags/{MONITOR}/dagRuns", {"logical_date": None, "conf": {"restart": "default"}}),
    ("PATCH", f"variables/{VARIABLE}", {"key": VARIABLE, "value": "{}"}),
    ("POST", "variables", {"key": f"strait_topics_{ASKED}", "value": "{}"}),
    (
        "PATCH",
        f"dags/{APPROVAL}/dagRuns/any/taskInstances/ask/-1/hitlDetails",
        {"chosen_options": ["Approve"], "params_input": {}},
    ),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_airflow_refuses_each_change_to_who_may_only_read_and_to_strangers(site, method, path, body):
    assert site.airflows(method, path, site.token(VIEWER), body).status_code == 403
    assert site.airflows(method, path, "", body).status_code == 401


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/check"), ("POST", "/preview")])
def test_topics_are_told_to_those_alone_who_may_edit_them(site, method, path):
    url = f"{site.url}api/v1/links/{CHANGED}/topics{path}"
    body = {"topics": {"regex": [".*"]}} if method == "POST" else None
    assert site.ask(method, url, site.token(VIEWER), body).status_code == 403
    assert site.ask(method, url, "", body).status_code == 401
    assert site.ask(method, url, site.token(), body).status_code == 200


def test_wrong_topics_are_refused_with_one_line(site):
    url = f"{site.url}api/v1/links/{CHANGED}/topics/preview"
    wrong = site.ask("POST", url, site.token(), {"topics": {"includ": []}})
    assert wrong.status_code == 409
    assert "includ: unknown key; did you mean 'include'?" in wrong.json()["detail"]
    assert site.ask("POST", url, site.token(), {"other": {}}).status_code == 422
