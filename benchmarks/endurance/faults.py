"""Faults that no checksum shows: records that are missing, changed, doubled or exchanged, and batches that are cut out. An audit
names each with its offsets, and nothing that is sound."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from endurance.audited_link import RECORDS, audited_link, in_batches
from endurance.brokers import running
from endurance.scenario import Finding, Say, Sizes
from strait.embedded.kafka import Cluster
from strait.wire.records import Record
from support.kafka.rewriting import rewrite
from support.kafka.topics import create
from support.links.auditing import audit_copies

_TOPIC, _MIRRORED = "faulty", "mirrored"
_EVERY = 5
"""Of so many records, one is at fault. Aligned by order, three equal ones in a row must follow."""
_BY_ORDER_EVERY = 10
_CUT = 3
"""Batches that are cut out of each partition."""
_NOWHERE = -1


class Named(NamedTuple):
    """A difference of one record."""

    kind: str
    source: int
    copy: int


def faults(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """On both sides of a link's copy, on disk; and in a copy that another tool has written."""
    chance = random.Random(sizes.seed)
    source, destination = Cluster(folder / "source"), Cluster(folder / "destination")
    with running(source, destination):
        found = [*_of_a_link(sizes, folder, source, destination, chance, say)]
        found += _of_another_tool(sizes, source, destination, chance, say)
    return found


def _of_a_link(
    sizes: Sizes, folder: Path, source: Cluster, destination: Cluster, chance: random.Random, say: Say
) -> Iterator[Finding]:
    with audited_link("faults", _TOPIC, sizes.partitions, folder, source, destination, chance) as audit:
        sound = len(audit().differences)
        for cluster in (source, destination):
            cluster.stop_broker(1)
        expected = {number: _put_on_disk(source, destination, number, chance) for number in range(sizes.partitions)}
        for cluster in (source, destination):
            cluster.start_broker(1)
        say(f"{sum(map(len, expected.values()))} records are at fault")
        named = _named(audit().differences)
        yield Finding("link, named before any was put in", sound, "", 0)
        yield from _compared("link", expected, named, say)


def _put_on_disk(source: Cluster, destination: Cluster, partition: int, chance: random.Random) -> set[Named]:
    """Put faults into both copies of one partition. Return what is to be named."""
    kinds = ("missing", "different", "double", "exchanged")
    at = {number: chance.choice(kinds) for number in range(1, RECORDS - 2, _EVERY)}
    on_source = {number for number in at if chance.random() < 0.5}
    cut = {number: chance.random() < 0.5 for number in chance.sample(range(1, RECORDS // 100 - 1), _CUT)}
    expected: set[Named] = set()

    def change(records: Sequence[Record], *, here: bool) -> list[Record]:
        if not records:
            return []
        if cut.get(records[0].offset // 100) == here:
            expected.update(_lacking(one.offset, here=here) for one in records)
            return []
        if records[0].offset // 100 in cut:
            return list(records)
        changed = {one.offset: one for one in records}
        for one in records:
            kind = at.get(one.offset)
            follows = changed.get(one.offset + 1)
            if kind is None or (one.offset in on_source) != here:
                continue
            if kind == "missing":
                del changed[one.offset]
                expected.add(_lacking(one.offset, here=here))
            elif kind == "different" or follows is None or one.offset % 512 == 511:  # a chunk ends between both
                changed[one.offset] = one._replace(headers=(*one.headers, ("at fault", None)))
                expected.add(Named("different", one.offset, one.offset))
            elif kind == "double":
                changed[one.offset + 1] = one._replace(offset=one.offset + 1)
                expected.add(Named("different", one.offset + 1, one.offset + 1))
            else:
                changed[one.offset] = follows._replace(offset=one.offset)
                changed[one.offset + 1] = one._replace(offset=one.offset + 1)
                expected.add(Named("reordered", one.offset, one.offset + 1))
                expected.add(Named("reordered", one.offset + 1, one.offset))
        return list(changed.values())

    for cluster, here in ((source, True), (destination, False)):
        rewrite(cluster.directory, _TOPIC, partition, lambda records, here=here: change(records, here=here))
    return expected


def _lacking(offset: int, *, here: bool) -> Named:
    return Named("extra", _NOWHERE, offset) if here else Named("missing", offset, _NOWHERE)


def _of_another_tool(
    sizes: Sizes, source: Cluster, destination: Cluster, chance: random.Random, say: Say
) -> Iterator[Finding]:
    """Compared by order, as copies of MirrorMaker 2 are."""
    for cluster in (source, destination):
        create(cluster, _MIRRORED, sizes.partitions)
    expected: dict[int, set[Named]] = {}
    here, there = in_batches(source), in_batches(destination)
    for partition in range(sizes.partitions):
        rows = [chance.randbytes(100) for _ in range(RECORDS)]
        copies, expected[partition] = _faulty(rows, chance)
        for producer, values in ((here, rows), (there, copies)):
            for number, value in enumerate(values):
                producer.produce(_MIRRORED, value, partition=partition, timestamp=1_700_000_000_000)
                if not number % 1000:
                    producer.poll(0)
    for producer in (here, there):
        if producer.flush(60):
            raise RuntimeError("a cluster does not take the records")
    found = audit_copies(source, destination, {_MIRRORED: _MIRRORED}, "order")
    yield from _compared("by order", expected, _named(found.differences), say)


def _faulty(rows: Sequence[bytes], chance: random.Random) -> tuple[list[bytes], set[Named]]:
    copies: list[bytes] = []
    expected: set[Named] = set()
    number = 0
    while number < len(rows):
        due = number % _BY_ORDER_EVERY == 4 and number < len(rows) - _BY_ORDER_EVERY
        at = len(copies)
        match chance.choice(["missing", "different", "duplicate", "reordered", "extra"]) if due else "":
            case "missing":
                expected.add(Named("missing", number, _NOWHERE))
            case "different":
                copies.append(b"changed" + rows[number])
                expected.add(Named("different", number, at))
            case "duplicate":
                copies += [rows[number], rows[number]]
                expected.add(Named("duplicate", _NOWHERE, at + 1))
            case "extra":
                copies += [b"%d of nobody" % number, rows[number]]
                expected.add(Named("extra", _NOWHERE, at))
            case "reordered":
                copies += [rows[number + 1], rows[number]]
                expected |= {Named("reordered", number, at + 1), Named("reordered", number + 1, at)}
                number += 1
            case _:
                copies.append(rows[number])
        number += 1
    return copies, expected


def _compared(
    what: str, expected: Mapping[int, set[Named]], named: Mapping[int, set[Named]], say: Say
) -> Iterator[Finding]:
    kinds = Counter(one.kind for every in expected.values() for one in every)
    missed = [(number, one) for number, every in expected.items() for one in every - named.get(number, set())]
    invented = [(number, one) for number, every in named.items() for one in every - expected[number]]
    for number, one in (*missed[:20], *invented[:20]):
        say(f"{what}: partition {number}: {one}")
    yield Finding(f"{what}, records at fault", sum(kinds.values()), "")
    yield from (Finding(f"{what}, {kind}", count, "") for kind, count in sorted(kinds.items()))
    yield Finding(f"{what}, not named", len(missed), "", 0)
    yield Finding(f"{what}, named but sound", len(invented), "", 0)


def _named(differences: Sequence[Mapping[str, Any]]) -> dict[int, set[Named]]:
    found: dict[int, set[Named]] = {}
    for one in differences:
        places = [one["source"], one["copy"]]
        found.setdefault(one["partition"], set()).update(
            Named(one["kind"], *(place if place < 0 else place + step for place in places))
            for step in range(one["records"])
        )
    return found
