"""One screen after a failover: what is safe, what is lost, which groups continue where, what to do, what is left."""

from typing import Any

from strait.model import TopicPartition
from strait.planning import failover_groups
from strait.planning.consumer_groups import GroupOffset, GroupOnCluster, GroupStatus, OffsetState
from strait.planning.failover_report import groups_known, groups_of, left_behind, next_steps, screen, topics_of
from strait.planning.recovery_point import LastWord
from strait.state.codec import decode, encode
from strait.state.failover_records import Failover, MissingRecords
from strait.state.group_sync_records import GroupOutOfSync, GroupSyncReport
from strait.state.schema import GivenAcl

PLACES = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("pay", 0)]
LOST = (MissingRecords(topic="orders", partition=1, from_offset=100, to_offset=140),)


def record(kind: Any = "planned", **facts: Any) -> Failover:
    given = {"id": "f1", "link": "l", "source": "a", "destination": "b", "kind": kind, "outcome": "done", "by": "ann"}
    return Failover(**given | {"turn": "t", "strait_version": "1", "began_at_ms": 1} | facts)


def status(name: str, state: OffsetState = OffsetState.IN_SYNC, **how: Any) -> GroupStatus:
    row = GroupOffset("orders", 0, 5, "orders", 5, "exact", 5, state, 0)
    return GroupStatus(
        name, GroupOnCluster("classic", "Empty", "consumer"), GroupOnCluster("classic", "Empty", ""), (row,), **how
    )


def report(**facts: Any) -> GroupSyncReport:
    given = {"link": "l", "application": "x", "at_ms": 1, "seconds": 0.1, "interval_seconds": 3, "groups": 3}
    return GroupSyncReport(**given | {"in_sync": 2, "offsets": {}, "committed": 0, "rereads": 0} | facts)


def test_after_a_planned_one_everything_is_safe_and_what_stays_behind_can_be_undone() -> None:
    acl = GivenAcl(
        name="orders", pattern="LITERAL", principal="User:app", host="*", operation="WRITE", permission="DENY"
    )
    groups = [status("billing"), status("audit", outside=("other",)), status("late", OffsetState.HELD_OWN)]
    groups += [status("console", selected=False), status("strait.mine")]
    found = record(
        topics=topics_of(PLACES, (), None, 1), group_list=groups_of(groups), fence=(acl,), groups=3, rpo_records=0
    )
    assert screen(found, "b:9092") == [
        "  safe    2 of 2 topics: b has every record that a had",
        "  lost    nothing",
        "  groups  2 of 5 continue exactly where they stopped: billing, audit",
        "          1 of 5 do not continue exactly: late (1 other offset there)",
        "          2 of 5 are not moved: console (the link's consumer_groups do not select it), strait.mine (names that begin "
        "with strait. are reserved, so it is not synchronized)",
        "          1 has offsets in topics that the link does not copy, left there: audit (other)",
        "  next    start producers and consumers on b: bootstrap.servers=b:9092",
        "          before their consumers start, look at the offsets of 1 group: late",
        "          to go back later: strait failback l, and a link in the opposite direction",
        "  left    link l is stopped: strait start l lets it copy again",
        "          1 ACL on a denies User:app to write: strait failover l --unfence removes them",
    ]
    late = record(topics=topics_of(PLACES, LOST, None, 1), missing=LOST, rpo_records=40)
    assert "  lost    nothing, but 40 offsets are on a alone: orders 40" in screen(late, "")
    assert "strait start l copies what was written to a too late" in next_steps(late, "")
    assert len(left_behind(late)) == 1
    after_waves = left_behind(late.model_copy(update={"still_paused": ("pay", "stock")}))
    assert after_waves[1:] == [
        "2 topics that earlier waves moved are still paused: pay, stock: strait start copies none of them before "
        "strait resume l TOPIC"
    ]
    made = record(topics=topics_of(PLACES, (), None, 1), rpo_records=0, transformed=("orders",))
    assert screen(made, "")[:3] == [
        "  safe    1 of 2 topics: b has every record that a had; of orders it has what the rule's `transform` makes of each",
        "  lost    nothing on the way",
        "          what a rule's `transform` leaves out or replaces in orders is on a alone",
    ]
    assert decode(Failover, *encode(made)) == made
    assert b"transformed" not in encode(found)[1], "older versions read it"
    unknown = record(topics=topics_of(PLACES, (), None, 1))  # the source was lost right after the stop
    assert screen(unknown, "")[:2] == [
        "  safe    2 of 2 topics: b has every record that a had when its producers had stopped",
        "  lost    whether anything was written to a after its producers had stopped is not known",
    ]


def test_after_an_unplanned_one_what_is_lost_is_told_by_topic_and_nothing_is_called_exact() -> None:
    words = {
        PLACES[0]: LastWord(100, 100, 10_000, 0.0),
        PLACES[1]: LastWord(100, 140, 9_000, 2.0),
        PLACES[2]: LastWord(7, 7, 10_000, 0.0, "paused"),
    }
    topics = topics_of(PLACES, LOST, words, 12_000)
    assert [(item.topic, item.missing, item.seconds, item.not_copied) for item in topics] == [
        ("orders", 40, 5.0, ""),
        ("pay", 0, 2.0, "paused"),
    ]
    out = (GroupOutOfSync(group="late", why="1 behind"),)
    groups = groups_known(report(out_of_sync=out), ["billing", "late", "mail", "strait.mine"])
    assert {item.group: item.continues for item in groups} == {
        "billing": "in_sync",
        "late": "elsewhere",
        "mail": "in_sync",
    }
    lines = screen(record("unplanned", topics=topics, missing=LOST, group_list=groups), "b:9092")
    assert lines[:4] == [
        "  safe    0 of 2 topics: b has every record that the link had seen on a",
        "  lost    what was written to a after the link's last look at it: how much is not known",
        "          at least 40 offsets that were seen: orders 40 (at most 5 s), pay 0 (at most 2 s; was not copied: paused)",
        "  groups  2 of 3 were in sync at the last look at the source, and consume again what they consumed after it: "
        "billing, mail",
    ]
    assert any("once a is back: strait tail list l" in line for line in lines)


def test_names_that_nobody_told_are_unknown() -> None:
    for known in (None, report(groups=50, in_sync=2, out_of_sync=())):
        assert [item.continues for item in groups_known(known, ["billing"])] == ["unknown"]


def test_groups_that_the_last_look_did_not_count_are_not_called_in_sync() -> None:
    """Shown by the soak: a look that had found no group, and groups that had committed since."""
    for groups, there in ((0, ["billing"]), (1, ["billing", "mail"])):
        known = report(groups=groups, in_sync=groups, out_of_sync=())
        assert {item.continues for item in groups_known(known, there)} == {"unknown"}


def test_groups_whose_offsets_could_not_be_read_are_unknown_and_looked_at_next() -> None:
    code = "UNSTABLE_OFFSET_COMMIT"
    known = report(groups=3, in_sync=2, out_of_sync=(GroupOutOfSync(group="late", why="1 behind"),))
    groups = groups_known(known, ["billing"], {"late": code, "mail": code, "strait.mine": code})
    assert [(item.group, item.continues, item.why) for item in groups] == [
        ("billing", "in_sync", ""),
        ("late", "elsewhere", "1 behind"),
        ("mail", "unknown", code),
    ]
    found = record("unplanned", group_list=groups)
    text = f"1 of 3 may have offsets on the destination, but these could not be read: mail ({code})"
    assert any(line.endswith(text) for line in screen(found, ""))
    assert "before their consumers start, look at the offsets of 2 groups: late, mail" in next_steps(found, "")
    (alone,) = groups_known(None, [], {"mail": code})
    assert not any("none is known" in line for line in screen(record("unplanned", group_list=(alone,)), ""))
    for of_report in (known, None):
        detail = failover_groups.kept_groups(of_report, 1, {"mail": code}).detail
        assert detail.endswith(f"; offsets of 1 group on the destination cannot be read: mail ({code})")


def test_the_record_has_every_name_and_the_screen_some() -> None:
    many = groups_of([status(f"g{number:03}", OffsetState.BEHIND) for number in range(300)])
    found = record(group_list=many)
    assert any("and 295 more" in line for line in screen(found, ""))
    assert decode(Failover, *encode(found)).group_list == many
    assert b"group_list" not in encode(record())[1]  # older versions read it
