"""What does one state record cost its reader, whatever somebody has written there?

Each record in a process of its own, which has read a good one before; CPU, and the growth of the process's largest size.

    python benchmarks/state_records.py

Writes results-state-records.md.
"""

import argparse
import base64
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from strait.state.codec import AnyValue, encode
from strait.state.report_changes import ReportChanges
from strait.state.report_records import PartitionReport
from strait.state.schema import Loss, OffsetMapping, Plan, PlannedTopic
from strait.state.view import Kind, Place, StateView

RESULTS = Path(__file__).parent / "results-state-records.md"
INTRODUCTION = """# What a state record costs its reader

Made by `state_records.py`: the worst records that were found for each kind, of 8 MiB, the limit of a state topic, or of what a
record of its kind may have at most; and honest ones, to compare. CPU on one core; memory is the growth of the process's
largest size. At commit 5a36f883 the worst took 41 s and 7 GiB (wrong objects in place of topics).

The goal of 50 ms and 8 MiB for any record holds for what honest links of some thousand partitions write, and for garbage in
place of every record but a plan, except for 10 MiB of a segment. It **cannot hold** for records of megabytes: an honest plan of 8 MiB, of tens of thousands
of topics, takes longer. A record is read once by each reader, and a wrong one costs it no more than an honest one of the
largest size.

| record | MiB | CPU, ms | memory, MiB | is read |
| --- | --: | --: | --: | --- |
"""
MIB = 1 << 20
LIMIT = 8 * MIB
PLAN = Plan(
    link="l", group="default", version=1, producer_id=1, slots=1, published_at_ms=1,
    topics=(PlannedTopic(source="t", destination="t", source_id="s", destination_id="d", slots=(0,)),),
)  # fmt: skip
ROW = PartitionReport(
    topic="t", partition=0, state="copying", position=1, end=2, lag_records=1, lag_seconds=1.0, records=1, bytes=1
)
CHANGES = ReportChanges(group="default", slot=0, application="1", at_ms=1, started_at_ms=1, partitions=(ROW,))
RUN = OffsetMapping(
    topic="t", partition=0, destination="t", source_id="s", destination_id="d", source_base=0, destination_base=0,
    sequence_base=0, sequence_end=0, checkpoint_at_ms=0,
)  # fmt: skip
LOSS = Loss(
    link="l", topic="t", partition=0, side="source", cause="source_truncated", from_offset=0, to_offset=1, at_ms=1,
    action="continued", detail="",
)  # fmt: skip


def repeated(value: AnyValue, field: str, one: str, size: int) -> bytes:
    """The record with as many of one JSON value in a field as fit."""
    whole: dict[str, Any] = json.loads(encode(value)[1])
    text = json.dumps({name: content for name, content in whole.items() if name != field})
    return f'{text[:-1]},"{field}":[{",".join([one] * (size // (len(one) + 1)))}]}}'.encode()


def gaps(data: bytes) -> bytes:
    run = RUN.model_copy(update={"gaps": base64.b64encode(zlib.compress(data, 9)).decode()})
    return encode(run)[1]


def wide_topic() -> bytes:
    return encode(PLAN)[1].replace(b'"slots":[0]', b'"slots":[%s0]' % (b"0," * (LIMIT // 2 - 200)))


def row(number: int) -> str:
    return ROW.model_copy(update={"partition": number}).model_dump_json()


def fields(number: int) -> bytes:
    return b'{"v":1,' + b",".join(b'"%x":0' % each for each in range(number)) + b"}"


def topics(number: int, partitions: int) -> bytes:
    wide = PLAN.topics[0].model_copy(update={"slots": (0,) * partitions})
    return encode(PLAN.model_copy(update={"topics": (wide,) * number}))[1]


CASES: Mapping[str, tuple[Kind, AnyValue, Callable[[], bytes]]] = {
    "a plan of 1,000 topics with 10,000 partitions": ("plan", PLAN, lambda: topics(1_000, 10)),
    "a plan of as many topics as fit": (
        "plan", PLAN, lambda: repeated(PLAN, "topics", PLAN.topics[0].model_dump_json(), LIMIT),
    ),
    "a plan with one topic of 4 million partitions": ("plan", PLAN, wide_topic),
    "numbers in place of topics": ("plan", PLAN, lambda: repeated(PLAN, "topics", "0", LIMIT)),
    "wrong objects in place of topics": ("plan", PLAN, lambda: repeated(PLAN, "topics", '{"a":0}', LIMIT)),
    "a million unknown fields": (
        "plan", PLAN, lambda: fields(LIMIT // 9),
    ),
    "two million unknown fields, which a record of 8 MiB can hold compressed": ("plan", PLAN, lambda: fields(1_990_000)),
    "a plan of as many topics, compressed": (
        "plan", PLAN, lambda: repeated(PLAN, "topics", PLAN.topics[0].model_dump_json(), 4 * LIMIT - 10_000),
    ),
    "empty lists": ("plan", PLAN, lambda: repeated(PLAN, "x", "[]", LIMIT)),
    "a number of 8 million digits": ("plan", PLAN, lambda: b'{"v":1,"version":' + b"1" * LIMIT + b"}"),
    "changes of as many partitions as fit": (
        "reports", CHANGES, lambda: repeated(CHANGES, "partitions", row(1), 4 * MIB - 1_000),
    ),
    "wrong changes": ("reports", CHANGES, lambda: repeated(CHANGES, "partitions", '{"topic":0}', 4 * MIB - 1_000)),
    "a segment with a million numbers": ("map", RUN, lambda: gaps(b"\1" * MIB)),
    "a segment that unpacks to 1 GiB": ("map", RUN, lambda: gaps(b"\1" * (256 * MIB))),
    "a segment of 8 MiB": ("map", RUN, lambda: repeated(RUN, "gaps", "[]", LIMIT)),
    "a loss of 8 MiB": ("losses", LOSS, lambda: repeated(LOSS, "x", "[]", LIMIT)),
}  # fmt: skip


def largest_mib() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measured(name: str) -> str:
    kind, good, make = CASES[name]
    raw, (key, first) = make(), encode(good)
    view = StateView("l")
    view.apply(kind, key, first, Place("t", 0, 0))
    if kind == "map":
        view.apply(kind, encode(RUN)[0], gaps(b"\1\1"), Place("t", 0, 0))
        view.runs.decode_all()  # with all modules that this needs
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the largest size so far is forgotten
    before, began = largest_mib(), time.process_time()
    view.apply(kind, key, raw, Place("t", 0, 1))
    view.runs.decode_all()
    seconds = time.process_time() - began
    trouble = view.trouble(kind)
    told = (
        "yes" if trouble is None else f"no: {str(trouble).partition('cannot be read: ')[2].partition(' (the last')[0]}"
    )
    return f"| {name} | {len(raw) / MIB:.1f} | {seconds * 1000:,.0f} | {largest_mib() - before:,.0f} | {told[:120]} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, help="one of them, in this process")
    chosen = parser.parse_args().case
    if chosen:
        print(measured(chosen))
        return
    rows = [
        subprocess.run([sys.executable, __file__, "--case", name], capture_output=True, text=True, check=True).stdout
        for name in CASES
    ]
    RESULTS.write_text(INTRODUCTION + "".join(rows), encoding="utf-8")
    print("".join(rows), end="")


if __name__ == "__main__":
    main()
