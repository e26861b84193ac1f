"""Rights on copies: what follows from the source's rules, what never does, and what is taken away again."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.model import ClusterFacts, TopicAcl, TopicFacts
from strait.planning.topic_sync.acls import acl_changes, still_given
from strait.planning.topic_sync.actions import AllowAcl, WithdrawAcl, allowed, withdrawn


class Changes(NamedTuple):
    add: tuple[TopicAcl, ...] = ()
    remove: tuple[TopicAcl, ...] = ()


HOMES = {"orders": "a.orders", "orders-new": "a.orders-new", "clicks": "a.clicks"}


def acl(name: str = "orders", operation: str = "READ", permission: str = "ALLOW", pattern: str = "LITERAL") -> TopicAcl:
    return TopicAcl(name, pattern, "User:ann", "*", operation, permission)


def cluster(topics: Any, acls: Any) -> ClusterFacts:
    told = None if acls is None else frozenset(acls)
    return ClusterFacts("x", "id", {name: TopicFacts(name, name, 1) for name in topics}, told)


def changes(
    of_source: Any, of_destination: Any = (), given_before: Any = (), remove: bool = False, more: Any = ()
) -> Changes:
    source, destination = cluster(HOMES, of_source), cluster([*HOMES.values(), *more], of_destination)
    found = acl_changes(HOMES, source, destination, given_before, remove=remove)
    return Changes(allowed(found), withdrawn(found))


def test_a_rule_about_a_topic_is_one_about_its_copy() -> None:
    assert changes([acl()]).add == (acl("a.orders"),)
    assert changes([acl()], [acl("a.orders")]).add == ()
    assert changes([acl("other"), acl("*")]).add == ()


@pytest.mark.parametrize(
    ("operation", "permission", "expected"),
    [
        ("WRITE", "ALLOW", None),
        ("ALL", "ALLOW", "READ"),
        ("ALL", "DENY", "ALL"),
        ("WRITE", "DENY", "WRITE"),
        ("DESCRIBE", "ALLOW", "DESCRIBE"),
    ],
)
def test_nobody_is_allowed_to_write_a_copy(operation: str, permission: str, expected: str | None) -> None:
    found = changes([acl(operation=operation, permission=permission)]).add
    assert [(one.operation, one.permission) for one in found] == ([] if expected is None else [(expected, permission)])


def test_a_rule_for_a_prefix_stays_one_where_it_covers_nothing_but_copies() -> None:
    prefixed = acl("ord", pattern="PREFIXED")
    assert changes([prefixed]).add == (acl("a.ord", pattern="PREFIXED"),)
    one_by_one = (acl("a.orders"), acl("a.orders-new"))
    assert changes([prefixed], more=["a.ordinary"]).add == one_by_one
    assert changes([acl("none", pattern="PREFIXED")]).add == ()


def test_a_rule_for_a_prefix_becomes_literal_where_names_lose_their_beginning() -> None:
    destinations = {"orders": "copy-of-orders", "orders-new": "new-orders"}
    source, destination = cluster(destinations, [acl("ord", pattern="PREFIXED")]), cluster(destinations.values(), ())
    found = allowed(acl_changes(destinations, source, destination, (), remove=False))
    assert found == (acl("copy-of-orders"), acl("new-orders"))


def test_only_what_the_link_has_given_is_taken_away_and_only_if_asked() -> None:
    others = acl("clicks")
    by_hand, ours = acl("a.orders", "DESCRIBE"), acl("a.orders")
    there = [by_hand, ours, acl("a.clicks")]
    assert changes([others], there, [ours], remove=True) == Changes((), (ours,))
    assert changes([others], there, [ours]) == Changes()
    assert changes([others, acl()], there, [ours], remove=True) == Changes()
    assert changes([others], [by_hand, acl("a.clicks")], [ours], remove=True) == Changes(), "it is gone already"


def test_a_right_on_a_copy_that_is_followed_no_more_stays() -> None:
    orphan = acl("a.former")
    assert changes([acl("clicks")], [orphan, acl("a.clicks")], [orphan], remove=True) == Changes()


def test_a_source_without_any_rule_or_without_an_answer_takes_nothing_away() -> None:
    ours = acl("a.orders")
    assert changes([], [ours], [ours], remove=True) == Changes()
    assert changes(None, [ours], [ours], remove=True) == Changes()
    assert changes([acl()], None) == Changes()


def test_what_was_given_is_remembered_while_it_is_there() -> None:
    old, new, lost = acl("a.orders"), acl("a.clicks"), acl("a.orders", "DESCRIBE")
    destination = cluster([], [old])
    assert still_given([old, lost], [AllowAcl(new)], destination) == (new, old)
    assert still_given([old], [WithdrawAcl(old)], destination) == ()
    assert still_given([old], [], cluster([], None)) == (old,)


acls = st.frozensets(
    st.builds(
        acl,
        st.sampled_from(["orders", "ord", "c", "clicks", "*", "a.orders", "a.clicks", "other"]),
        st.sampled_from(["READ", "WRITE", "ALL", "DESCRIBE"]),
        st.sampled_from(["ALLOW", "DENY"]),
        st.sampled_from(["LITERAL", "PREFIXED"]),
    )
)


@given(acls, acls, acls, st.booleans())
def test_what_was_changed_needs_no_more_and_never_allows_writing_or_touches_others(
    of_source: frozenset[TopicAcl], by_hand: frozenset[TopicAcl], ours: frozenset[TopicAcl], remove: bool
) -> None:
    found = changes(of_source, by_hand | ours, ours, remove)
    assert not [one for one in found.add if one.permission == "ALLOW" and one.operation in ("WRITE", "ALL")]
    assert set(found.remove) <= ours
    there = (by_hand | ours | set(found.add)) - set(found.remove)
    remembered = still_given(ours, [*map(AllowAcl, found.add), *map(WithdrawAcl, found.remove)], cluster([], there))
    assert changes(of_source, there, remembered, remove) == Changes()
