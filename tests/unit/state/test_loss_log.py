"""The loss log in memory: each loss once, of very many the newest, and who has taken note of which."""

from typing import Any

import pytest

from strait.state.codec import Unreadable, decode, encode
from strait.state.schema import Loss, LossAcknowledgement
from strait.state.view import LossLog, Place, StateView


def loss(at_ms: int, **fields: Any) -> Loss:
    given: dict[str, Any] = {"partition": 0, "from_offset": 3, "to_offset": 9, "action": "halted"} | fields
    return Loss(
        link="l",
        topic=given.pop("topic", "t"),
        side="source",
        cause="source_data_lost",
        at_ms=at_ms,
        detail="",
        **given,
    )


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


def said(count: int, topic: str = "", by: str = "ann", at_ms: int = 50) -> LossAcknowledgement:
    return LossAcknowledgement(link="l", topic=topic, count=count, by=by, at_ms=at_ms)


def log_of(*written: Loss | LossAcknowledgement, most: int | None = None) -> LossLog:
    log = LossLog(most)
    for one in written:
        log.take(one) if isinstance(one, Loss) else log.acknowledge(one)
    return log


def noticed(log: LossLog) -> list[str | None]:
    return [one and one.by for one in log.acknowledgements]


X, Y = (loss(1, topic="x"), loss(2, topic="x", partition=1), loss(3, topic="x", partition=2)), loss(4, topic="y")


@pytest.mark.parametrize(
    ("written", "by"),
    [
        ((*X, said(3)), ["ann"] * 3),
        ((*X, said(2)), ["ann", "ann", None]),  # the third was written after the operator had looked
        ((X[0], said(3), *X[1:]), ["ann", None, None]),  # no acknowledgement covers what comes after it
        ((X[0], said(1), X[0], *X[1:]), ["ann", None, None]),  # told again
        ((X[0], Y, X[1], said(1, "x")), ["ann", None, None]),
        ((X[0], Y, X[1], said(2, "x")), ["ann", None, "ann"]),
        ((*X, said(1), said(3, by="bob")), ["ann", "bob", "bob"]),
        ((*X, said(3), said(1, by="bob")), ["ann"] * 3),
        ((*X, said(3, at_ms=60), said(1, "x", "bob")), ["bob", "ann", "ann"]),  # who was first
    ],
)
def test_an_acknowledgement_covers_as_many_losses_as_its_operator_has_seen(written: Any, by: list[str | None]) -> None:
    assert noticed(log_of(*written)) == by


def test_of_very_many_losses_numbers_go_on_although_the_first_are_not_kept() -> None:
    many = [loss(number, from_offset=number, to_offset=number + 1) for number in range(20)]
    assert noticed(log_of(*many, said(18), most=5)) == ["ann"] * 3 + [None] * 2
    assert noticed(log_of(*many, said(9), most=5)) == [None] * 5


def test_the_losses_topic_has_both_and_an_acknowledgement_of_another_link_is_trouble() -> None:
    view = StateView("l")
    for offset, one in enumerate((X[0], said(1))):
        assert view.apply("losses", *encode(one), Place("strait.l.losses", 0, offset))
    assert noticed(view.losses) == ["ann"] and view.trouble("losses") is None
    other = said(1).model_copy(update={"link": "m"})
    view.apply("losses", *encode(other), Place("strait.l.losses", 0, 2))
    assert "it is a record of link 'm'" in str(view.trouble("losses"))
    with pytest.raises(Unreadable, match="does not fit its value"):
        decode(LossAcknowledgement, encode(said(1, "x"))[0], encode(said(1))[1])
