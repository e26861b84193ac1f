"""`make bench` as a user types it: both copiers on the same data, and nothing left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]


def bench(*arguments: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Leftover processes fail the whole run (support.fixtures.no_leftovers)."""
    return subprocess.run(
        [sys.executable, "-m", "mm2", "--no-record", *arguments],
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(ROOT / "benchmarks")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_both_copiers_copy_the_same_data_and_are_compared(tmp_path):
    arguments = ("--workload", "1kib-lz4", "--workload", "latency", "--scale", "0.05", "--rounds", "1", "--json")
    done = bench(*arguments, scratch=tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)

    assert [drain["copier"] for drain in results["drains"]] == ["mm2", "strait"]
    for drain in results["drains"]:
        assert drain["content"] == "equal"
        assert drain["figures"]["records"] == 240_000
        assert drain["figures"]["records_per_second"] > 0
        assert 0 < drain["figures"]["cpu_seconds"] < drain["figures"]["cpu_seconds_whole"]
        assert 0 < drain["slot_peak_pss_bytes"] <= drain["tree_peak_pss_bytes"]
    mm2, strait = results["drains"]
    assert strait["destination_batch_bytes"] == strait["source_batch_bytes"]  # passed on as they are
    assert mm2["source_batch_bytes"] == strait["source_batch_bytes"]

    assert [latency["copier"] for latency in results["latencies"]] == ["none", "mm2", "strait", "relay"]
    for latency in results["latencies"]:
        assert 0 < latency["figures"]["p50_ms"] <= latency["figures"]["p99_ms"]
    assert results["relay"]["cpu_seconds_per_gb"] > 0
    assert mm2["relays"] is None
    assert strait["relays"]["cpu_seconds_per_gb"] > 0

    judged = {bound["name"]: bound["met"] for bound in results["bounds"]}
    measured = {bound["name"]: bound["measured"] for bound in results["bounds"]}
    assert judged["1kib-lz4: drain rate against MirrorMaker 2"] is not None
    assert measured["latency: p99 against MirrorMaker 2, floor included"] > 0  # what is added may drown in noise
    p50 = {latency["copier"]: latency["figures"]["p50_ms"] for latency in results["latencies"]}
    floor, added = p50["none"], p50["mm2"] - p50["none"]
    expected = pytest.approx(max(0.0, p50["relay"] - floor) / added, abs=0.01) if added > 0 else None
    assert measured["latency: added p50 of a bare relay against it"] == expected
    assert judged["single: drain rate against MirrorMaker 2"] is None

    for step in (
        "fill the source",
        "1kib-lz4-rehearsal: strait",
        "1kib-lz4: mm2",
        "1kib-lz4: strait",
        "latency-rehearsal: mm2",
        "latency: relay",
        "bare relay",
    ):
        assert step in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_workload_that_is_not_known_is_one_line_and_exit_code_2(tmp_path):
    done = bench("--workload", "1kb-lz4", scratch=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: make bench: no workload is called '1kb-lz4'; did you mean '1kib-lz4'?")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
