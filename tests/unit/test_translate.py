"""What is told of a broker's error is short and says what it is."""

from confluent_kafka import KafkaError

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
