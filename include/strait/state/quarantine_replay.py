"""Topics into which quarantined records may be replayed. Pure.

To the link a replayed record is a foreign record: it has another producer, and corresponds to no source offset. If
`on_foreign` is `halt`, a replay into the destination topic would stop it, so it is rejected beforehand.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from strait.config import naming
from strait.errors import ConfigError
from strait.model import TopicFacts
from strait.reasons import Reason
from strait.state.quarantine_log import Entry
from strait.state.schema import Plan, PlannedTopic
from strait.text import plural


def in_source_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries in the order of the quarantine topic, but those of one source partition by their offsets.

    A slot quarantines a record that is too large when it reads it, one that the destination rejects only later.
    """
    written = sorted(entries, key=lambda entry: entry.at)
    of_partition: dict[tuple[str, int], deque[Entry]] = defaultdict(deque)
    for entry in sorted(written, key=lambda entry: entry.offset):
        of_partition[entry.topic, entry.partition].append(entry)
    return [of_partition[entry.topic, entry.partition].popleft() for entry in written]


def targets(
    entries: Sequence[Entry],
    to: str | None,
    plans: Iterable[Plan],
    destination: Mapping[str, TopicFacts],
    unread: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return source topic -> the destination topic to write to.

    Args:
        to: the topic that the operator names; None: each record's own destination.
        plans: the current plans of all task groups; a topic is in the plan of each task group that copies part of it. With
            ``to``, those of other links into the cluster, too.
        destination: every topic of the destination cluster.
        unread: other link into the cluster, as `OtherLinks` names it -> why its plans are unknown. It may replicate to ``to``, and halt.

    Raises:
        ConfigError: the records may not be replayed; it lists every reason.
    """
    topics = [topic for plan in plans for topic in plan.topics]
    planned = {
        topic.destination: topic for topic in sorted(topics, key=lambda topic: topic.policy.on_foreign == "halt")
    }
    highest: dict[tuple[str, str], int] = {}
    for entry in entries:
        pair = entry.topic, to or entry.destination
        highest[pair] = max(entry.partition, highest.get(pair, 0))
    problems = [
        problem
        for (_, target), partition in sorted(highest.items())
        if (problem := _unfit(target, partition, planned.get(target), destination.get(target), to is not None))
    ]
    problems += [f"whether {other} replicates to {to}, too, is unknown: {why}" for other, why in unread.items()]
    problems += [
        f"{entry}: its content was not set aside, as a record that cannot be parsed cannot be masked; it is on the source alone"
        for entry in entries
        if entry.reason == Reason.MALFORMED_RECORD
    ]
    if problems:
        raise ConfigError("quarantine replay", list(dict.fromkeys(problems)))
    return dict(highest.keys())


def _unfit(
    target: str, partition: int, copied: PlannedTopic | None, facts: TopicFacts | None, is_named: bool
) -> str | None:
    if naming.is_internal(target):
        return f"{target} is an internal topic"
    if facts is None:
        return f"the destination has no topic {target}; create it, or name another one with --to"
    if partition >= facts.partitions:
        return f"topic {target} has {plural(facts.partitions, 'partition')}, and records are of partition {partition}"
    if copied is None and not is_named:
        return f"no plan of the link writes into {target} now; name it with --to if it is meant"
    if copied is not None and copied.policy.on_foreign == "halt":
        return (
            f"{target}: replayed records would halt the replication of {copied.source} (on_foreign: halt); "
            "name another topic with --to, or give it `on_foreign: continue`"
        )
    return None
