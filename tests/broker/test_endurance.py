"""Each scenario of `make endurance`, small: that it works, and that what it counts holds. Nothing that takes time is
judged here."""

from dataclasses import replace

import pytest

from endurance.scenarios import SCENARIOS

pytestmark = pytest.mark.broker

_TIMES = {"s", "ms", "times", "% of a core"}


@pytest.fixture
def found(tmp_path):
    def run(scenario: str, **sizes: float) -> dict[str, float]:
        """What it measured. Fails if a bound that is a number or a size was missed."""
        chosen = SCENARIOS[scenario]
        findings = chosen.run(replace(chosen.sizes, **sizes), tmp_path, lambda _: None)
        missed = [finding.row for finding in findings if finding.unit not in _TIMES and not finding.holds]
        assert not missed
        return {finding.what: finding.value for finding in findings}

    return run


def test_hours_of_checkpoints_and_reports_stay_small_and_are_read(found):
    minutes, partitions = 504, 20
    measured = found(
        "weeks", weeks=minutes / 10_080, partitions=partitions, per_topic=10, report_minutes=2, seconds=0.5, turns=1
    )
    # Compacted meanwhile, as far as the broker's cleaner kept pace with hours that pass in seconds.
    assert measured["map, records in the log"] <= minutes * partitions / 2
    assert measured["state on disk, all"] < 5.0


def test_a_map_of_the_former_version_is_taken_over(found):
    measured = found("upgrade", weeks=0.02, partitions=20, per_topic=10, seconds=0.5, turns=1)
    assert measured["map, records in the log"] >= 20
    assert measured["state on disk, map"] < 5.0


def test_partitions_begin_and_survive_kill_9(found):
    measured = found("begin", partitions=300, per_topic=5, slots=2)
    assert measured["records"] == 300 + measured["records written while slots were killed"] >= 300 * 2


def test_a_fetch_names_only_partitions_that_changed(found):
    measured = found("fetched", partitions=500, seconds=2)
    assert measured["fetch request, mean"] < 500


def test_a_trickle_among_idle_partitions_is_measured(found):
    measured = found("trickle", partitions=50, seconds=2)
    assert measured["p50, among all"] > 0


def test_a_far_source_is_copied_after_kill_9(found):
    measured = found("far", partitions=100, round_trip_ms=20)
    assert measured["all copied after kill -9"] > 0


def test_a_backlog_on_each_of_five_brokers_is_copied_from_all(found):
    measured = found("starvation", partitions=2, megabytes=40, seconds=3)
    assert measured["copied from all brokers"] > 0


def test_reports_are_written_and_read(found):
    measured = found("reports", partitions=20, report_minutes=3)
    assert measured["reports, records"] >= 3 * 60
    assert measured["read by a failover, found"] == 20


def test_what_an_idle_direction_receives_is_counted(found):
    measured = found("idle", partitions=2, megabytes=0.3, seconds=0.5)  # killed before it could note how far they were
    assert measured["written by others into the busy cluster"] == 0.3


def test_each_record_at_fault_is_named_with_its_offsets(found):
    measured = found("faults", partitions=2)
    assert measured["link, records at fault"] > 700
    assert measured["by order, records at fault"] > 300


def test_each_bit_that_changes_on_a_disk_is_named(found):
    measured = found("rot", partitions=4, turns=3)
    assert measured["faults put in"] == 12
