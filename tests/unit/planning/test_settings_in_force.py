"""The plan says what it was made of, so that whoever plans next without Airflow does not undo what is edited there."""

import json

import pytest

from strait.config.links import Link, parse_topics, with_origin, with_topics
from strait.config.validation import validated
from strait.errors import ConfigError
from strait.planning.plan.draft import Draft
from strait.planning.plan.settings import in_force, planned_settings
from strait.state.schema import Plan

VARIABLE = "Airflow Variable strait_topics_shop"
TOPICS = {
    "include": ["orders"],
    "regex": ["pay.*"],
    "rules": [{"match": "orders", "start": "latest", "class": "bulk", "naming": {"policy": "prefix", "prefix": "x."}}],
    "budget": {"classes": {"bulk": 5}},
}


def link(**settings: object) -> Link:
    return validated(Link, {"source": "a", "destination": "b", "topics": {"include": ["old"]}} | settings, "test")


def steered(base: Link) -> Link:
    return with_topics(base, parse_topics(json.dumps(TOPICS), where=VARIABLE), where=VARIABLE)


def plan_of(made_of: Link) -> Plan:
    draft = Draft(1, False, (), (), (), settings=planned_settings(made_of))
    return draft.as_plan(link="shop", group="default", version=7, producer_id=1, now_ms=0)


def masked(reference: str, **given: object) -> dict[str, object]:
    transform = {"key": "sha2(secret.salt, 256)", "secrets": {"salt": reference}}
    return {"include": ["old"], "rules": [{"match": "old"}, {"match": "ol.", "transform": transform}]} | given


@pytest.mark.parametrize(
    "reference",
    ["${directory:/etc:shadow}", "${directory:/run/secrets:kafka-password}", "${directory:/run/secrets/..:salt}"],
)
def test_whoever_edits_topics_has_no_file_of_the_host_written_to_them(reference: str) -> None:
    given = parse_topics(json.dumps(masked(reference)), where=VARIABLE)
    for own in (link(), link(topics=masked("${directory:/run/secrets:salt}"))):
        with pytest.raises(ConfigError) as refused:
            with_topics(own, given, where=VARIABLE)
        assert refused.value.problems == (
            "rules.1.transform.secrets.salt: the links file gives this link no such secret",
        )


def test_edited_topics_may_use_the_secrets_of_the_links_file() -> None:
    salt = "${directory:/run/secrets:salt}"
    given = parse_topics(json.dumps(masked(salt, include=["old", "older"])), where=VARIABLE)
    own = link(topics=masked(salt))
    assert with_topics(own, given, where=VARIABLE).topics == given
    assert in_force(own, plan_of(with_topics(own, given, where=VARIABLE))).link.topics == given


def test_topics_of_a_variable_are_in_force_for_whoever_has_the_file_alone() -> None:
    base = link()
    found = in_force(base, plan_of(steered(base)))
    assert found.elsewhere == VARIABLE
    assert found.link.topics == steered(base).topics
    assert (found.version, found.same_topics, found.same_others) == (7, False, True)
    assert planned_settings(found.link) == planned_settings(steered(base))  # planning again with them changes nothing


def test_topics_of_the_links_file_are_edited_there() -> None:
    edited = link(topics={"include": ["old", "new"]})
    found = in_force(edited, plan_of(link()))
    assert found.elsewhere == ""
    assert found.link == edited
    assert (found.same_topics, found.same_others) == (False, True)


def test_other_settings_are_compared() -> None:
    assert not in_force(link(ledger_seconds=60), plan_of(link())).same_others
    same = in_force(link(), plan_of(link()))
    assert same.same_others
    assert same.same_topics


def test_a_connection_is_named_and_nothing_of_it() -> None:
    connected = with_origin(link(), "a", "Airflow Connection strait_a")
    settings = planned_settings(connected)
    assert settings.origins == {"a": "Airflow Connection strait_a"}
    assert settings.topics == ""
    found = in_force(link(), plan_of(connected))
    assert found.elsewhere == ""
    assert planned_settings(found.link) == settings  # planning again without the Connection changes nothing


def test_without_a_plan_that_says_it_the_file_is_all() -> None:
    old = Draft(1, False, (), (), ()).as_plan(link="shop", group="default", version=3, producer_id=1, now_ms=0)
    for plan, version in ((None, 0), (old, 3)):
        found = in_force(link(), plan)
        assert (found.settings, found.link, found.version) == (None, link(), version)


def test_topics_in_force_that_name_a_task_group_of_nobody_are_refused_unless_those_of_the_file_are_wanted() -> None:
    groups = {"default": {}, "big": {}}
    topics = parse_topics('{"rules": [{"match": "x", "group": "big"}]}', where=VARIABLE)
    made_of = with_topics(link(groups=groups), topics, where=VARIABLE)
    found = in_force(link(), plan_of(made_of))
    assert (found.elsewhere, found.same_topics) == (VARIABLE, False)
    with pytest.raises(ConfigError, match="no task group 'big'"):
        _ = found.link
