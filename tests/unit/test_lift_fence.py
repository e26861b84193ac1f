"""Of the rules in a failover's record only those are removed that a fence consists of: a foreign client may have written it."""

from types import SimpleNamespace
from typing import Any

from strait.control.failover.checks import lift_fence
from strait.model import TopicAcl
from strait.state.schema import GivenAcl

FENCE = TopicAcl("shop.orders", "LITERAL", "User:shop", "*", "WRITE", "DENY")
ALLOWED = TopicAcl("shop.orders", "LITERAL", "User:shop", "*", "WRITE", "ALLOW")
SECRET = TopicAcl("payroll", "LITERAL", "User:guest", "*", "READ", "DENY")


class Source:
    """A cluster's ACLs."""

    def __init__(self, *rules: TopicAcl) -> None:
        self.rules = set(rules)

    def acls(self) -> frozenset[TopicAcl]:
        return frozenset(self.rules)

    def remove_acls_each(self, rules: list[TopicAcl]) -> SimpleNamespace:
        self.rules -= set(rules)
        return SimpleNamespace(or_raise=lambda: None)


class Turn:
    """The record of a failover that has these rules as its fence."""

    def __init__(self, *rules: TopicAcl) -> None:
        self.record: Any = SimpleNamespace(fence=tuple(GivenAcl(**rule._asdict()) for rule in rules))

    def keep(self, *, fence: tuple[GivenAcl, ...]) -> None:
        self.record.fence = fence


def lifted(source: Source, turn: Turn) -> int:
    look: Any = SimpleNamespace(source=source)
    given: Any = turn
    return lift_fence(look, given, turn.record.fence)


def test_the_rules_of_a_fence_are_removed_and_forgotten():
    source, turn = Source(FENCE, ALLOWED), Turn(FENCE)
    assert lifted(source, turn) == 1
    assert source.rules == {ALLOWED}
    assert turn.record.fence == ()


def test_other_rules_that_a_record_names_are_left():
    source, turn = Source(FENCE, ALLOWED, SECRET), Turn(FENCE, ALLOWED, SECRET)
    assert lifted(source, turn) == 1
    assert source.rules == {ALLOWED, SECRET}
