"""Results of the steps of a failover, derived from observations. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from strait.config.route_names import place_of
from strait.errors import StraitError
from strait.model import TopicAcl, TopicPartition
from strait.planning.status.figures import records_behind
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import known_total
from strait.planning.waves import WHOLE_LINK, Wave, wave_of
from strait.reasons import Reason
from strait.state.failover_records import Failover, MissingRecords
from strait.text import duration, listed, plural, utc

Ends = Mapping[TopicPartition, int]


class Verdict(StrEnum):
    """Result of a step."""

    DONE = "done"
    WARNING = "warning"  # it holds, with a note for the operator
    WAITING = "waiting"  # not yet; another check may succeed
    FAILED = "failed"


class Check(NamedTuple):
    """Result of a step, with a detail for operators."""

    verdict: Verdict
    detail: str


_BY_URGENCY = (Verdict.FAILED, Verdict.WAITING, Verdict.WARNING, Verdict.DONE)


def together(checks: Iterable[Check]) -> Check:
    """Return several checks of one step as one: the most urgent verdict, and all details, most urgent first."""
    found = sorted(checks, key=lambda check: _BY_URGENCY.index(check.verdict))
    return Check(found[0].verdict, "; ".join(check.detail for check in found))


class Writer(NamedTuple):
    """A producer that wrote to a partition. ``open_since``: offset of the start of its open transaction; -1: none."""

    producer_id: int
    last_ms: int
    open_since: int


class Member(NamedTuple):
    """A consumer in a group."""

    client_id: str
    host: str

    def __str__(self) -> str:
        return f"{self.client_id} at {self.host.lstrip('/')}"


class Attached(NamedTuple):
    """The groups that have members on the source: on the topics that are moved, or on unknown ones.

    Attributes:
        members: of each group; empty: they are not known.
        unknown: those of the groups whose topics are unknown -> why.
    """

    members: Mapping[str, Sequence[Member]]
    unknown: Mapping[str, str]

    @property
    def all_unknown(self) -> bool:
        """Whether no group is known to work on the topics."""
        return self.members.keys() <= self.unknown.keys()


def copying(
    rows: Sequence[PartitionStatus],
    *,
    stopped: bool,
    pending: Sequence[str],
    patient: bool = False,
    wave: Wave = WHOLE_LINK,
    moved: Collection[str] = (),
) -> Check:
    """Check that all partitions to be moved are being replicated. A slot that was just started may do so soon.

    Args:
        rows: all of these partitions, from the link's plans.
        pending: changes that a new plan would make.
        patient: whether a slot that does not report may still report later.
        moved: topics that earlier waves have moved.
    """
    if stopped:
        return Check(Verdict.FAILED, "the link is stopped, so what is missing will not be copied: run strait start")
    if not rows and moved and not wave:
        return Check(Verdict.DONE, f"waves have moved all that the link copies: {listed(sorted(moved))}")
    if not rows and wave:
        before = sorted(topic for topic in moved if wave.takes(topic))
        text = f"the link copies no topic for {wave}" + (f" but those moved before: {listed(before)}" if before else "")
        return Check(Verdict.FAILED, text)
    if not rows:
        return Check(Verdict.FAILED, "the link has no plan with topics")
    if pending:
        return Check(Verdict.FAILED, f"run strait apply first, since the plan would change: {listed(pending)}")
    left = [row for row in rows if row.state in ("waiting", "starting") and row.reason != Reason.OPEN_TRANSACTION]
    if left:
        shown = [f"{_place(row)} {row.reason or row.state}" for row in left]
        passing = all(row.state == "starting" or (patient and row.reason == Reason.SLOT_SILENT) for row in left)
        verdict = Verdict.WAITING if passing else Verdict.FAILED
        return Check(
            verdict, f"{len(left)} of {plural(len(rows), 'partition is', 'partitions are')} not copied: {listed(shown)}"
        )
    lag = records_behind(known_total((row.lag_records for row in rows), 0), sum(row.lag_records < 0 for row in rows))
    text = f"{plural(len(rows), 'partition is', 'partitions are')} copied, {lag}"
    if over := sum(row.reason == Reason.FINISHED for row in rows):
        text += f"; {over} only up to their `until`, and nothing of what was written to the source afterwards"
    held = [row for row in rows if row.reason == Reason.OPEN_TRANSACTION]
    notes = []
    if held:
        places = listed([f"{_place(row)} {row.held_back_records:,}" for row in held])
        notes.append(f"open transactions hold records back in {len(held)} of them: {places}")
    return Check(Verdict.WARNING if notes else Verdict.DONE, "; ".join([text, *notes]))


def transformed(names: Collection[str], destination: str, *, accept: bool) -> Check:
    """Check that clients find the source's records on the destination. They do not if a rule transforms them: its result is no
    replacement, and records that it leaves out or masks are on the source alone.

    Args:
        names: topics whose records a rule transforms, or routes.
        accept: continue although there are some.
    """
    text = f"{destination} has only what a rule's `transform` makes of {listed(sorted(names))}"
    if accept:
        return Check(Verdict.WARNING, text)
    return Check(Verdict.FAILED, f"{text}, and clients that move read and write there: --accept-transformed goes on")


def still(before: Ends, after: Ends, writers: Mapping[TopicPartition, Sequence[Writer]], now_ms: int) -> Check:
    """Check that no client writes to the source any more.

    Args:
        before, after: end offsets of its partitions, the required time apart.
        writers: the producers whose state the partition leaders hold.
    """
    grown = sorted(place for place in after if after[place] != before.get(place))
    if grown:
        shown = [
            f"{place} by {after[place] - before.get(place, 0):,}{_newest(writers, place, now_ms)}" for place in grown
        ]
        return Check(Verdict.WAITING, f"producers still write to {plural(len(grown), 'partition')}: {listed(shown)}")
    unfinished = [
        f"{place} from offset {writer.open_since:,} by producer id {writer.producer_id}"
        for place in sorted(after)
        for writer in writers.get(place, ())
        if writer.open_since >= 0
    ]
    if unfinished:
        return Check(
            Verdict.WAITING,
            f"{plural(len(unfinished), 'transaction is', 'transactions are')} open: {listed(unfinished)}",
        )
    return Check(Verdict.DONE, f"nothing was written to {plural(len(after), 'partition')}")


def open_topics(topics: Collection[str], rules: Collection[TopicAcl]) -> list[str]:
    """Return the topics for which no ACL allows anything: on some clusters, every client may use them; on others, only
    superusers, to whom no ACL applies."""

    def about(rule: TopicAcl, topic: str) -> bool:
        return topic.startswith(rule.name) if rule.pattern == "PREFIXED" else rule.name in (topic, "*")

    allowing = [rule for rule in rules if rule.permission == "ALLOW"]
    return [topic for topic in sorted(topics) if not any(about(rule, topic) for rule in allowing)]


def fence_for_all(topics: Sequence[str]) -> Check:
    """Return why these topics are not fenced: with a first ACL, everything that no ACL allows would be denied."""
    text = f"{plural(len(topics), 'topic has', 'topics have')} no ACL that allows anything: {listed(topics)}"
    effect = "with allow.everyone.if.no.acl.found=true a DENY refuses everybody there, this link and consumers too"
    ways = "give ALLOW rules to those who shall go on, or stop the producers and use no --fence"
    return Check(Verdict.FAILED, f"{text}; {effect}: {ways}")


def fence_that_is_copied(destination: str) -> Check:
    """Explain why nothing is fenced: the rules would follow the clients."""
    text = f"acls.sync would copy the DENY rules to {destination}, and lock the producers out there, too"
    return Check(Verdict.FAILED, f"{text}: set acls.sync: false first, or stop the producers and use no --fence")


def still_moved(link: str, topics: Collection[str]) -> Check:
    """Explain that the opposite link does not copy these topics, since its own waves have moved them."""
    names = sorted(topics)
    text = f"link {link} does not copy {len(names)} of these topics since they moved: {listed(names)}"
    return Check(Verdict.FAILED, f"{text}; strait resume {link} {names[0]} lets it copy one again")


def done_before(record: Failover) -> Check:
    """Return a warning that nothing is drained and stopped again."""
    at = utc(record.ended_at_ms or record.began_at_ms)
    since = "its topics are paused" if wave_of(record) else "the link is stopped"
    text = f"{called(record)} {record.id} was done at {at} UTC, and {since} since: it is not gone through again"
    return Check(Verdict.WARNING, text)


def drained(rows: Sequence[PartitionStatus], ends: Ends) -> Check:
    """Check that all records up to the source's end offsets ``ends`` are replicated."""
    at = {TopicPartition(row.topic, row.partition): row for row in rows if row.partition is not None}
    behind = []
    for place, end in sorted(ends.items()):
        row = at.get(place)
        if row is None or row.position < end:
            why = "not planned" if row is None else row.reason or row.state
            left = "" if row is None or row.position < 0 else f" {plural(end - row.position, 'offset')} behind"
            behind.append(f"{place}{left} ({why})")
    if behind:
        return Check(
            Verdict.WAITING,
            f"{len(behind)} of {plural(len(ends), 'partition is', 'partitions are')} not drained: {listed(behind)}",
        )
    return Check(Verdict.DONE, f"{plural(len(ends), 'partition is', 'partitions are')} copied to their ends")


def attached(found: Attached) -> Check:
    """Check that no consumer of a synchronized group still works on the source."""
    shown = [
        f"{group}: {listed([str(member) for member in found.members[group]] or ['?'])}"
        + (f" ({found.unknown[group]})" if group in found.unknown else "")
        for group in sorted(found.members)
    ]
    if shown:
        return Check(
            Verdict.WAITING, f"{plural(len(shown), 'group has', 'groups have')} members on the source: {listed(shown)}"
        )
    return Check(Verdict.DONE, "no synchronized group has members on the source")


def opposite(record: Failover) -> Check:
    """Return a failure, since a failover in the other direction is running: each would stop the link that the other one
    needs."""
    at = utc(record.began_at_ms)
    text = f"link {record.link}: failover {record.id}, which {record.by} began at {at} UTC, is not over"
    ways = f"strait failover {record.link} goes on with it, with --unfence it is given up if it has stopped nothing"
    return Check(Verdict.FAILED, f"{text}: {ways}")


def tail(
    link: str,
    found: Sequence[MissingRecords],
    *,
    stopped: bool,
    accept: bool,
    paused: Collection[str] = (),
    unread: Collection[StraitError] = (),
) -> Check:
    """Check that the opposite link has replicated all records of the destination. Clients would meet the remaining ones
    there out of order: records that were written before an earlier failover, and that no client has seen since.

    Args:
        accept: continue although there are some.
        paused: topics that it does not replicate now.
        unread: for each partition whose end offset on the destination could not be read, the reason.
    """
    parts = []
    if found:
        ranges = listed([range_of(item) for item in found])
        parts.append(f"link {link} has not copied {plural(records(found), 'offset')}: {ranges}")
    if unread:
        ends = plural(len(unread), "partition, whose end offset", "partitions, whose end offsets")
        parts.append(
            f"link {link} may not have copied {ends} cannot be read: {listed([error.message for error in unread])}"
        )
    if not parts:
        return Check(Verdict.DONE, f"link {link} has copied all that the destination has")
    text = "; ".join(parts)
    if accept:
        return Check(Verdict.WARNING, text)
    held = sorted({item.topic for item in found} & set(paused))
    if stopped or held:
        copies = f"strait start {link}" if stopped else f"strait resume {link} {held[0]}"
        ways = f"{copies} copies them, strait tail list {link} names them, --accept-tail goes on without them"
        return Check(Verdict.FAILED, f"{text}; {ways}")
    return Check(Verdict.WAITING, text)


def called(record: Failover) -> str:
    """Return the kind of a failover in words."""
    return record.kind if record.kind == "rehearsal" else f"{record.kind} failover"


def summary(record: Failover) -> str:
    """Return a failover in one line."""
    ended = "" if record.rto_seconds is None else f" in {record.rto_seconds:,.1f} s"
    part = f" of {wave}" if (wave := wave_of(record)) else ""
    text = f"link {record.link}: {called(record)} {record.id}{part} from {record.source} to {record.destination}: "
    text += f"{record.outcome}{ended}"
    if record.rpo_records is not None:
        text += f"; missing: {plural(record.rpo_records, 'offset')}"
    elif record.outcome == "done" and record.kind == "unplanned":
        text += f"; missing: at least {plural(records(record.missing), 'offset')}, and how many more is not known"
    if record.rpo_seconds is not None:
        text += f", at most {record.rpo_seconds:,.1f} s"
    if record.groups is not None:
        text += f"; consumer groups that continue exactly: {record.groups_exact} of {record.groups}"
    return text if record.score is None else f"{text}; {record.score} % of the steps hold"


def records(found: Iterable[MissingRecords]) -> int:
    """Return the number of offsets of the source; those of markers and of compacted records are included. An offset that
    several routes lack counts once, since its record is on one of them."""
    behind: dict[TopicPartition, int] = {}
    total = 0
    for item in sorted(found, key=lambda item: item.from_offset):
        place = place_of(TopicPartition(item.topic, item.partition))
        total += max(0, item.to_offset - max(item.from_offset, behind.get(place, 0)))
        behind[place] = max(item.to_offset, behind.get(place, 0))
    return total


def _place(row: PartitionStatus) -> str:
    return row.topic if row.partition is None else f"{row.topic}-{row.partition}"


def range_of(item: MissingRecords) -> str:
    """Return the offsets as text for operators."""
    return f"{item.topic}-{item.partition} from {item.from_offset:,} to {item.to_offset - 1:,}"


def _newest(writers: Mapping[TopicPartition, Sequence[Writer]], place: TopicPartition, now_ms: int) -> str:
    """Return the last producer that wrote, if a leader knows it; producers without idempotence have no ID."""
    found = max(writers.get(place, ()), key=lambda writer: writer.last_ms, default=None)
    if found is None:
        return ""
    return f" (producer id {found.producer_id}, last record {duration(max(0, now_ms - found.last_ms) / 1000)} old)"
