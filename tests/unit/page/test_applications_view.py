"""What the page says of applications."""

from strait_airflow.page.views.details import applications_view
from strait_airflow.page.watches.applications import ApplicationsSeen

ONE = {"name": "strait-l-default", "not_before_ms": None, "submissions": [], "log_lines": ["a line"]}


def test_lines_of_logs_are_for_those_who_may_read_logs():
    seen = ApplicationsSeen((ONE,))
    assert applications_view(seen, logs=True)["applications"] == [ONE]
    assert applications_view(seen, logs=False)["applications"] == [ONE | {"log_lines": []}]


def test_before_the_first_look_is_over_nothing_is_said_to_be_missing():
    assert applications_view(None, logs=True)["looking"]
    assert not applications_view(ApplicationsSeen(error="gone"), logs=True)["looking"]
