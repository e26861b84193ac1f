"""Topics that are transformed on the way: what is planned, and when nothing more goes into a copy."""

from typing import Any

import pytest

from strait.planning.plan.planner import Proposal
from strait.planning.review.effects import effects
from strait.planning.review.withholding import unapproved_of
from strait.reasons import Reason
from unit.planning.test_plan import cluster, link, propose, publish, reasons

MASK = {"key": "sha2(key, 256)"}


def masking(**transform: Any) -> Any:
    return link(topics={"regex": [".*"], "rules": [{"match": "people", "transform": transform}]})


SOURCE, COPY = cluster("a", {"people": 2, "orders": 1}), cluster("b", {"people": 2, "orders": 1})


def copied(proposal: Proposal) -> set[str]:
    assert proposal.draft is not None
    return {topic.source for topic in proposal.draft.topics if any(slot is not None for slot in topic.slots)}


def test_the_plan_and_each_first_run_say_what_is_done_to_records() -> None:
    plan, runs = publish(propose(masking(**MASK), SOURCE, COPY))
    digests = {topic.source: topic.policy.transform_digest for topic in plan.topics}
    assert digests["orders"] == "" and len(digests["people"]) == 16
    assert {run.transform for run in runs["people", 0] + runs["people", 1]} == {digests["people"]}
    assert {run.transform for run in runs["orders", 0]} == {""}
    assert plan.transformed == {"people"} and len(plan.transforms) == 1
    assert propose(masking(**MASK), SOURCE, COPY, plan, runs).empty


def test_a_topic_into_which_nothing_went_says_how_it_goes_on() -> None:
    """Such as one whose former expression Spark refuses. It is not begun anew by itself: another version of Spark, or a host that
    has a secret's file, may not refuse it, and such an instance may be suspended."""
    plan, runs = publish(propose(masking(key="rand()"), SOURCE, COPY))
    waits = [one for one in propose(masking(**MASK), SOURCE, COPY, plan, runs).draft.waiting if one.topic == "people"]  # type: ignore[union-attr]
    assert {one.reason for one in waits} == {Reason.TRANSFORM_CHANGED}
    assert all("run `strait resolve LINK people --restart`" in one.detail for one in waits)
    written = {place: tuple(run.model_copy(update={"sequence_end": 1}) for run in held) for place, held in runs.items()}
    waits = [
        one for one in propose(masking(**MASK), SOURCE, COPY, plan, written).draft.waiting if one.topic == "people"
    ]  # type: ignore[union-attr]
    assert all("people holds records of transformation" in one.detail for one in waits)


@pytest.mark.parametrize("now", [{"key": "sha2(key, 512)"}, {"where": "true"}, None])
def test_nothing_is_added_to_records_that_were_made_in_another_way(now: dict[str, str] | None) -> None:
    """Without its rule, too: the copy would get unmasked records. Neither would a partition that is new."""
    plan, runs = publish(propose(masking(**MASK), SOURCE, COPY))
    settings = link() if now is None else masking(**now)
    changed = propose(
        settings, cluster("a", {"people": 3, "orders": 1}), cluster("b", {"people": 3, "orders": 1}), plan, runs
    )
    assert reasons(changed)["people"] == (Reason.TRANSFORM_CHANGED, (0, 1, 2))
    assert copied(changed) == {"orders"} and not changed.new
    back = propose(masking(**MASK), SOURCE, COPY, publish(changed, runs)[0], runs)
    assert copied(back) == {"orders", "people"}


def test_records_that_are_copied_as_they_are_do_not_get_masked_ones_behind_them() -> None:
    plan, runs = publish(propose(link(), SOURCE, COPY))
    changed = propose(masking(**MASK), SOURCE, COPY, plan, runs)
    assert reasons(changed)["people"] == (Reason.TRANSFORM_CHANGED, (0, 1))


def test_what_is_done_about_malformed_records_may_change() -> None:
    schema = {"format": {"value": "json", "schema": "a INT"}, "where": "v.a > 0"}
    plan, runs = publish(propose(masking(**schema), SOURCE, COPY))
    changed = propose(masking(**schema, malformed="quarantine"), SOURCE, COPY, plan, runs)
    assert changed.draft is not None and changed.draft.waiting == ()
    assert publish(changed, runs)[0].transforms == plan.transforms


def test_another_destination_topic_begins_with_the_new_transformation() -> None:
    plan, runs = publish(propose(masking(**MASK), SOURCE, COPY))
    rule = {"match": "people", "on_loss": "restart", "transform": {"key": "md5(key)"}}
    settings = link(topics={"regex": [".*"], "rules": [rule, {"match": ".*", "on_loss": "restart"}]})
    recreated = cluster("b", {"people": 2, "orders": 1}, generation="2")
    changed = propose(settings, SOURCE, recreated, plan, runs)
    assert "people" not in reasons(changed)
    assert {run.transform for run in changed.first_runs(1) if run.topic == "people"} == {
        next(topic.policy.transform_digest for topic in changed.draft.topics if topic.source == "people")  # type: ignore[union-attr]
    }


def test_a_compacted_topic_is_not_transformed() -> None:
    compacted = cluster("a", {"people": 2, "orders": 1}, **{"cleanup.policy": "compact"})
    proposal = propose(masking(**MASK), compacted, COPY)
    assert reasons(proposal) == {"people": (Reason.TRANSFORM_UNSUPPORTED, (0, 1))}


def test_a_changed_transformation_is_an_effect_that_names_its_consequence() -> None:
    plan, runs = publish(propose(masking(**MASK), SOURCE, COPY))
    settings = masking(where="CAST(key AS STRING) <> 'US'")
    changed = propose(settings, SOURCE, COPY, plan, runs)
    (effect,) = effects(settings, changed)
    assert (effect.verb, effect.subject) == ("changes", "people")
    assert "key sha2(key, 256)" in effect.detail and "where CAST(key AS STRING) <> 'US'" in effect.detail
    assert "nothing more is copied into it: copy into a new topic" in effect.detail
    assert not effects(settings, propose(settings, SOURCE, COPY, publish(changed, runs)[0], runs))


def test_without_approval_a_topic_keeps_its_transformation() -> None:
    plan, runs = publish(propose(masking(**MASK), SOURCE, COPY))
    settings = masking(key="md5(key)")
    left_out = unapproved_of(settings, propose(settings, SOURCE, COPY, plan, runs))
    assert left_out is not None and left_out.policies.keys() == {"people"}
    assert left_out.policies["people"].transform_digest == plan.topics[-1].policy.transform_digest


def test_a_change_that_keeps_its_records_names_no_new_topic() -> None:
    schema = {"format": {"value": "json", "schema": "a INT"}, "where": "v.a > 0"}
    plan, runs = publish(propose(masking(**schema), SOURCE, COPY))
    settings = masking(**schema, malformed="quarantine")
    (effect,) = effects(settings, propose(settings, SOURCE, COPY, plan, runs))
    assert effect.subject == "people" and "new topic" not in effect.detail
