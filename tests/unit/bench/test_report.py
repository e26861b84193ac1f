"""Bounds and report: ratios of what one run measured, recorded as text that is only ever added."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mm2 import bounds, report
from mm2.drain import DrainFigures
from mm2.latency import LatencyFigures
from mm2.machine import Machine
from mm2.results import DrainResult, LatencyResult, RelayResult, Results

BUDGET_BYTES = 128 << 20


def drain(copier: str, rate: float, cpu_per_gb: float, slot_mb: float) -> DrainResult:
    return DrainResult(
        workload="1kib-lz4",
        copier=copier,
        figures=DrainFigures(
            records=1000,
            bytes=10**9,
            seconds_to_first_record=5.0,
            drain_seconds=10.0,
            records_per_second=rate,
            records_per_second_later_half=rate,
            records_per_second_whole=rate / 2,
            bytes_per_second=1e8,
            cpu_seconds=cpu_per_gb * 3,
            cpu_seconds_per_gb=cpu_per_gb * 3,
            cpu_seconds_per_gb_later_half=cpu_per_gb,
            slot_cpu_seconds_per_gb=cpu_per_gb,
            cpu_seconds_whole=20.0,
            broker_cpu_seconds=3.0,
            other_cpu_share=0.1,
        ),
        source_batch_bytes=131072,
        destination_batch_bytes=131072,
        content="equal",
        tree_peak_pss_bytes=10**9,
        slot_peak_pss_bytes=round(slot_mb * 1e6),
        relays=RelayResult(bytes=10**9, seconds=1.0, cpu_seconds=0.25) if copier == "strait" else None,
    )


def latency(copier: str, p50: float, p99: float) -> LatencyResult:
    return LatencyResult("latency", copier, LatencyFigures(30_000, p50, p50, p99, p99, p99), cpu_cores=0.2)


@pytest.fixture
def results() -> Results:
    return Results(
        date="2026-01-02T03:04:05+00:00",
        commit="0123456789+",
        machine=Machine("A CPU", 2, 23.4, "6.1", 0.3),
        versions={"strait": "0.1.0", "kafka": "4.3.1"},
        parameters={"scale": 1.0, "workloads": ["1kib-lz4", "latency"]},
        relay=RelayResult(bytes=10**9, seconds=1.0, cpu_seconds=0.2),
        drains=[drain("mm2", 50_000, 40.0, 1400), drain("strait", 300_000, 0.5, 200)],
        latencies=[latency("none", 0.3, 1.0), latency("mm2", 30.0, 400.0), latency("strait", 1.0, 50.0)],
    )


def measured(results: Results) -> dict[str, tuple[float | None, bool | None]]:
    return {bound.name: (bound.measured, bound.met) for bound in bounds.judge(results, BUDGET_BYTES)}


def test_bounds_are_judged_by_ratios_of_the_same_run(results: Results):
    found = measured(results)
    assert found["1kib-lz4: drain rate against MirrorMaker 2"] == (6.0, True)
    assert found["1kib-lz4: slots' CPU per GB against as many bare relays"] == (2.0, True)
    assert found["1kib-lz4: slots' CPU per GB against one bare relay alone"] == (2.5, None)
    assert found["latency: added p50 against MirrorMaker 2"] == (pytest.approx(0.7 / 29.7), True)
    assert found["latency: added p99 against MirrorMaker 2"] == (pytest.approx(49 / 399), False)
    assert found["latency: p50 against MirrorMaker 2, floor included"] == (pytest.approx(1 / 30), None)
    assert found["latency: p99 against MirrorMaker 2, floor included"] == (pytest.approx(50 / 400), None)
    assert found["latency: p99.9 against MirrorMaker 2, floor included"] == (pytest.approx(50 / 400), True)
    assert found["memory of a slot, its budget + 100 MB"] == (200.0, True)


def test_a_missed_bound_is_said_to_be_missed(results: Results):
    results.drains[1] = drain("strait", 200_000, 0.7, 235)
    found = measured(results)
    assert found["1kib-lz4: drain rate against MirrorMaker 2"] == (4.0, False)
    assert found["1kib-lz4: slots' CPU per GB against as many bare relays"] == (pytest.approx(2.8), False)
    assert found["memory of a slot, its budget + 100 MB"] == (235.0, False)


def test_of_several_rounds_the_median_counts(results: Results):
    slow, usual, fast = (
        drain("strait", 100_000, 0.9, 190),
        drain("strait", 300_000, 0.6, 210),
        drain("strait", 310_000, 0.5, 180),
    )
    results.drains[1] = DrainResult.middle([fast, slow, usual])
    results.drains[0] = DrainResult.middle([results.drains[0]] * 3)
    found = measured(results)
    assert found["1kib-lz4: drain rate against MirrorMaker 2"] == (6.0, True)
    assert found["1kib-lz4: slots' CPU per GB against as many bare relays"] == (pytest.approx(2.4), False)
    assert found["memory of a slot, its budget + 100 MB"] == (210.0, True)
    assert "| 6.2, 2.0, 6.0 |" in report.markdown(results)
    assert [each["figures"]["records_per_second"] for each in results.as_json()["drains"][1]["rounds"]] == [
        310_000,
        100_000,
        300_000,
    ]


def test_of_several_rounds_of_latency_the_median_of_each_percentile_counts(results: Results):
    rounds = [latency("strait", 1.0, 90.0), latency("strait", 3.0, 20.0), latency("strait", 2.0, 30.0)]
    results.latencies[2] = LatencyResult.middle(rounds)
    found = measured(results)
    assert found["latency: added p50 against MirrorMaker 2"] == (pytest.approx(1.7 / 29.7), True)
    assert found["latency: added p99 against MirrorMaker 2"] == (pytest.approx(29 / 399), True)
    assert results.latencies[2].cpu_cores == 0.2
    assert [each["figures"]["p99_ms"] for each in results.as_json()["latencies"][2]["rounds"]] == [90.0, 20.0, 30.0]


def test_what_was_not_run_is_neither_met_nor_missed(results: Results):
    results.drains.pop(0)
    results.drains[0] = replace(results.drains[0], relays=None)
    results.relay = None
    found = measured(results)
    assert found["1kib-lz4: drain rate against MirrorMaker 2"] == (None, None)
    assert found["1kib-lz4: slots' CPU per GB against as many bare relays"] == (None, None)
    assert found["single: drain rate against MirrorMaker 2"] == (None, None)


def test_added_latency_needs_the_floor_and_something_added_to_compare_with(results: Results):
    name, plain = "latency: added p50 against MirrorMaker 2", "latency: p50 against MirrorMaker 2, floor included"
    floor, mm2, strait = results.latencies
    results.latencies = [mm2, strait]
    assert measured(results)[name] == (None, None)
    assert measured(results)[plain] == (pytest.approx(1 / 30), None)
    results.latencies = [latency("none", 30.0, 1.0), mm2, strait]
    assert measured(results)[name] == (None, None)
    results.latencies = [floor, mm2, latency("strait", 0.2, 50.0)]  # faster than the floor: nothing is added
    assert measured(results)[name] == (0.0, True)


def test_a_run_is_recorded_behind_those_before_it(results: Results, tmp_path: Path):
    file = tmp_path / "benchmarks" / "results.md"
    report.record(results, file)
    before = file.read_text()
    report.record(replace(results, date="2026-01-03T03:04:05+00:00"), file)
    after = file.read_text()
    assert after.startswith(before)
    assert after.count("\n## ") == 2 and after.count("# Results\n") == 1


def test_a_record_says_where_when_and_with_what(results: Results):
    results.bounds = bounds.judge(results, BUDGET_BYTES)
    text = report.markdown(results)
    for part in ("2026-01-02T03:04:05", "0123456789+", "A CPU, 2 cores, 23.4 GiB", "kafka 4.3.1", "scale 1.0"):
        assert part in text
    assert "| 1kib-lz4: drain rate against MirrorMaker 2 | ≥ 5× | 6.00 | ok |" in text
    assert "| latency: added p99 against MirrorMaker 2 | ≤ 0.1× | 0.12 | missed |" in text
    assert "| latency: p99 against MirrorMaker 2, floor included | – | 0.12 | only shown |" in text
    assert "| single: drain rate against MirrorMaker 2 | ≥ 2× | – | not measured |" in text


def test_every_row_of_every_table_has_all_columns(results: Results):
    results.bounds = bounds.judge(results, BUDGET_BYTES)
    for table in report.tables(results):
        assert {len(row) for row in table.rows} == {len(table.columns)}, table.title


def test_the_json_form_holds_everything_and_can_be_written(results: Results):
    document = json.loads(json.dumps(results.as_json()))
    assert document["v"] == 2
    assert document["relay"]["cpu_seconds_per_gb"] == 0.2
    assert document["drains"][1]["figures"]["records_per_second"] == 300_000
    assert document["latencies"][0]["copier"] == "none"
