"""Where quarantined records may be replayed into. Pure.

To the link a replayed record is a stranger's: it has another producer, and a place that no source offset has. Where the
policy halts at strangers, replaying into the copy would stop it; so that is refused beforehand.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from strait.config import naming
from strait.errors import ConfigError
from strait.model import TopicFacts
from strait.state.quarantine_log import Entry
from strait.state.schema import Plan, PlannedTopic


def in_source_order(entries: Iterable[Entry]) -> list[Entry]:
    """In the order of the quarantine topic, but those of one source partition by their offsets: a slot puts aside what is
    too large when it reads it, and what the destination refuses only then."""
    written = sorted(entries, key=lambda entry: entry.at)
    of_partition: dict[tuple[str, int], deque[Entry]] = defaultdict(deque)
    for entry in sorted(written, key=lambda entry: entry.offset):
        of_partition[entry.topic, entry.partition].append(entry)
    return [of_partition[entry.topic, entry.partition].popleft() for entry in written]


def targets(
    entries: Sequence[Entry], to: str | None, plans: Iterable[Plan], destination: Mapping[str, TopicFacts]
) -> dict[str, str]:
    """Source topic -> the destination topic to write into.

    Args:
        to: the topic that a person names; None: each record's own destination.
        plans: those in force, of every task group: a topic is in that of each which copies some of it.
        destination: every topic of the destination cluster.

    Raises:
        ConfigError: with every reason why not.
    """
    planned = {topic.destination: topic for plan in plans for topic in plan.topics}
    highest: dict[tuple[str, str], int] = {}
    for entry in entries:
        pair = entry.topic, to or entry.destination
        highest[pair] = max(entry.partition, highest.get(pair, 0))
    problems = [
        problem
        for (_, target), partition in sorted(highest.items())
        if (problem := _unfit(target, partition, planned.get(target), destination.get(target), to is not None))
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
        return f"topic {target} has {facts.partitions} partitions, and records are of partition {partition}"
    if copied is None and not is_named:
        return f"no plan of the link writes into {target} now; name it with --to if it is meant"
    if copied is not None and copied.policy.on_foreign == "halt":
        return (
            f"{target} is a copy of {copied.source} that halts at records which are not the link's own; "
            "name another topic with --to, or give it `on_foreign: continue`"
        )
    return None
