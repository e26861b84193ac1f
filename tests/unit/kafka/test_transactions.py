"""A producer that another one has fenced says so, in whichever way confluent-kafka raises it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from strait.errors import ClusterError, PlanConflict
from strait.kafka.clients import Watch
from strait.kafka.transactions import TransactionalWriter

FENCED = KafkaException(KafkaError(KafkaError._FENCED))


def writer(aborting: Exception | None) -> TransactionalWriter:
    """Of a producer of which one step fails with a fatal error that was lost, and the next with this one."""

    def fail(error: Exception | None) -> None:
        if error is not None:
            raise error

    producer = SimpleNamespace(
        begin_transaction=lambda: None,
        flush=lambda _: fail(SystemError("returned NULL without setting an exception")),
        abort_transaction=lambda _: fail(aborting),
        poll=lambda _: 0,
    )
    return TransactionalWriter(cast(Any, producer), Watch("b"), lambda: 1.0)


def test_a_fatal_error_that_was_lost_is_told_by_the_next_step() -> None:
    with pytest.raises(PlanConflict), writer(aborting=FENCED).transaction("publishing"):
        pass


def test_one_that_nothing_explains_is_an_error_of_the_cluster() -> None:
    with (
        pytest.raises(ClusterError, match="failed for good"),
        writer(aborting=None).transaction("publishing"),
    ):
        pass


def test_a_fatal_error_inside_another_is_the_one_that_counts() -> None:
    def step(_: float) -> None:
        raise SystemError("returned a result with an exception set") from FENCED

    with pytest.raises(PlanConflict):
        writer(aborting=None).step("publishing", step)
