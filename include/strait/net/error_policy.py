"""The meaning of Kafka's error codes for one partition: the reason to show, and the time until the next attempt."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from kafka import errors

from strait.reasons import Kind, Reason
from strait.wire import error_codes

SOON_SECONDS = (0.05, 0.3)
"""For a race or a leader change, which is over in a moment."""
SHORTLY_SECONDS = (0.5, 2.0)
"""For a problem of the cluster; copying resumes within seconds of its end."""
SLOW_SECONDS = (20.0, 30.0)
"""For a condition that only an operator can change; checked again, so that the change takes effect without a
restart."""


_FETCHED_AGAIN = frozenset({Reason.CORRUPT_BATCH, Reason.TRANSFORM_SECRET_MISSING})
"""Batches are fetched again at each attempt, so there is not one every second."""
NOT_ANSWERED = error_codes.UNKNOWN_SERVER_ERROR
"""The reply has no entry for a partition that was requested."""


class Answer(NamedTuple):
    """How to handle an error: try again after a time between the two in ``wait_seconds``; ``refresh``: request metadata
    first."""

    reason: Reason
    wait_seconds: tuple[float, float]
    refresh: bool = False


def _moved(reason: Reason) -> Answer:
    return Answer(reason, SOON_SECONDS, refresh=True)


def wait_for(reason: Reason) -> tuple[float, float]:
    """Return the shortest and longest time, in seconds, before the next attempt for a partition that waits for this
    reason."""
    slow = reason.kind is not Kind.RETRIES or reason in _FETCHED_AGAIN
    return SLOW_SECONDS if slow else SHORTLY_SECONDS


FETCH = {
    error_codes.OFFSET_OUT_OF_RANGE: Answer(Reason.SOURCE_DATA_LOST, SHORTLY_SECONDS),  # which end is looked up
    error_codes.CORRUPT_MESSAGE: Answer(Reason.CORRUPT_BATCH, SHORTLY_SECONDS),
    error_codes.UNKNOWN_TOPIC_OR_PARTITION: _moved(Reason.SOURCE_MISSING),
    error_codes.LEADER_NOT_AVAILABLE: _moved(Reason.SOURCE_LEADERLESS),
    error_codes.NOT_LEADER_OR_FOLLOWER: _moved(Reason.SOURCE_LEADERLESS),
    error_codes.REPLICA_NOT_AVAILABLE: _moved(Reason.SOURCE_LEADERLESS),
    error_codes.TOPIC_AUTHORIZATION_FAILED: Answer(Reason.SOURCE_DENIED, SHORTLY_SECONDS),
    error_codes.KAFKA_STORAGE_ERROR: _moved(Reason.SOURCE_LEADERLESS),
    error_codes.FENCED_LEADER_EPOCH: _moved(Reason.SOURCE_LEADERLESS),
    error_codes.UNKNOWN_LEADER_EPOCH: _moved(Reason.SOURCE_LEADERLESS),
    error_codes.OFFSET_NOT_AVAILABLE: _moved(Reason.SOURCE_LEADERLESS),
    error_codes.UNKNOWN_TOPIC_ID: _moved(Reason.SOURCE_MISSING),
    error_codes.INCONSISTENT_TOPIC_ID: _moved(Reason.SOURCE_MISSING),
}

PRODUCE = {
    error_codes.CORRUPT_MESSAGE: Answer(Reason.CORRUPT_BATCH, SHORTLY_SECONDS),
    error_codes.UNKNOWN_TOPIC_OR_PARTITION: _moved(Reason.DESTINATION_MISSING),
    error_codes.LEADER_NOT_AVAILABLE: _moved(Reason.DESTINATION_LEADERLESS),
    error_codes.NOT_LEADER_OR_FOLLOWER: _moved(Reason.DESTINATION_LEADERLESS),
    error_codes.REQUEST_TIMED_OUT: Answer(Reason.DESTINATION_NOT_ENOUGH_REPLICAS, SHORTLY_SECONDS, refresh=True),
    error_codes.REPLICA_NOT_AVAILABLE: _moved(Reason.DESTINATION_LEADERLESS),
    error_codes.MESSAGE_TOO_LARGE: Answer(Reason.BATCH_TOO_LARGE, SHORTLY_SECONDS),
    error_codes.RECORD_LIST_TOO_LARGE: Answer(Reason.BATCH_TOO_LARGE, SHORTLY_SECONDS),
    error_codes.NOT_ENOUGH_REPLICAS: Answer(Reason.DESTINATION_NOT_ENOUGH_REPLICAS, SHORTLY_SECONDS),
    error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Answer(Reason.DESTINATION_NOT_ENOUGH_REPLICAS, SHORTLY_SECONDS),
    error_codes.TOPIC_AUTHORIZATION_FAILED: Answer(Reason.DESTINATION_DENIED, SHORTLY_SECONDS),
    error_codes.CLUSTER_AUTHORIZATION_FAILED: Answer(Reason.DESTINATION_DENIED, SHORTLY_SECONDS),
    error_codes.INVALID_TIMESTAMP: Answer(Reason.BATCH_REFUSED, SLOW_SECONDS),
    error_codes.KAFKA_STORAGE_ERROR: Answer(Reason.DESTINATION_DISK, SHORTLY_SECONDS, refresh=True),
    error_codes.FENCED_LEADER_EPOCH: _moved(Reason.DESTINATION_LEADERLESS),
    error_codes.UNKNOWN_LEADER_EPOCH: _moved(Reason.DESTINATION_LEADERLESS),
    error_codes.OFFSET_NOT_AVAILABLE: _moved(
        Reason.DESTINATION_NOT_ENOUGH_REPLICAS
    ),  # a new leader waits for its followers
    error_codes.INVALID_RECORD: Answer(Reason.BATCH_REFUSED, SLOW_SECONDS),
    error_codes.UNKNOWN_TOPIC_ID: _moved(Reason.DESTINATION_MISSING),
    error_codes.INCONSISTENT_TOPIC_ID: _moved(Reason.DESTINATION_MISSING),
}


class Away(Enum):
    """Why a broker cannot be queried."""

    UNREACHABLE = "nobody answers at its address"
    OTHER_CLUSTER = "another cluster answers at its address"
    UNSUPPORTED = "it lacks a request that is needed"


_AWAY = {
    Reason.SOURCE_UNREACHABLE: {
        Away.OTHER_CLUSTER: Reason.SOURCE_OTHER_CLUSTER,
        Away.UNSUPPORTED: Reason.SOURCE_UNSUPPORTED,
    },
    Reason.DESTINATION_UNREACHABLE: {
        Away.OTHER_CLUSTER: Reason.DESTINATION_OTHER_CLUSTER,
        Away.UNSUPPORTED: Reason.DESTINATION_UNSUPPORTED,
    },
}
AWAY = frozenset(_AWAY).union(*(reasons.values() for reasons in _AWAY.values()))
"""Reasons for which the cluster cannot be queried; its next answer ends them."""

CONFLICTS = frozenset(
    {
        error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
        error_codes.DUPLICATE_SEQUENCE_NUMBER,
        error_codes.UNKNOWN_PRODUCER_ID,
    }
)
"""Another instance of this link has written there meanwhile, or the leader has not caught up: query the position and
continue from it."""


def answer(table: Mapping[int, Answer], code: int, otherwise: Reason = Reason.UNEXPECTED_ERROR) -> Answer:
    """Return how to handle a code; one that is not in the table is retried shortly. ``otherwise``: the reason if the
    reply has no entry for the partition, or has no error and no data."""
    reason = otherwise if code in (NOT_ANSWERED, 0) else Reason.UNEXPECTED_ERROR
    return table.get(code) or Answer(reason, SHORTLY_SECONDS, refresh=True)


def away(reason: Reason, why: Away) -> Reason:
    """Return the reason if a cluster cannot be queried: ``reason``, which means unreachable, or the one that matches
    ``why``."""
    return _AWAY[reason].get(why, reason)


def name(code: int) -> str:
    """Return Kafka's name of an error code."""
    error = errors.for_code(code)
    return str(getattr(error, "message", "") or error.__name__)
