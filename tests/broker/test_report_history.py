"""What slots said some time ago, from the topic of reports."""

import time

import pytest

from strait.control.report_history import reports_at
from support.fixtures.waiting import eventually

PAUSE_SECONDS = 8.0  # longer than what counts as one moment


@pytest.mark.core
def test_each_moment_has_what_was_reported_then_and_nothing_of_others(make_link, topic_name):
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    with link.reports() as newest:
        eventually(lambda: newest(topic_name, 0), what="a report")
        time.sleep(3)  # and some more
    link.kill(slot)
    ended_ms = int(time.time() * 1000)
    time.sleep(PAUSE_SECONDS)
    silent_ms = int(time.time() * 1000)
    properties = link.destination.client_properties
    times = [silent_ms, ended_ms - 2_000, 0]  # also backwards
    found = dict(reports_at(properties, "b", link.name, iter(times)))
    assert list(found) == times
    assert found[silent_ms] == {}
    assert set(found[ended_ms - 2_000]) == {("default", 0)}
    assert set(found[0]) == set()
    assert list(reports_at(properties, "b", f"{link.name}-without-topics", iter(times))) == []
