"""What slots said some time ago: their reports, and what they roll up of them."""

import time

import pytest

from strait.control.report_history import history_points, reports_between
from strait.planning.history.sample import samples_of
from support.kafka.topics import produce

MINUTE_MS = 60_000


@pytest.mark.core
def test_what_a_slot_copied_is_in_its_past_once_it_has_ended(make_link, topic_name):
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    began_ms = int(time.time() * 1000)
    link.publish()
    produce(link.source, topic_name, 500)
    slot = link.start_slot()
    link.until_copied()
    link.publish(stopped=True)
    assert slot.wait(60) == 0
    properties = link.destination.client_properties
    for span in ("minute", "hour"):
        points = list(history_points(properties, "b", link.name, span, 0))
        assert sum(point.records for point in points) == 500
        # a minute that begins after the partitions were given back knows no lag
        assert any(point.lag_records is not None for point in points)
    ended_ms = int(time.time() * 1000)
    minutes = list(history_points(properties, "b", link.name, "minute", began_ms))
    samples = samples_of(minutes, MINUTE_MS, began_ms - 5 * MINUTE_MS, ended_ms + MINUTE_MS)
    assert [sample.records_per_second is None for sample in samples[:3]] == [True] * 3  # nothing was observed
    assert any(sample.records_per_second for sample in samples)
    assert not list(history_points(properties, "b", f"{link.name}-without-topics", "minute", 0))
    assert list(reports_between(properties, "b", link.name, 0, ended_ms + MINUTE_MS))
    assert not list(reports_between(properties, "b", link.name, 0, began_ms))
