"""What Kafka's error codes mean for one partition: the reason to show, and how soon to look again."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from kafka import errors

from strait.reasons import Kind, Reason
from strait.wire import error_codes

SOON_SECONDS = (0.05, 0.3)
"""A race or a leader on the move: over in a moment."""
SHORTLY_SECONDS = (0.5, 2.0)
"""The cluster has a problem; copying resumes within seconds of its end."""
SLOW_SECONDS = (20.0, 30.0)
"""Only an operator changes this; checked again, so that the change takes effect without a restart."""


NOT_ANSWERED = error_codes.UNKNOWN_SERVER_ERROR
"""A reply says nothing of a partition that was asked for."""


class Answer(NamedTuple):
    """What to do about an error: look again after a time in ``wait_seconds``; ``refresh`` the metadata first."""

    reason: Reason
    wait_seconds: tuple[float, float]
    refresh: bool = False


def _moved(reason: Reason) -> Answer:
    return Answer(reason, SOON_SECONDS, refresh=True)


def wait_for(reason: Reason) -> tuple[float, float]:
    """How long to wait before looking again at a partition that waits for this reason."""
    # A corrupt batch is fetched whole each time, so it is not fetched every second.
    slow = reason.kind is not Kind.RETRIES or reason is Reason.CORRUPT_BATCH
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
    """Why a broker cannot be asked."""

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
"""The cluster cannot be asked: over with the next answer."""

CONFLICTS = frozenset(
    {
        error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
        error_codes.DUPLICATE_SEQUENCE_NUMBER,
        error_codes.UNKNOWN_PRODUCER_ID,
    }
)
"""Somebody of this link wrote there meanwhile, or the leader has not caught up: look up the position, go on from it."""


def answer(table: Mapping[int, Answer], code: int, otherwise: Reason = Reason.UNEXPECTED_ERROR) -> Answer:
    """The answer to a code; one that is not in the table is retried shortly. ``otherwise``: the reason if the reply says
    nothing about the partition, or has no error and no data."""
    reason = otherwise if code in (NOT_ANSWERED, 0) else Reason.UNEXPECTED_ERROR
    return table.get(code) or Answer(reason, SHORTLY_SECONDS, refresh=True)


def away(reason: Reason, why: Away) -> Reason:
    """The reason if a cluster cannot be asked: ``reason``, which says that it is unreachable, or the one that fits."""
    return _AWAY[reason].get(why, reason)


def name(code: int) -> str:
    """Kafka's name of an error code."""
    error = errors.for_code(code)
    return str(getattr(error, "message", "") or error.__name__)
