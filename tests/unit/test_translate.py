"""What is told of a broker's error is short and says what it is."""

from confluent_kafka import KafkaError

from strait.errors import ClusterUnavailable, UnknownTopic
from strait.kafka.translate import describe, translate


def test_a_request_that_a_broker_shows_instead_of_a_sentence_is_not_told() -> None:
    shown = "Request Request(processor=2, connectionId=127.0.0.1:9093, envelope=Some(Request(processor=2, buffer="
    error = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, shown)
    assert describe(error) == "CLUSTER_AUTHORIZATION_FAILED: Broker: Cluster authorization failed"
    told = str(translate(error, cluster="b", doing="adding ACL x"))
    assert told.startswith(
        "cluster b: adding ACL x: CLUSTER_AUTHORIZATION_FAILED: Broker: Cluster authorization failed ("
    )


def test_a_brokers_own_sentence_is_told() -> None:
    error = KafkaError(KafkaError.POLICY_VIOLATION, "topics need\n an owner")
    assert describe(error) == "POLICY_VIOLATION: topics need an owner"


def test_a_topic_that_does_not_exist_is_told_apart_from_one_that_is_not_answered_for() -> None:
    unknown = translate(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), cluster="b", doing="looking up t-0")
    leaderless = translate(KafkaError(KafkaError.LEADER_NOT_AVAILABLE), cluster="b", doing="looking up t-0")
    assert (type(unknown), type(leaderless)) == (UnknownTopic, ClusterUnavailable)
