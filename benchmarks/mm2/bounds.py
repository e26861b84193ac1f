"""The numbers to hold, as ratios within one run: machines differ, ratios much less."""

from mm2 import live_relay, mm2, strait_runner
from mm2.results import NO_COPIER, Bound, DrainResult, Results

RATE_BOUNDS = {"1kib-lz4": 5.0, "100b-lz4": 8.0, "1kib-defaults": 3.0, "100b-defaults": 6.0, "single": 2.0}
LATENCY_BOUND = 0.1
TAIL_BOUND = 0.5
"""For p99.9, the floor included: there the machine itself is a good part of it."""
NO_LIMIT = "–"
RELAY_BOUND = 2.0
RELAY_WORKLOADS = ("1kib-lz4", "100b-lz4")
MEMORY_BEYOND_BUDGET_BYTES = 100 * 10**6


def judge(results: Results, slot_budget_bytes: int) -> list[Bound]:
    """Each bound with what this run has to say about it."""
    return [*_rates(results), *_relay(results), *_latencies(results), *_memory(results, slot_budget_bytes)]


def _rates(results: Results) -> list[Bound]:
    bounds = []
    for workload, least in RATE_BOUNDS.items():
        ours, theirs = results.drain(workload, strait_runner.NAME), results.drain(workload, mm2.NAME)
        ratio = ours.figures.records_per_second / theirs.figures.records_per_second if ours and theirs else None
        bounds.append(_at_least(f"{workload}: drain rate against MirrorMaker 2", least, ratio))
    return bounds


def _relay(results: Results) -> list[Bound]:
    bounds = []
    for workload in RELAY_WORKLOADS:
        ours = results.drain(workload, strait_runner.NAME)
        ours_per_gb = ours.figures.slot_cpu_seconds_per_gb if ours else None
        beside = ours.slot_cpu_against_relays if ours else None
        alone = results.relay.cpu_seconds_per_gb if results.relay else None
        name = f"{workload}: slots' CPU per GB against"
        bounds.append(_at_most(f"{name} as many bare relays", RELAY_BOUND, beside))
        bounds.append(Bound(f"{name} one bare relay alone", NO_LIMIT, _ratio(ours_per_gb, alone), None))
    return bounds


def _latencies(results: Results) -> list[Bound]:
    """What a copier adds, which is its latency less the floor's. Shown beside it: the plain ratio, and what a bare
    relay adds, which is what this machine lets any copier come to."""
    found = [results.latency("latency", name) for name in (strait_runner.NAME, mm2.NAME, NO_COPIER, live_relay.NAME)]
    bounds = []
    for percentile in ("p50", "p99"):
        mine, other, least, relayed = (
            getattr(result.figures, f"{percentile}_ms") if result else None for result in found
        )
        plain = _ratio(mine, other)
        bounds.append(
            _at_most(f"latency: added {percentile} against MirrorMaker 2", LATENCY_BOUND, _added(mine, other, least))
        )
        bounds.append(Bound(f"latency: {percentile} against MirrorMaker 2, floor included", NO_LIMIT, plain, None))
        limit = _added(relayed, other, least)
        bounds.append(Bound(f"latency: added {percentile} of a bare relay against it", NO_LIMIT, limit, None))
    mine, other = (result.figures.p999_ms if result else None for result in found[:2])
    bounds.append(_at_most("latency: p99.9 against MirrorMaker 2, floor included", TAIL_BOUND, _ratio(mine, other)))
    return bounds


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _added(mine: float | None, other: float | None, least: float | None) -> float | None:
    if mine is None or other is None or least is None or other <= least:
        return None
    return max(0.0, mine - least) / (other - least)


def _memory(results: Results, slot_budget_bytes: int) -> list[Bound]:
    ours: list[DrainResult] = [drain for drain in results.drains if drain.copier == strait_runner.NAME]
    peaks = [drain.slot_peak_pss_bytes for drain in ours if drain.slot_peak_pss_bytes is not None]
    limit_mb = (slot_budget_bytes + MEMORY_BEYOND_BUDGET_BYTES) / 1e6
    measured_mb = max(peaks) / 1e6 if peaks else None
    met = None if measured_mb is None else measured_mb <= limit_mb
    return [Bound("memory of a slot, its budget + 100 MB", f"≤ {limit_mb:.0f} MB", measured_mb, met)]


def _at_least(name: str, limit: float, measured: float | None) -> Bound:
    return Bound(name, f"≥ {limit:g}×", measured, None if measured is None else measured >= limit)


def _at_most(name: str, limit: float, measured: float | None) -> Bound:
    return Bound(name, f"≤ {limit:g}×", measured, None if measured is None else measured <= limit)
