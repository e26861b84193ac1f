"""Which of librdkafka's errors is told as the cause of a failed call."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from strait.errors import ClusterUnavailable, LoginRejected, StraitError
from strait.kafka.clients import Watch

FAILED = KafkaException(KafkaError(KafkaError._TRANSPORT, "Failed to get metadata"))
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


@pytest.mark.parametrize(
    ("reported", "kind", "told"),
    [
        (KafkaError(KafkaError._TRANSPORT, "h:1: Connection refused"), ClusterUnavailable, "h:1: Connection refused"),
        (KafkaError(KafkaError._AUTHENTICATION, "wrong password"), LoginRejected, "wrong password"),
    ],
)
def test_a_cause_is_told_however_often_all_brokers_are_reported_to_be_down(
    reported: KafkaError, kind: type[StraitError], told: str
) -> None:
    watch = Watch("a")
    for error in (reported, *[DOWN] * 100):
        watch(error)
    error = watch.translate(FAILED, "connecting")
    assert isinstance(error, kind)
    assert told in str(error)


def test_without_a_cause_the_call_s_own_error_is_told() -> None:
    watch = Watch("a")
    watch(DOWN)
    assert "Failed to get metadata" in str(watch.translate(FAILED, "connecting"))
