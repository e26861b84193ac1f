"""State topics are kept as safely as what they describe, and small; what an operator has set stays and is named."""

from strait.config.naming import map_topic, plan_topic, reports_topic
from strait.model import TopicAcl, TopicFacts
from strait.planning.risks.state_safety import state_changes, state_risks, state_writers, wanted_replicas


def state_topic(name: str, replicas: int, *, own: bool = False, **configs: str) -> dict[str, TopicFacts]:
    values = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"} | configs
    facts = TopicFacts(
        topic=name, topic_id="x", partitions=1, configs=values, topic_configs=values if own else {}, replicas=replicas
    )
    return {name: facts}


def test_what_nobody_has_set_is_set_by_the_number_of_replicas() -> None:
    topics = state_topic(map_topic("a"), 3) | state_topic(plan_topic("a"), 1)
    assert state_changes("a", topics) == {
        map_topic("a"): {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
        plan_topic("a"): {"unclean.leader.election.enable": "false"},
    }


def test_what_an_operator_has_set_stays_and_is_a_risk_with_the_command() -> None:
    topics = state_topic(map_topic("a"), 3, own=True)
    assert state_changes("a", topics) == {}
    risks = state_risks("a", topics, 3)
    assert [risk.code for risk in risks] == ["state_min_insync", "state_unclean_election"]
    assert all("kafka-configs.sh" in risk.detail and map_topic("a") in risk.detail for risk in risks)


def test_fewer_replicas_than_the_copies_have_are_a_risk() -> None:
    topics = state_topic(map_topic("a"), 1)
    (risk,) = state_risks("a", topics, wanted_replicas(None, [state_topic("t", 3)["t"]]))
    assert (risk.code, "1 replica, 3 are needed" in risk.detail) == ("state_replicas", True)


_BY_DEFAULT = {
    "segment.ms": "604800000",
    "segment.bytes": "1073741824",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "9223372036854775807",
    "delete.retention.ms": "86400000",
}
_SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


def test_what_lets_a_state_topic_grow_is_set() -> None:
    names = map_topic("a"), reports_topic("a")
    topics = {name: topic for one in names for name, topic in state_topic(one, 3, **_SAFE | _BY_DEFAULT).items()}
    changes = state_changes("a", topics)
    assert set(changes[map_topic("a")]) == set(_BY_DEFAULT) - {"min.compaction.lag.ms"}
    assert set(changes[reports_topic("a")]) == {"segment.ms", "segment.bytes"}
    smaller = {name: topic for one in names for name, topic in state_topic(one, 3, **_SAFE | changes[one]).items()}
    assert state_changes("a", smaller) == {}


def test_segments_that_an_operator_has_set_stay_and_are_a_risk_with_the_command() -> None:
    topics = state_topic(map_topic("a"), 3, own=True, **_SAFE | {"segment.ms": "604800000", "segment.bytes": "1048576"})
    assert state_changes("a", topics) == {}
    (risk,) = state_risks("a", topics, 3)
    assert risk.code == "state_growth"
    assert f"--entity-name {map_topic('a')} --add-config segment.ms=600000" in risk.detail


def may(principal: str, name: str, operation: str = "WRITE", pattern: str = "LITERAL", rule: str = "ALLOW") -> TopicAcl:
    return TopicAcl(name, pattern, principal, "*", operation, rule)


def test_who_else_may_write_to_what_decides_what_is_copied_is_a_risk() -> None:
    own = [may("User:control", "strait.a.plan"), may("User:slots", "strait.a.map")]
    assert state_writers("a", own) == ()
    assert state_writers("a", [*own, may("User:x", "strait.a.reports"), may("User:y", "strait.a.plan", "READ")]) == ()
    assert state_writers("a", [*own, may("User:z", "strait.a.plan", rule="DENY")]) == ()
    (risk,) = state_writers("a", [*own, may("User:x", "strait.", "ALL", "PREFIXED")])
    assert risk.code == "state_writers"
    assert "may be written by User:control, User:slots, User:x" in risk.detail
    (risk,) = state_writers("a", [may("User:*", "*", "ALL")])
    assert "User:*" in risk.detail
