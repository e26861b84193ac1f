"""What was shown is what is done: on real brokers, against other control planes, and with a broken state."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from strait.config import naming
from strait.config.links import LinksFile, parse
from strait.control import pausing
from strait.control.link_status import link_status
from strait.control.plane import Control
from strait.errors import ApprovalMissing, StateError
from strait.kafka.admin import Admin
from strait.planning.plan.pauses import Scope
from strait.planning.review.approval import ShownPlan
from strait.planning.risks.risks import Risk
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.topics import create, delete, produce
from support.links.copying import copying

pytestmark = pytest.mark.broker

MakeFile = Callable[..., LinksFile]


@pytest.fixture
def link(topic_name: str) -> str:
    return "p" + topic_name[-8:]


@pytest.fixture
def make_file(clusters: Any, link: str) -> MakeFile:
    def make(**settings: Any) -> LinksFile:
        base = {"source": "a", "destination": "b", "topics": {"regex": [f"{link}-.*"]}, "approval": "required"}
        ends = {
            "a": dict(clusters.source.client_properties),
            "b": dict(clusters.destination.client_properties),
        }
        return parse({"clusters": ends, "links": {link: base | settings}}, where="links file")

    return make


def topics_of(cluster: Any, prefix: str) -> list[str]:
    return sorted(t for t in Admin(cluster.client_properties, "x").observe(lambda _: False).topics if prefix in t)


@pytest.mark.core
def test_nothing_is_done_unasked_and_what_was_shown_is_done(clusters: Any, make_file: MakeFile, link: str) -> None:
    create(clusters.source, f"{link}-orders", 2)
    with Control(make_file(), link) as control:
        with pytest.raises(ApprovalMissing, match="2 changes wait for approval"):
            control.apply()
        assert topics_of(clusters.destination, link) == []
        shown = control.show(control.propose())
        outcome = control.apply(shown=shown)
        assert outcome.created == (f"{link}-orders",)
        assert [topic.slots for topic in outcome.plan.topics] == [(0, 0)]
        assert not control.apply().published


def test_slots_come_and_what_halts_halts_without_anybody_s_leave(clusters: Any, make_file: MakeFile, link: str) -> None:
    create(clusters.source, f"{link}-orders", 2)
    with Control(make_file(), link) as control:
        control.apply(shown=control.show(control.propose()))
    with Control(make_file(groups={"default": {"slots": 2}}), link) as control:
        assert control.apply().plan.topics[0].slots == (0, 1)


@pytest.mark.parametrize("early", [True, False])
def test_a_world_that_has_changed_is_refused_with_what_differs(
    clusters: Any, make_file: MakeFile, link: str, early: bool
) -> None:
    """Before the first look, or between it and the publication: both times nothing is published."""
    create(clusters.source, f"{link}-orders", 2)
    with Control(make_file(), link) as control:
        proposal = control.propose()
        shown = control.show(proposal)
        create(clusters.source, f"{link}-secrets", 2)
        with pytest.raises(ApprovalMissing, match=f"not shown: copies {link}-secrets"):
            control.apply(None if early else proposal, shown=shown)
        assert naming.plan_topic(link) not in topics_of(clusters.destination, link) or not control.propose().plans
        again = control.show(control.propose())
        assert len(control.apply(shown=again).plan.topics) == 2


def test_what_another_control_plane_has_done_meanwhile_is_no_longer_to_be_done(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-orders", 2)
    with Control(make_file(), link) as control, Control(make_file(), link) as other:
        shown = control.show(control.propose())
        other.apply(shown=other.show(other.propose()))
        with pytest.raises(ApprovalMissing, match=f"no longer: copies {link}-orders"):
            control.apply(shown=shown)


def test_a_state_that_cannot_be_read_refuses_approved_plans_and_pauses_and_changes_nothing(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-orders", 2)
    file = make_file()
    with Control(file, link) as control:
        control.apply(shown=control.show(control.propose()))
    create(clusters.source, f"{link}-more", 2)
    with Control(file, link) as control:
        shown = control.show(control.propose())
    newer = Producer(clusters.destination.client_properties)
    newer.produce(naming.plan_topic(link), key=b'{"group":"default"}', value=json.dumps({"v": 2}).encode())
    assert newer.flush(30) == 0
    try:
        with Control(file, link) as control, pytest.raises(StateError, match="it has v 2, and this version"):
            control.apply(shown=shown)
        with pytest.raises(StateError, match="it has v 2"):
            pausing.pause(ConfiguredLink.of(file, link), Scope(), by="ann", reason="")
    finally:  # other tests plan on these clusters, too
        newer.produce(naming.plan_topic(link), key=b'{"group":"default"}', value=None)
        assert newer.flush(30) == 0
    assert f"{link}-more" not in topics_of(clusters.destination, link)


def codes_of(risks: Iterable[Risk]) -> list[str]:
    """But for those of links that other tests have left on the same clusters."""
    of_others = "is registered to copy", "is not copied on to"
    return [risk.code for risk in risks if not any(text in risk.detail for text in of_others)]


def test_the_backfill_and_the_risks_are_shown(clusters: Any, make_file: MakeFile, link: str) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic, 1)
    create(clusters.destination, topic, 1, **{"max.message.bytes": "1000", "retention.ms": "3600000"})
    producer = Producer(clusters.source.client_properties)
    for number in range(100):
        producer.produce(topic, b"x" * 1000, timestamp=1_700_000_000_000 + number)
    assert producer.flush(30) == 0
    with Control(make_file(start=1_700_000_000_050), link) as control:
        proposal = control.propose()
        ahead = control.forecast(proposal)
        shown = control.show(proposal, ahead)
    (found,) = ahead.backfill.topics
    assert (found.records, found.bytes_from) == (50, "log")
    assert found.bytes >= 50_000
    assert codes_of(ahead.risks) == ["shorter_retention", "smaller_messages"]
    assert [text for text in ahead.unknown if "writes to the same topics" not in text] == []
    assert f"backfill  {topic}: 50 records" in shown.text
    assert f"risk      {topic}: smaller_messages" in shown.text


def test_a_plan_file_is_done_once_and_only_as_written(
    clusters: Any, make_file: MakeFile, link: str, tmp_path: Path
) -> None:
    from broker.test_command_line import links_file, strait

    create(clusters.source, f"{link}-orders", 2)
    ends = clusters.source.client_properties, clusters.destination.client_properties
    path = links_file(tmp_path, *ends, topics={"regex": [f"{link}-.*"]}, approval="required")
    file = tmp_path / "plan.json"
    common = ("--config", str(path), "--link", "a-to-b")
    done = strait(tmp_path, "plan", *common, "--out", str(file), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    said, written = json.loads(done.stdout), ShownPlan.parse(file.read_text(), where="f")
    assert said["fingerprint"] == written.fingerprint
    assert said["backfill"]["records"] == 0
    assert strait(tmp_path, "apply", *common).returncode == 1
    assert strait(tmp_path, "apply", str(file), *common).returncode == 0
    again = strait(tmp_path, "apply", str(file), *common)
    assert again.returncode == 1
    assert f"no longer: copies {link}-orders" in again.stderr
    file.write_text(file.read_text().replace("-orders", "-secrets"))
    edited = strait(tmp_path, "apply", str(file), *common)
    assert (edited.returncode, "it was edited" in edited.stderr) == (2, True)


def test_brokers_that_forget_producers_soon_are_a_risk(clusters: Any, make_file: MakeFile, link: str) -> None:
    create(clusters.source, f"{link}-orders", 1)
    client = AdminClient(clusters.destination.client_properties)
    broker = str(clusters.destination.broker_ids[0])

    def expire(operation: AlterConfigOpType, value: str | None) -> None:
        """Without a restart."""
        entry = ConfigEntry("producer.id.expiration.ms", value, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.BROKER, broker, incremental_configs=[entry])
        client.incremental_alter_configs([resource])[resource].result(30)

    def codes() -> list[str]:
        with Control(make_file(), link) as control:
            return codes_of(control.forecast(control.propose()).risks)

    assert codes() == []
    expire(AlterConfigOpType.SET, "7200000")
    try:
        eventually(lambda: codes() == ["short_producer_expiration"], what=lambda: f"the risk: {codes()}")
    finally:
        expire(AlterConfigOpType.DELETE, None)


def test_a_recreated_topic_is_copied_on_while_a_new_one_waits_for_approval(
    clusters: Any, make_file: MakeFile, link: str, tmp_path: Path
) -> None:
    orders, news = f"{link}-orders", f"{link}-news"
    create(clusters.source, orders, 1)
    produce(clusters.source, orders, 20)
    file = make_file(topics={"regex": [f"{link}-.*"], "rules": [{"match": ".*", "on_loss": "restart"}]})
    with Control(file, link) as control:
        control.apply(shown=control.show(control.propose()))

        def waiting() -> dict[str, str]:
            return {item.topic: item.reason for item in control.apply().plan.waiting}

        with copying(control, tmp_path):
            eventually(lambda: sum(ends(clusters.destination, orders, 1)) == 20, what="the first ones copied")
            create(clusters.source, news, 1)
            outcome = control.apply()
            assert [effect.verb for effect in outcome.pending] == ["copies", "creates"]
            assert "2 changes wait for approval:\n  copies" in outcome.as_text()
            assert waiting() == {news: Reason.AWAITING_APPROVAL}
            delete(clusters.source, orders)
            eventually(lambda: waiting().get(orders) == Reason.SOURCE_MISSING, what="it is missed")
            create(clusters.source, orders, 1)
            produce(clusters.source, orders, 20)
            eventually(
                lambda: (
                    waiting() == {news: Reason.AWAITING_APPROVAL} and sum(ends(clusters.destination, orders, 1)) == 40
                ),
                what=lambda: f"the new ones copied, too: {waiting()}",
            )
            assert not control.apply().published, "what waits is published once"
            assert topics_of(clusters.destination, news) == []
            found = link_status(ConfiguredLink.of(file, link), news)
            (row,) = found.rows
            assert row.detail.endswith(" UTC: copying it from earliest") and row.detail.startswith("since 20")
            assert found.groups[0].stuck == {}
            control.apply(shown=control.show(control.propose()))
            assert waiting() == {}
            assert topics_of(clusters.destination, news) == [news]


def test_all_topics_may_be_replaced_by_others_that_wait_for_approval(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    orders, payments = f"{link}-orders", f"{link}-payments"
    for topic in (orders, payments):
        create(clusters.source, topic, 2)
    with Control(make_file(topics={"include": [orders]}), link) as control:
        control.apply(shown=control.show(control.propose()))
    with Control(make_file(topics={"include": [payments]}), link) as control:
        assert ("copies", payments) in {effect[:2] for effect in control.apply().pending}
        assert topics_of(clusters.destination, payments) == []
        plan = control.apply(shown=control.show(control.propose())).plan
        assert [topic.source for topic in plan.topics] == [payments]


def test_the_command_does_what_needs_no_approval_and_says_what_waits(
    clusters: Any, make_file: MakeFile, link: str, tmp_path: Path
) -> None:
    from broker.test_command_line import links_file, strait

    create(clusters.source, f"{link}-orders", 2)
    ends_of = clusters.source.client_properties, clusters.destination.client_properties
    path = links_file(tmp_path, *ends_of, topics={"regex": [f"{link}-.*"]}, approval="required")
    common = ("--config", str(path), "--link", "a-to-b")
    assert strait(tmp_path, "plan", *common, "--out", str(tmp_path / "plan.json")).returncode == 0
    assert strait(tmp_path, "apply", str(tmp_path / "plan.json"), *common).returncode == 0
    create(clusters.source, f"{link}-more", 2)
    slots = {"groups": {"default": {"slots": 2}}}
    links_file(tmp_path, *ends_of, topics={"regex": [f"{link}-.*"]}, approval="required", **slots)
    said = strait(tmp_path, "apply", *common, "--json")
    assert (said.returncode, said.stderr) == (1, "")
    done = json.loads(said.stdout)
    assert done["published"] and done["plans"]["default"]["slots"] == 2
    assert [effect[:2] for effect in done["pending"]] == [["copies", f"{link}-more"], ["creates", f"{link}-more"]]
    text = strait(tmp_path, "apply", *common)
    assert (text.returncode, "2 changes wait for approval:" in text.stdout) == (1, True)
