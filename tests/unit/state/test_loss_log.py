"""The loss log in memory: each loss once, and of very many the newest."""

from typing import Any

from strait.state.schema import Loss
from strait.state.view import LossLog


def loss(at_ms: int, **fields: Any) -> Loss:
    given = {"partition": 0, "from_offset": 3, "to_offset": 9, "action": "halted"} | fields
    return Loss(link="l", topic="t", side="source", cause="source_data_lost", at_ms=at_ms, detail="", **given)


def test_a_loss_that_is_told_twice_is_there_once_as_it_was_told_first() -> None:
    log = LossLog()
    for told in (loss(1), loss(2, partition=1), loss(3), loss(4, action="continued")):
        log.take(told)
    assert log.newest == (loss(1), loss(2, partition=1), loss(4, action="continued"))
    assert log.counts == {("source_data_lost", "halted"): 2, ("source_data_lost", "continued"): 1}


def test_of_very_many_the_newest_are_kept_and_all_are_counted() -> None:
    log = LossLog(most=10)
    for number in range(500):
        log.take(loss(number, from_offset=number, to_offset=number + 1))
        log.take(loss(number, from_offset=0, to_offset=1))  # by a slot that starts again and again
    assert [one.at_ms for one in log.newest] == list(range(490, 500))
    assert sum(log.counts.values()) == 500
