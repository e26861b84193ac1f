"""An error that Strait does not handle has a reason of its own, and is retried."""

import pytest

from strait.net import error_policy
from strait.reasons import Reason
from strait.wire import error_codes

UNHANDLED = 42  # INVALID_REQUEST, which neither table has


@pytest.mark.parametrize("table", [error_policy.FETCH, error_policy.PRODUCE])
@pytest.mark.parametrize("code", [UNHANDLED, error_codes.UNKNOWN_SERVER_ERROR])
def test_an_unhandled_error_is_unexpected_and_retried(table: dict[int, error_policy.Answer], code: int) -> None:
    found = error_policy.answer(table, code)
    assert found == error_policy.Answer(Reason.UNEXPECTED_ERROR, error_policy.SHORTLY_SECONDS, refresh=True)


def test_a_look_up_that_gets_no_answer_keeps_the_reason_of_its_side() -> None:
    table, side = error_policy.PRODUCE, Reason.DESTINATION_UNREACHABLE
    assert error_policy.answer(table, error_policy.NOT_ANSWERED, side).reason is side
    assert error_policy.answer(table, UNHANDLED, side).reason is Reason.UNEXPECTED_ERROR


def test_a_corrupt_batch_is_not_fetched_every_second() -> None:
    assert error_policy.wait_for(Reason.CORRUPT_BATCH) == error_policy.SLOW_SECONDS
    assert error_policy.wait_for(Reason.SOURCE_LEADERLESS) == error_policy.SHORTLY_SECONDS
