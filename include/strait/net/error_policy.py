"""What Kafka's error codes mean for one partition: the reason to show, and how soon to look again."""

from collections.abc import Mapping
from typing import NamedTuple

from kafka import errors

from strait.reasons import Ends, Reason

SOON_SECONDS = (0.05, 0.3)
"""A race or a leader on the move: over in a moment."""
SHORTLY_SECONDS = (0.5, 2.0)
"""The cluster is in trouble; copying goes on within seconds of its end."""
SLOW_SECONDS = (20.0, 30.0)
"""Only a person changes this; looked at now and then, so that the change is noticed without a restart."""


NOT_ANSWERED = -1
"""A reply says nothing of a partition that was asked for: Kafka's UNKNOWN_SERVER_ERROR."""


class Answer(NamedTuple):
    """What to do about an error: look again after a time in ``wait_seconds``; ``refresh`` the metadata first."""

    reason: Reason
    wait_seconds: tuple[float, float]
    refresh: bool = False


def _moved(reason: Reason) -> Answer:
    return Answer(reason, SOON_SECONDS, refresh=True)


def wait_for(reason: Reason) -> tuple[float, float]:
    """How long to wait before looking again at a partition that waits for this reason."""
    return SLOW_SECONDS if reason.ends is Ends.BY_DECISION else SHORTLY_SECONDS


FETCH = {
    1: Answer(Reason.SOURCE_DATA_LOST, SHORTLY_SECONDS),  # OFFSET_OUT_OF_RANGE; which end is looked up
    2: Answer(Reason.CORRUPT_BATCH, SHORTLY_SECONDS),
    3: _moved(Reason.SOURCE_MISSING),
    5: _moved(Reason.SOURCE_LEADERLESS),
    6: _moved(Reason.SOURCE_LEADERLESS),
    9: _moved(Reason.SOURCE_LEADERLESS),
    29: Answer(Reason.SOURCE_DENIED, SHORTLY_SECONDS),
    56: _moved(Reason.SOURCE_LEADERLESS),
    74: _moved(Reason.SOURCE_LEADERLESS),
    75: _moved(Reason.SOURCE_LEADERLESS),
    78: _moved(Reason.SOURCE_LEADERLESS),
    100: _moved(Reason.SOURCE_MISSING),
    103: _moved(Reason.SOURCE_MISSING),
}

PRODUCE = {
    2: Answer(Reason.CORRUPT_BATCH, SHORTLY_SECONDS),
    3: _moved(Reason.DESTINATION_MISSING),
    5: _moved(Reason.DESTINATION_LEADERLESS),
    6: _moved(Reason.DESTINATION_LEADERLESS),
    7: Answer(Reason.DESTINATION_NOT_ENOUGH_REPLICAS, SHORTLY_SECONDS, refresh=True),
    9: _moved(Reason.DESTINATION_LEADERLESS),
    10: Answer(Reason.BATCH_TOO_LARGE, SHORTLY_SECONDS),
    18: Answer(Reason.BATCH_TOO_LARGE, SHORTLY_SECONDS),
    19: Answer(Reason.DESTINATION_NOT_ENOUGH_REPLICAS, SHORTLY_SECONDS),
    20: Answer(Reason.DESTINATION_NOT_ENOUGH_REPLICAS, SHORTLY_SECONDS),
    29: Answer(Reason.DESTINATION_DENIED, SHORTLY_SECONDS),
    31: Answer(Reason.DESTINATION_DENIED, SHORTLY_SECONDS),
    32: Answer(Reason.BATCH_REFUSED, SLOW_SECONDS),
    56: Answer(Reason.DESTINATION_DISK, SHORTLY_SECONDS, refresh=True),
    74: _moved(Reason.DESTINATION_LEADERLESS),
    75: _moved(Reason.DESTINATION_LEADERLESS),
    78: _moved(Reason.DESTINATION_NOT_ENOUGH_REPLICAS),  # OFFSET_NOT_AVAILABLE: a new leader waits for its followers
    87: Answer(Reason.BATCH_REFUSED, SLOW_SECONDS),
    100: _moved(Reason.DESTINATION_MISSING),
    103: _moved(Reason.DESTINATION_MISSING),
}

CONFLICTS = frozenset({45, 46, 59})
"""Somebody of this link wrote there meanwhile, or the leader has not caught up: look up the position, go on from it."""


def answer(table: Mapping[int, Answer], code: int, otherwise: Reason) -> Answer:
    """The answer to a code; an unknown one is shown as ``otherwise`` and tried again shortly."""
    return table.get(code) or Answer(otherwise, SHORTLY_SECONDS, refresh=True)


def name(code: int) -> str:
    """Kafka's name of an error code."""
    error = errors.for_code(code)
    return str(getattr(error, "message", "") or error.__name__)
