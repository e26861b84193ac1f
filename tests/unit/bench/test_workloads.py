"""The workloads: found by name, scaled, and made of data that compresses as real data does."""

from dataclasses import replace

import cramjam
import pytest

from mm2.payloads import values
from mm2.workloads import PARTITIONS, WORKLOADS, Drain, Trickle, choose
from strait.errors import ConfigError


def test_no_name_means_all_and_the_order_is_always_the_same():
    assert choose([]) == WORKLOADS
    assert [workload.name for workload in choose(["latency", "1kib-lz4"])] == ["1kib-lz4", "latency"]


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean '100b-lz4'"):
        choose(["100b-lz5"])


def test_latency_can_be_measured_for_longer():
    usual = choose([])
    longer = choose([], latency_seconds=1200.0)
    assert longer[:-1] == usual[:-1]
    assert isinstance(usual[-1], Trickle)
    assert longer[-1] == replace(usual[-1], seconds=1200.0)


def test_scaling_changes_the_amount_and_nothing_else():
    for workload in WORKLOADS:
        half = workload.scaled(0.5)
        if isinstance(workload, Drain) and isinstance(half, Drain):
            assert half.records == workload.records / 2
            assert (half.value_bytes, half.batch_bytes) == (workload.value_bytes, workload.batch_bytes)
        elif isinstance(workload, Trickle) and isinstance(half, Trickle):
            assert half.seconds == workload.seconds / 2
            assert half.records_per_second == workload.records_per_second


def test_the_smallest_scale_still_reaches_every_partition():
    drain = next(workload for workload in WORKLOADS if isinstance(workload, Drain))
    assert drain.scaled(1e-9).records == PARTITIONS


@pytest.mark.parametrize("size_bytes", [100, 200, 1024])
def test_values_have_the_size_and_compress_to_about_a_third(size_bytes: int):
    made = values(size_bytes)
    assert {len(value) for value in made} == {size_bytes}
    batch = b"".join(made[: 400_000 // size_bytes])
    assert 2.5 < len(batch) / len(bytes(cramjam.lz4.compress_block(batch))) < 4.0


def test_values_are_the_same_in_every_run():
    assert values(200) == values(200)
    assert values(200, seed=1) != values(200, seed=2)
