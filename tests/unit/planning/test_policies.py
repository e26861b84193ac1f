"""Rules: the first that matches counts, and what the plan says of budgets adds up."""

from typing import Any

import pytest

from strait.config.links import Link, Topics
from strait.model import TopicFacts
from strait.planning.topics.policies import policy_of, start_of
from strait.state.schema import TopicPolicy


def topics(**settings: Any) -> Topics:
    return Topics.model_validate(settings, strict=False)


def facts(topic: str = "orders", **configs: str) -> TopicFacts:
    return TopicFacts(topic, "id", 1, configs={name.replace("_", "."): value for name, value in configs.items()})


def test_without_rules_everything_halts_and_nothing_is_changed() -> None:
    found = policy_of(topics(), facts(), facts(max_message_bytes="2000000"))
    assert found == TopicPolicy(max_message_bytes=2_000_000)


def test_the_first_rule_that_matches_the_whole_name_counts_alone() -> None:
    rules = [
        {"match": "order", "on_loss": "restart"},
        {"match": "orders", "on_refused": "quarantine"},
        {"match": ".*", "on_loss": "continue", "on_foreign": "continue"},
    ]
    settings = topics(rules=rules)
    found = policy_of(settings, facts("orders"), facts())
    assert (found.on_loss, found.on_foreign, found.on_refused) == ("halt", "halt", "quarantine")
    assert policy_of(settings, facts("clicks"), facts()).on_loss == "continue"


def test_what_the_slots_need_to_know_of_both_topics_is_in_the_policy() -> None:
    stamped = {"message_timestamp_type": "LogAppendTime"}
    found = policy_of(topics(), facts(cleanup_policy="compact,delete", **stamped), facts(cleanup_policy="compact"))
    assert (found.source_compacted, found.source_append_time, found.destination_append_time) == (True, True, False)
    found = policy_of(topics(), facts(), facts(**stamped))
    assert (found.source_compacted, found.source_append_time, found.destination_append_time) == (False, False, True)


@pytest.mark.parametrize(("topic", "start"), [("new", "latest"), ("old", 5), ("other", "earliest")])
def test_a_rule_without_a_start_leaves_it_to_the_link(topic: str, start: Any) -> None:
    rules = [{"match": "new", "start": "latest"}, {"match": "old"}]
    settings = {"source": "a", "destination": "b", "topics": {"rules": rules}, "start": 5}
    link = Link.model_validate(settings | ({"start": "earliest"} if topic == "other" else {}), strict=False)
    assert start_of(link, topic) == start
