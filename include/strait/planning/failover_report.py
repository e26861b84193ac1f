"""Report on a failover for operators and programs: safe and lost data, the position of each group, the next steps, and
the changes that remain. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from strait.model import TopicPartition
from strait.planning.consumer_groups import GroupStatus, reserved
from strait.planning.failover import records
from strait.planning.failover_groups import moved
from strait.planning.held_elsewhere import described
from strait.planning.recovery_point import LastWords, not_copied
from strait.state.failover_records import Continues, Failover, FailoverGroup, FailoverTopic, MissingRecords
from strait.state.group_sync_records import GroupSyncReport
from strait.text import duration, listed, plural

_WORDS: Mapping[Continues, str] = {
    "exactly": "continue exactly where they stopped",
    "in_sync": "were in sync at the last look at the source, and consume again what they consumed after it",
    "further": "have consumed on the destination before, and continue there",
    "elsewhere": "do not continue exactly",
    "not_moved": "are not moved",
    "unknown": "have an offset on the destination; whether they were in sync is not known",
}
_UNREAD = "may have offsets on the destination, but these could not be read"
_NOTHING: Mapping[str, str] = {}


def groups_of(statuses: Sequence[GroupStatus]) -> tuple[FailoverGroup, ...]:
    """Return every group of the source with offsets in the link's topics."""

    def continues(status: GroupStatus) -> Continues:
        if not status.selected or reserved(status.group):
            return "not_moved"
        if status.synced:
            return "exactly"
        return "further" if moved(status) else "elsewhere"

    return tuple(
        FailoverGroup(
            group=status.group,
            continues=continues(status),
            why="" if status.synced else status.why,
            rereads=status.rereads,
            outside=status.outside,
        )
        for status in statuses
    )


def groups_known(
    report: GroupSyncReport | None, there: Collection[str], unread: Mapping[str, str] = _NOTHING
) -> tuple[FailoverGroup, ...]:
    """Return the groups if the source cannot be queried.

    Args:
        report: of the last check of the source; it names some of the groups that were not in sync.
        there: groups with offsets in the destination topics.
        unread: groups whose offsets on the destination cannot be read -> name of the error.
    """
    out = {} if report is None else {item.group: item.why for item in report.out_of_sync}
    names = [name for name in sorted({*there, *out, *unread}) if not reserved(name)]
    # A report names no group that was in sync. So if there are more groups than it counted, it does not know some of
    # them: they have committed since, or belong to the destination.
    all_named = report is not None and len(out) == report.groups - report.in_sync and len(names) <= report.groups

    def continues(name: str) -> Continues:
        return "elsewhere" if name in out else "in_sync" if all_named and name not in unread else "unknown"

    return tuple(
        FailoverGroup(group=name, continues=continues(name), why=out.get(name, unread.get(name, ""))) for name in names
    )


def topics_of(
    places: Collection[TopicPartition], missing: Sequence[MissingRecords], words: LastWords | None, at_ms: int
) -> tuple[FailoverTopic, ...]:
    """Return the offsets that each topic lacks on the destination.

    Args:
        words: the last report of each partition; None: the source itself was queried.
    """
    lost = Counter[str]()
    for item in missing:
        lost[item.topic] += item.to_offset - item.from_offset
    still = not_copied(words) if words is not None else {}
    by_topic: dict[str, list[TopicPartition]] = defaultdict(list)
    for place in sorted(places):
        by_topic[place.topic].append(place)
    found = []
    for topic, of_topic in by_topic.items():
        why = sorted({still[place] for place in of_topic if place in still})
        seconds: float | None = None if lost[topic] else 0.0
        if words is not None:
            bounds = [words[place].bound_seconds(at_ms) for place in of_topic]
            known = [bound for bound in bounds if bound is not None]
            seconds = round(max(known, default=0.0), 3) if len(known) == len(bounds) else None
        found.append(
            FailoverTopic(
                topic=topic, partitions=len(of_topic), missing=lost[topic], seconds=seconds, not_copied=", ".join(why)
            )
        )
    return tuple(found)


def screen_parts(record: Failover, servers: str) -> dict[str, list[str]]:
    """Return the lines for operators, by subject.

    Args:
        servers: the destination's addresses; empty: not named.
    """
    return {
        "safe": [_safe(record)],
        "lost": _lost(record),
        "groups": _groups(record),
        "next": next_steps(record, servers),
        "left": left_behind(record),
    }


def screen(record: Failover, servers: str) -> list[str]:
    """Return one screen of text for operators, shown below the summary. ``servers``: the destination's addresses."""
    parts = screen_parts(record, servers)
    width = max(map(len, parts))
    return [
        f"  {name if number == 0 else '':{width}}  {line}"
        for name, lines in parts.items()
        for number, line in enumerate(lines)
    ]


def next_steps(record: Failover, servers: str) -> list[str]:
    """Return the next steps of the operator."""
    who = "producers and consumers" + (" of these topics" if record.wave_topics else "")
    steps = [f"start {who} on {record.destination}" + (f": bootstrap.servers={servers}" if servers else "")]
    waiting = [group for group in record.group_list if group.continues in ("elsewhere", "unknown")]
    if waiting:
        names = listed([group.group for group in waiting])
        steps.append(f"before their consumers start, look at the offsets of {plural(len(waiting), 'group')}: {names}")
    if record.kind == "unplanned":
        steps += described(record.link, record.held_elsewhere)
        steps.append(f"once {record.source} is back: strait tail list {record.link} names what never arrived")
    elif record.missing:
        late = sorted({item.topic for item in record.missing})
        copies = f"strait resume {record.link} {late[0]}" if record.wave_topics else f"strait start {record.link}"
        steps.append(f"{copies} copies what was written to {record.source} too late")
    if record.topics_left:
        text = f"link {record.link} still copies {plural(record.topics_left, 'other topic')}: strait failover {record.link} moves them"
        steps.append(f"{text}, with --topics some of them")
    part = f", with --topics for the names on {record.destination}" if record.wave_topics else ""
    steps.append(f"to go back later: strait failback {record.link}{part}, and a link in the opposite direction")
    return steps


def left_behind(record: Failover) -> list[str]:
    """Return the changes of the failover that remain, each with the way to undo it."""
    if record.wave_topics:
        names = listed([item.topic for item in record.topics])
        how = f"strait resume {record.link} TOPIC lets it copy one again"
        left = [f"{plural(len(record.topics), 'topic is', 'topics are')} paused on link {record.link}: {names}: {how}"]
    else:
        left = [f"link {record.link} is stopped: strait start {record.link} lets it copy again"]
    if record.still_paused:
        text = f"{plural(len(record.still_paused), 'topic that earlier waves moved is', 'topics that earlier waves moved are')} still paused: {listed(record.still_paused)}"
        left.append(f"{text}: strait start copies none of them before strait resume {record.link} TOPIC")
    if record.fence:
        principals = listed(sorted({rule.principal for rule in record.fence}))
        text = f"{plural(len(record.fence), f'ACL on {record.source} denies', f'ACLs on {record.source} deny')} {principals} to write"
        left.append(f"{text}: strait failover {record.link} --unfence removes them")
    return left


def _safe(record: Failover) -> str:
    topics = record.topics
    whole = [item.topic for item in topics if not item.missing and not item.not_copied]
    made = [name for name in whole if name in record.transformed]
    text = f"{len(whole) - len(made)} of {plural(len(topics), 'topic')}: {record.destination} has every record that "
    if record.kind == "planned":
        text = f"{text}{record.source} had" + ("" if _verified(record) else " when its producers had stopped")
    else:
        text = f"{text}the link had seen on {record.source}"
    return text + (f"; of {listed(made)} it has what the rule's `transform` makes of each" if made else "")


def _verified(record: Failover) -> bool:
    """Return whether the source was queried again after the stop."""
    return record.rpo_records is not None


def _lost(record: Failover) -> list[str]:
    lines = _lost_on_the_way(record)
    if record.transformed:
        lines.append(
            f"what a rule's `transform` leaves out or replaces in {listed(record.transformed)} is on {record.source} alone"
        )
    return lines


def _lost_on_the_way(record: Failover) -> list[str]:
    short = [item for item in record.topics if item.missing or item.not_copied]
    if record.kind == "planned":
        if not _verified(record):
            return [f"whether anything was written to {record.source} after its producers had stopped is not known"]
        if not short:
            return ["nothing on the way" if record.transformed else "nothing"]
        return [
            f"nothing, but {plural(records(record.missing), 'offset is', 'offsets are')} on {record.source} alone: {_by_topic(short)}"
        ]
    much = (
        "how much is not known" if record.rpo_seconds is None else f"at most {duration(record.rpo_seconds)} of records"
    )
    lines = [f"what was written to {record.source} after the link's last look at it: {much}"]
    if short:
        number = "" if record.rpo_records is not None else "at least "
        lines.append(
            f"{number}{plural(records(record.missing), 'offset that was', 'offsets that were')} seen: {_by_topic(short)}"
        )
    return lines


def _by_topic(short: Sequence[FailoverTopic]) -> str:
    def described(item: FailoverTopic) -> str:
        parts = [f"{item.topic} {item.missing:,}"]
        if item.seconds:
            parts.append(f"at most {duration(item.seconds)}")
        if item.not_copied:
            parts.append(f"was not copied: {item.not_copied}")
        return parts[0] + (f" ({'; '.join(parts[1:])})" if parts[1:] else "")

    return listed([described(item) for item in sorted(short, key=lambda item: -item.missing)])


def _groups(record: Failover) -> list[str]:
    if not record.group_list:
        return ["none is known to have offsets in the link's topics"]
    lines = []
    for words in (*_WORDS.values(), _UNREAD):
        found = [group for group in record.group_list if _words(group) == words]
        if found:
            names = [f"{group.group} ({group.why})" if group.why else group.group for group in found]
            lines.append(f"{len(found)} of {len(record.group_list)} {words}: {listed(names)}")
    outside = [group for group in record.group_list if group.outside and group.continues != "not_moved"]
    if outside:
        names = [f"{group.group} ({listed(group.outside)})" for group in outside]
        lines.append(
            f"{plural(len(outside), 'has', 'have')} offsets in topics that the link does not copy, left there: {listed(names)}"
        )
    return lines


def _words(group: FailoverGroup) -> str:
    return _UNREAD if group.continues == "unknown" and group.why else _WORDS[group.continues]
