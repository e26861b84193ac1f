"""What the page says of consumer groups."""

from dataclasses import replace

import pytest

from strait.planning.consumer_groups import GroupOffset, GroupOnCluster, GroupStatus, OffsetState
from strait.state.group_sync_records import GroupOutOfSync, GroupSyncReport
from strait_airflow.page.views.groups import Sync, group_details, groups_page
from strait_airflow.page.watches.polled import Seen

NO_SYNC = Sync(False, None, 1)
HERE, THERE = GroupOnCluster("classic", "Stable", "consumer"), GroupOnCluster("classic", "Empty")


def offset(topic: str, state: OffsetState, rereads: int | None = 0) -> GroupOffset:
    return GroupOffset(topic, 0, 10, topic, 10, "exact", 10, state, rereads)


def group(name: str, *states: OffsetState, selected: bool = True, rereads: int | None = 0) -> GroupStatus:
    offsets = tuple(offset(f"t{number}", state, rereads) for number, state in enumerate(states))
    return GroupStatus(name, HERE, THERE, offsets, selected=selected)


GROUPS = (
    group("fine", OffsetState.IN_SYNC),
    group("left-alone", OffsetState.BEHIND, selected=False),
    group("little", OffsetState.BEHIND, rereads=1),
    group("much", OffsetState.BEHIND, OffsetState.IN_SYNC, rereads=500),
    group("Refused", OffsetState.REFUSED, rereads=None),
)
SEEN = Seen(GROUPS, at_ms=1_000)


def names(**asked: object) -> list[str]:
    page = groups_page(SEEN, NO_SYNC, **{"search": "", "state": "", "offset": 0, "limit": 20} | asked)  # type: ignore[arg-type]
    return [row["group"] for row in page["rows"]]


def test_what_would_not_continue_exactly_stands_first_and_what_is_not_selected_last():
    assert names() == ["Refused", "much", "little", "fine", "left-alone"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"search": "LITT"}, ["little"]),
        ({"state": "in_sync"}, ["much", "fine"]),
        ({"offset": 1, "limit": 2}, ["much", "little"]),
        ({"offset": 9}, []),
    ],
)
def test_groups_are_searched_filtered_and_paged(asked, found):
    assert names(**asked) == found


def test_a_look_that_failed_says_so_and_one_that_is_not_over_too():
    failed = groups_page(Seen((), "cluster a: gone"), NO_SYNC, search="", state="", offset=0, limit=20)
    assert (failed["looking"], failed["error"], failed["rows"]) == (False, "cluster a: gone", [])
    assert groups_page(None, NO_SYNC, search="", state="", offset=0, limit=20)["looking"]


def test_states_are_filtered_by_code_and_shown_by_word() -> None:
    shown = groups_page(SEEN, NO_SYNC, search="", state="", offset=0, limit=20)
    assert shown["words"] == {"refused": "refused", "behind": "behind", "in_sync": "in sync"}
    found = group_details(SEEN, NO_SYNC, "fine", offset=0, limit=20)
    assert found is not None and found["rows"][0]["badge"]["word"] == "in sync"


def test_the_most_urgent_partition_of_a_group_stands_first():
    details = group_details(SEEN, NO_SYNC, "much", offset=0, limit=1)
    assert details is not None
    assert (details["total"], details["rereads"], details["synced"]) == (2, 1000, False)
    (row,) = details["rows"]
    assert (row["topic"], row["state"], row["meaning"]) == (
        "t0",
        "behind",
        "the destination has an earlier offset or none",
    )
    assert group_details(SEEN, NO_SYNC, "none", offset=0, limit=1) is None


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (None, {"looking": True, "error": ""}),
        (Seen((), "cluster a: gone"), {"looking": False, "error": "cluster a: gone"}),
    ],
)
def test_of_a_group_that_could_not_be_looked_at_nobody_says_that_there_is_none(seen, told):
    found = group_details(seen, NO_SYNC, "much", offset=0, limit=1)
    assert found is not None
    assert {name: found[name] for name in ("looking", "error")} == told
    assert "rows" not in found


def test_a_group_that_the_link_found_in_sync_says_when_unless_that_is_not_known_of_each():
    def at(report: GroupSyncReport | None, name: str, now_ms: int = 9_007) -> object:
        page = groups_page(SEEN, Sync(True, report, now_ms), search=name, state="", offset=0, limit=1)
        return page["rows"][0]["synced_at_ms"]

    report = GroupSyncReport(
        link="l",
        application="1",
        at_ms=7,
        seconds=0.1,
        interval_seconds=3,
        groups=4,
        in_sync=3,
        offsets={},
        committed=0,
        rereads=0,
        out_of_sync=(GroupOutOfSync(group="much", why="1 behind"),),
    )
    assert [at(report, name) for name in ("little", "much", "left-alone")] == [7, None, None]
    assert at(report.model_copy(update={"in_sync": 2}), "little") is None
    assert at(report.model_copy(update={"trouble": "gone"}), "little") is None
    assert at(None, "little") is None
    assert at(report, "little", now_ms=9_008) is None  # three intervals are over
    late = Sync(True, report, 208_000).as_data()
    assert (late["late"], late["age_seconds"]) == (True, 207.993)


def test_a_link_that_synchronizes_and_whose_application_does_not_report_is_told_from_one_that_does_not():
    assert Sync(True, None, 1).as_data() == {"wanted": True, "report": None}
    assert Sync(False, None, 1).as_data() == {"wanted": False, "report": None}


def test_a_look_that_fails_leaves_the_groups_of_the_last_one():
    failed = replace(SEEN, error="cluster a: gone")
    found = group_details(failed, NO_SYNC, "much", offset=0, limit=1)
    assert found is not None
    assert (found["error"], len(found["rows"])) == ("cluster a: gone", 1)
