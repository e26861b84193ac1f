"""How long does planning take, and how large is a plan, for very many partitions?

Facts of two clusters are made up; everything else is what a control cycle does with them: survey, compose, a second
look after which nothing changes, one that balances measured loads, and the plan as it is published. No broker is
involved.

    python benchmarks/planning.py [--partitions 100000 1000000] [--topics-of 10] [--slots 64]

Appends a row for each number to results-planning.md.
"""

import argparse
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import cramjam

from measuring import add_row
from strait.config.links import Link
from strait.control.proposing import collector_paused
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.history.load import Load
from strait.planning.plan.planner import Proposal, compose, survey
from strait.planning.topics.start_offsets import StartOffsets
from strait.state.codec import encode
from strait.state.schema import OffsetMapping, Plan

RESULTS = Path(__file__).parent / "results-planning.md"
INTRODUCTION = (
    "# Planning\n\nMade by `planning.py`, CPU seconds of a cycle, on one core, without what brokers are asked. "
    "Bound: 100,000 "
    "partitions below 2 s."
)
HEAD = ("partitions", "slots", "first plan", "nothing new", "by measured load", "plan", "zstd", "peak memory")
T = TypeVar("T")


def clusters(partitions: int, each: int) -> tuple[ClusterFacts, ClusterFacts]:
    """Both sides of a link with topics of so many partitions."""
    names = [f"team-{number % 50}.topic-{number:06}" for number in range(partitions // each)]
    source, destination = (
        ClusterFacts(side, side, {name: TopicFacts(name, f"{side}-{name}", each) for name in names})
        for side in ("source", "destination")
    )
    return source, destination


def link(slots: int) -> Link:
    rules = [{"match": f"team-{number}\\..*", "class": "bulk"} for number in range(0, 50, 10)]
    return Link.model_validate(
        {
            "source": "source",
            "destination": "destination",
            "topics": {
                "regex": ["team-.*"],
                "exclude": [".*-tmp"],
                "rules": rules,
                "budget": {"bytes_per_second": 10**9, "classes": {"bulk": 10**8}},
            },
            "groups": {"default": {"slots": slots}},
        },
        strict=False,
    )


def timed(what: str, call: Callable[[], T], into: dict[str, float]) -> T:
    begun = time.process_time()
    answer = call()
    into[what] = time.process_time() - begun
    return answer


def published(proposal: Proposal) -> dict[str, Plan]:
    return {
        group: draft.as_plan(link="l", group=group, version=1, producer_id=1, now_ms=1)
        for group, draft in proposal.drafts.items()
    }


def plan(partitions: int, each: int, slots: int) -> tuple[dict[str, float], Plan]:
    """Seconds of each step, and the plan."""
    settings, (source, destination), seconds = link(slots), clusters(partitions, each), dict[str, float]()

    def cycle(
        runs: dict[tuple[str, int], tuple[OffsetMapping, ...]],
        plans: dict[str, Plan],
        loads: dict[TopicPartition, Load],
    ) -> Proposal:
        with collector_paused():
            found = survey("l", settings, source, destination, runs)
            starts = StartOffsets(dict.fromkeys(found.new, 0), {new.target: 0 for new in found.new.values()})
            return compose(settings, found, starts, plans, stopped=False, loads=loads)

    first = timed("first plan", lambda: cycle({}, {}, {}), seconds)
    plans = published(first)
    runs = {(run.topic, run.partition): (run,) for run in first.first_runs(1)}
    again = timed("nothing new", lambda: cycle(runs, plans, {}), seconds)
    if again.drafts:
        raise AssertionError("equal facts made another plan")
    dice = random.Random(1)
    loads = {
        TopicPartition(*where): Load(
            1e5 * dice.paretovariate(1.5), 0, 0.0, True
        )  # few hot ones, many that are nearly idle
        for where in runs
    }
    timed("by measured load", lambda: cycle(runs, plans, loads), seconds)
    return seconds, plans["default"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--topics-of", type=int, default=10, help="partitions of each topic")
    parser.add_argument("--slots", type=int, default=64)
    asked = parser.parse_args()
    for partitions in asked.partitions:
        seconds, made = plan(partitions, asked.topics_of, asked.slots)
        _, value = encode(made)
        row = (
            f"{partitions:,}",
            str(asked.slots),
            *(f"{seconds[step]:.2f} s" for step in ("first plan", "nothing new", "by measured load")),
            f"{len(value) / 1e6:.1f} MB",
            f"{len(cramjam.zstd.compress(value, 3)) / 1e6:.2f} MB",
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB",
        )
        add_row(RESULTS, INTRODUCTION, HEAD, row)


if __name__ == "__main__":
    main()
