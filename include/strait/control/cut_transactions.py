"""Finds the transactions that a link's tail cuts, once the source can be read again."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from strait.control.tail import TailReader, read_log
from strait.errors import NotAuthorized, ProtocolError
from strait.kafka.reading import read_ranges
from strait.model import TopicPartition
from strait.net.partition_logs import LoggedBatch, PartitionLogs
from strait.planning.tail import CutTransaction, Ended, Remainders, TailPart, cut, is_complete, remainders, to_resolve
from strait.text import plural
from strait.wire.transaction_log import COMPLETE, PREPARE_ABORT, PREPARE_COMMIT, TransactionStep, read_step

_LOG = "__transaction_state"
_EARLIER_MS = 3_600_000
"""A transaction's end is in the transaction log before its markers are written; usually milliseconds before."""
_FIRST_STEP = 1_000
_MOST_OFFSETS = 1_000_000
"""Largest step, in offsets, of the backward search for a producer's last batch before a tail."""


class CutTransactions(NamedTuple):
    """``unknown``: why some transactions cannot be determined, one line for each reason."""

    cut: Sequence[CutTransaction]
    unknown: Sequence[str]


def cut_transactions(reader: TailReader) -> CutTransactions:
    """Return all committed transactions of which some records are on the destination and some are not.

    Raises:
        ClusterUnavailable, NotAuthorized, StateError, ConfigError: as ``reader`` does. If the transaction log may not
            be read, ``unknown`` has the reason instead.
    """
    parts = {part.place: part for part in reader.parts if part.exact and part.from_offset is not None}
    unknown = [f"{part.place}: its tail is not exactly known" for part in reader.parts if part.place not in parts]
    for place in _lacking(reader, parts):
        del parts[place]
        unknown.append(f"{place}: its source has deleted or compacted away a part of the tail")
    found = _remainders(reader, {place: part for place, part in parts.items() if part.has_offsets})
    producers = to_resolve(found)
    if producers:
        since_ms = _first_marker_ms(found, producers) - _EARLIER_MS
        for place in sorted(place for place, at_ms in reader.dropped.items() if place in parts and at_ms >= since_ms):
            del parts[place]
            unknown.append(f"{place}: its tail was dropped before")
        found = _remainders(reader, parts)
        producers = to_resolve(found)
    if not producers:
        return CutTransactions([], unknown)
    begun = {
        (place, producer): is_begun
        for place, part in parts.items()
        for producer, is_begun in _begun(reader, place, part.range[0], producers & found[place].keys()).items()
    }
    transactions: list[CutTransaction] = []
    unsure: set[int] = producers
    for since_ms in (_first_marker_ms(found, producers) - _EARLIER_MS, 0):
        try:
            ended, unended = _ended(reader, producers, since_ms)
        except (NotAuthorized, ProtocolError) as error:
            return CutTransactions(
                [],
                [
                    *unknown,
                    f"{plural(len(producers), 'producer had', 'producers had')} transactions in the tail: {error}",
                ],
            )
        transactions, unsure = cut(found, ended, begun)
        if not unsure - unended:
            break
    unsure |= unended | _still_writing(reader, parts, producers)
    unknown += [f"producer ID {producer}: its transactions cannot be told apart" for producer in sorted(unsure)]
    return CutTransactions([one for one in transactions if one.producer_id not in unsure], unknown)


def _remainders(reader: TailReader, parts: Mapping[TopicPartition, TailPart]) -> Remainders:
    return {place: remainders(batches, parts[place].range[0]) for place, batches in reader.batches(parts).items()}


def _lacking(reader: TailReader, parts: Mapping[TopicPartition, TailPart]) -> list[TopicPartition]:
    """Return partitions of which offsets after the position are missing on the source, so that markers may be
    missing."""
    positions = {point.place: point.offset or 0 for point in reader.resumption.points}
    lacking = [place for place, part in parts.items() if positions[place] < part.range[0]]
    complete = {place: part for place, part in parts.items() if place not in lacking and part.has_offsets}
    for place, batches in reader.batches(complete).items():
        if not is_complete(batches, *complete[place].range):
            lacking.append(place)
    return sorted(lacking)


def _first_marker_ms(found: Remainders, producers: Iterable[int]) -> int:
    times = [
        part.time_ms for of_place in found.values() for producer in producers for part in of_place.get(producer, ())
    ]
    return min(times)


def _begun(
    reader: TailReader, place: TopicPartition, position: int, producers: Collection[int]
) -> dict[int, bool | None]:
    """Return whether each producer's last batch before the tail holds records, and so belongs to a transaction that
    ends in the tail; None: unknown."""
    left, found = set(producers), dict[int, bool | None]()
    if not left:
        return found

    def look(batches: Sequence[LoggedBatch]) -> None:
        for batch in reversed(batches):
            if batch.transactional and batch.producer_id in left:
                left.discard(batch.producer_id)
                found[batch.producer_id] = not batch.control

    look([batch for batch in reader.batches([place])[place] if batch.base < position])
    start = reader.source.offsets([place], "earliest")[place]
    stop, step = position, _FIRST_STEP
    with PartitionLogs(*reader.link.source) as logs:
        while left and stop > start and step <= _MOST_OFFSETS:
            begin = max(start, stop - step)
            look(list(read_log(logs, place, begin, stop)))
            stop, step = begin, 4 * step
    return {**dict.fromkeys(left, None if stop > start else False), **found}


def _ended(reader: TailReader, producers: set[int], since_ms: int) -> tuple[Mapping[int, Sequence[Ended]], set[int]]:
    """Return the producers' transactions in order, as far back as the log has each step; and the producers whose last
    transaction has not fully ended."""
    facts = reader.source.observe(lambda _: False).topics.get(_LOG)
    if facts is None:
        raise NotAuthorized(
            reader.link.source.name, f"topic {_LOG} is not visible", hint="grant READ and DESCRIBE on it"
        )
    places = [TopicPartition(_LOG, number) for number in range(facts.partitions)]
    ends = reader.source.offsets(places, "latest")
    starts = reader.source.offsets_since_each(dict.fromkeys(places, since_ms)).or_raise()
    ranges = {place: (starts[place] if starts[place] >= 0 else ends[place], ends[place]) for place in places}
    steps: dict[TopicPartition, list[TransactionStep]] = defaultdict(list)
    following = {place: first for place, (first, _) in ranges.items()}
    for message in read_ranges(*reader.link.source, ranges):
        place = TopicPartition(message.topic() or "", message.partition() or 0)
        if message.offset() != following[place]:
            steps[place].clear()  # compaction has removed steps, so the steps before are incomplete
        following[place] = (message.offset() or 0) + 1
        step = read_step(message.key(), message.value())
        if step is not None and step.producer_id in producers:
            steps[place].append(step)
    return _transactions(step for of_place in steps.values() for step in of_place)


def _transactions(steps: Iterable[TransactionStep]) -> tuple[dict[int, list[Ended]], set[int]]:
    found: dict[int, list[Ended]] = defaultdict(list)
    unended: set[int] = set()
    for step in steps:
        producer = step.producer_id
        if step.state in COMPLETE:
            unended.discard(producer)
        elif step.state in (PREPARE_COMMIT, PREPARE_ABORT):
            if producer in unended:
                found[producer].pop()  # the same transaction, written again
            unended.add(producer)
            partitions = frozenset(TopicPartition(*place) for place in step.partitions)
            is_commit = step.state == PREPARE_COMMIT
            found[producer].append(Ended(step.transactional_id, producer, is_commit, partitions, step.at_ms))
    return dict(found), unended


def _still_writing(reader: TailReader, parts: Mapping[TopicPartition, TailPart], producers: set[int]) -> set[int]:
    """Return producers that have ended a transaction since the source was read: the transaction log includes later
    ones."""
    found: set[int] = set()
    with PartitionLogs(*reader.link.source) as logs:
        for place, batches in reader.batches(parts).items():
            read_to = batches[-1].next if batches else parts[place].range[0]
            found |= {batch.producer_id for batch in read_log(logs, place, read_to) if batch.control}
    return found & producers
