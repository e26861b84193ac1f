"""What somebody is asked about, and that nothing else is done than what was shown."""

import json
from dataclasses import replace
from typing import Any

import pytest

from strait.errors import ApprovalMissing, ConfigError
from strait.planning.plan.planner import Proposal
from strait.planning.review import text
from strait.planning.review.approval import Approval, ShownPlan, pending_lines
from strait.planning.review.clusters import UNKNOWN, cluster_effects, planned_clusters
from strait.planning.review.effects import Effect, Effects, effects, fingerprint
from strait.state.schema import Plan
from unit.planning.test_plan import cluster, link, propose, publish

ORDERS = cluster("a", {"orders": 2})
NONE = cluster("b", {})


def told(settings: Any, proposal: Proposal) -> list[str]:
    return [" ".join(str(effect).split()) for effect in effects(settings, proposal)]


def applied(settings: Any, *args: Any) -> tuple[Plan, Any]:
    return publish(propose(settings, *args))


def test_a_topic_to_create_is_shown_with_what_it_becomes_and_that_it_is_copied() -> None:
    shown = told(link(start="latest"), propose(link(start="latest"), ORDERS, NONE))
    assert shown[0] == "copies orders: from latest"
    assert shown[1].startswith("creates orders: 2 partitions")


def test_what_is_left_when_the_topic_is_there_was_all_shown() -> None:
    settings = link(naming={"policy": "prefix", "prefix": "dr."})
    before = effects(settings, propose(settings, ORDERS, NONE))
    after = effects(settings, propose(settings, ORDERS, cluster("b", {"dr.orders": 2})))
    assert after == (Effect("copies", "orders", "to dr.orders, from earliest"),)
    Approval("l", before).check_rest(after, UNKNOWN)
    with pytest.raises(ApprovalMissing, match="not shown: copies orders"):
        Approval("l", (Effect("copies", "orders", "to dr.orders, from latest"),)).check_rest(after, UNKNOWN)


def test_nobody_is_asked_about_what_stays_moves_waits_or_is_paused() -> None:
    settings, here = link(), cluster("b", {"orders": 2})
    plan, runs = applied(settings, ORDERS, here)
    for now, there in (
        (ORDERS, here),
        (cluster("a", {}), here),  # it waits, as its source is missing
        (cluster("a", {"orders": 2}, generation="2"), here),  # it halts
        (ORDERS, cluster("b", {"orders": 2}, **{"max.message.bytes": "77"})),
    ):
        assert told(settings, propose(settings, now, there, plan, runs)) == []
    more_slots = link(groups={"default": {"slots": 5}})
    proposal = propose(more_slots, ORDERS, here, plan, runs)
    assert proposal.draft is not None
    assert told(more_slots, proposal) == []


def test_a_topic_that_nothing_selects_any_more_and_a_rule_are_asked_about() -> None:
    both = cluster("a", {"orders": 1, "payments": 1}), cluster("b", {"orders": 1, "payments": 1})
    plan, runs = applied(link(), *both)
    narrower = link(
        topics={
            "include": ["orders"],
            "rules": [{"match": ".*", "on_loss": "continue"}],
            "budget": {"bytes_per_second": 9},
        }
    )
    assert told(narrower, propose(narrower, *both, plan, runs)) == [
        "budget of the link: link 9 bytes/s",
        "changes orders: on_loss halt -> continue",
        "leaves payments",
    ]


SHOWN: Effects = (Effect("copies", "orders", "from earliest"), Effect("creates", "orders", "2 partitions"))
OTHER = Effect("copies", "secrets", "from earliest")


def test_what_was_shown_may_be_done_and_nothing_else() -> None:
    Approval("l", SHOWN).check(SHOWN, UNKNOWN)
    Approval("l", SHOWN).check_rest(SHOWN[:1], UNKNOWN)
    Approval("l", None).check(SHOWN, UNKNOWN)
    Approval("l", ()).check((), UNKNOWN)
    with pytest.raises(ApprovalMissing, match="not shown: copies secrets: from earliest") as refused:
        Approval("l", SHOWN).check((*SHOWN, OTHER), UNKNOWN)
    assert refused.value.unseen == ("not shown: copies secrets: from earliest",)
    with pytest.raises(ApprovalMissing, match="no longer: creates orders: 2 partitions"):
        Approval("l", SHOWN).check(SHOWN[:1], UNKNOWN)


def test_where_approval_is_required_and_nothing_was_shown_it_is_waited_for() -> None:
    with pytest.raises(ApprovalMissing, match="link l: 2 changes wait for approval:\n  copies orders: from earliest\n"):
        Approval("l", ()).check(SHOWN, UNKNOWN)


def test_of_very_many_differences_the_first_are_told() -> None:
    many = tuple(Effect("copies", f"t{number:05}", "") for number in range(50_000))
    with pytest.raises(ApprovalMissing) as refused:
        Approval("l", ()).check(many, UNKNOWN)
    assert len(refused.value.unseen) == 21
    assert refused.value.unseen[-1] == "and 49980 more"


def test_a_plan_that_was_shown_for_one_cluster_is_not_applied_to_another() -> None:
    Approval("l", SHOWN, ("one", "")).check(SHOWN, ("one", "any"))
    Approval("l", SHOWN).check(SHOWN, ("one", "any"))
    for check in (Approval("l", SHOWN, ("one", "two")).check, Approval("l", SHOWN, ("one", "two")).check_rest):
        with pytest.raises(ApprovalMissing, match="shown for Kafka cluster two as destination, which is three now"):
            check(SHOWN, ("one", "three"))
    assert fingerprint(SHOWN, ("one", "two")) != fingerprint(SHOWN, ("one", "three"))


def test_that_a_source_is_another_cluster_is_an_effect_of_its_own() -> None:
    settings, here = link(), cluster("b", {"orders": 2})
    plan, runs = applied(settings, ORDERS, here)
    assert planned_clusters([plan]) == (ORDERS.cluster_id, here.cluster_id)
    other = replace(ORDERS, cluster_id="other")
    proposal = propose(settings, other, here, plan, runs)
    assert told(settings, proposal) == [f"reads Kafka cluster other: so far {ORDERS.cluster_id}"]
    assert text.proposal_text(proposal).splitlines()[-1] == "Plan: 0 to add, 1 to change, 0 to remove."
    assert list(cluster_effects(propose(settings, ORDERS, here, plan, runs))) == []


def test_of_a_plan_of_an_older_version_the_source_is_known_where_it_had_an_id() -> None:
    plan, _ = applied(link(), ORDERS, cluster("b", {"orders": 2}))
    old = plan.model_copy(update={"source_cluster": "", "destination_cluster": ""})
    assert planned_clusters([old.model_copy(update={"copied_from": "first"})]) == ("first", "")
    assert planned_clusters([old.model_copy(update={"copied_from": "None"})]) == UNKNOWN == planned_clusters([])


def test_a_fingerprint_is_that_of_the_effects_in_whatever_order() -> None:
    assert fingerprint(SHOWN, UNKNOWN) == fingerprint(SHOWN[::-1], UNKNOWN)
    assert fingerprint(SHOWN, UNKNOWN) != fingerprint(SHOWN[:1], UNKNOWN)
    assert fingerprint([Effect("a", "b c", "")], UNKNOWN) != fingerprint([Effect("a", "b", "c")], UNKNOWN)


def test_a_plan_file_is_read_as_it_was_written() -> None:
    written = ShownPlan.of("l", SHOWN, "text")
    assert ShownPlan.parse(written.model_dump_json(), where="f") == written
    assert written.shown == SHOWN


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"effects": [["copies", "secrets", ""]]}, "it was edited"),
        ({"v": 2}, "has v 2"),
        ({"effects": "all"}, "effects: "),
        ({"and": 1}, "and: unknown key"),
    ],
)
def test_a_plan_file_that_somebody_changed_is_refused(change: dict[str, Any], what: str) -> None:
    raw = json.loads(ShownPlan.of("l", SHOWN, "text").model_dump_json()) | change
    with pytest.raises(ConfigError, match=what):
        ShownPlan.parse(json.dumps(raw), where="plan file f")


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_what_is_no_plan_file_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="plan file f: "):
        ShownPlan.parse(text, where="plan file f")


def test_what_is_taken_away_is_seen_before_a_list_is_cut() -> None:
    pending = [Effect("copies", f"t{number:03}", "from earliest") for number in range(300)]
    pending += [Effect("leaves", "orders"), Effect("changes", "orders", "on_loss halt -> restart")]
    lines = pending_lines(sorted(pending))
    assert lines[:4] == [
        "302 changes wait for approval:",
        "  leaves orders",
        "  changes orders: on_loss halt -> restart",
        "  copies t000: from earliest",
    ]
    assert lines[-1] == "and 282 more"
