"""What the page says of applications."""

from strait.exporter.observation import Observation
from strait.planning.status.status import SlotStatus, Status
from strait_airflow.page.views.details import applications_view
from strait_airflow.page.watches.polled import Seen

ONE = {
    "name": "strait-l-default",
    "group": "default",
    "pool": "",
    "links": [],
    "standby": False,
    "not_before_ms": None,
    "submissions": [{"state": "running"}],
    "log_lines": ["a line"],
}


def link(slot: SlotStatus) -> Observation:
    return Observation("l", "a", "b", 0.0, statuses=(Status("l", "default", 1, False, (slot,), ()),))


def words(slot: SlotStatus, **changed: object) -> str:
    seen = Seen((ONE | changed,))
    return str(applications_view(seen, link(slot), logs=True)["applications"][0]["badge"]["word"])


def test_lines_of_logs_are_for_those_who_may_read_logs():
    seen = Seen((ONE,))
    assert applications_view(seen, None, logs=True)["applications"][0]["log_lines"] == ["a line"]
    assert applications_view(seen, None, logs=False)["applications"][0]["log_lines"] == []


def test_before_the_first_look_is_over_nothing_is_said_to_be_missing():
    assert applications_view(None, None, logs=True)["looking"]
    assert not applications_view(Seen((), "gone"), None, logs=True)["looking"]


def test_one_that_runs_while_its_slots_do_not_report_is_not_well():
    silent = SlotStatus(0, silent=True, age_ms=600_000)
    assert words(SlotStatus(0, silent=False, age_ms=1)) == "running"
    assert words(silent) == "no report"
    assert words(SlotStatus(0, silent=True, age_ms=None, starting=True)) == "running"
    assert words(silent, standby=True) == "running"  # it reports once it replicates
    assert words(silent, submissions=[{"state": "submitted"}]) == "submitted"
    assert words(silent, submissions=[{"state": "dead"}]) == "exited"


def test_the_links_that_share_an_application_are_for_those_who_may_read_its_log():
    pool = ONE | {"name": "strait-pool-main", "group": "", "pool": "main", "links": ["k", "l"]}
    for logs, links in ((True, ["k", "l"]), (False, [])):
        (shown,) = applications_view(Seen((pool,)), None, logs=logs)["applications"]
        assert shown["links"] == links
    assert words(SlotStatus(0, silent=True, age_ms=600_000), group="", pool="main") == "no report"
    assert words(SlotStatus(0, silent=False, age_ms=1), group="", pool="main") == "running"
