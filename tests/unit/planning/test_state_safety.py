"""State topics are kept as safely as what they describe; what an operator has set stays and is named."""

from strait.config.naming import map_topic, plan_topic
from strait.model import TopicFacts
from strait.planning.risks.state_safety import state_changes, state_risks, wanted_replicas


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
    assert (risk.code, "1 replicas, 3 are needed" in risk.detail) == ("state_replicas", True)
