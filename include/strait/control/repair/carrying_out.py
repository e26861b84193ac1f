"""Carries out repairs: the link is at rest, and both topics are those that the audit compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from strait.audit.link_state import Ends
from strait.audit.observing import require_same_topics
from strait.control.repair.appending import append_newest
from strait.control.repair.copying import TopicCopy
from strait.control.repair.plan import RepairPlan, TopicRepair
from strait.control.resumption import ResumePoint, resumption
from strait.control.tail_drop import require_at_rest
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.state.link_handle import ConfiguredLink

DOING = "repairing its topics"


@dataclass(frozen=True)
class Repaired:
    """The result of one topic's repair.

    Attributes:
        records: written to the topic ``into``.
        groups: group -> number of its offsets that were committed there.
        groups_left: group -> why some of its offsets were not.
    """

    topic: str
    into: str
    way: str
    records: int
    groups: Mapping[str, int]
    groups_left: Mapping[str, str]


def repair(link: ConfiguredLink, plan: RepairPlan, show: Callable[[str], None]) -> list[Repaired]:
    """Repair the topics.

    Raises:
        ConfigError: the link is not stopped, its position is unknown, others may write to a destination topic, or a topic to be written
            exists already.
        PlanConflict: another process has taken over the control of the link.
        StateError: a record that is needed is damaged or was deleted meanwhile, a log ends before it, or the written topic is
            not as it should be; it is then left as it is.
        ClusterUnavailable, NotAuthorized
    """
    source, destination = link.admin("source"), link.admin("destination")
    ends = Ends(link.source.name, link.source.properties, link.destination.name, link.destination.properties)
    require_same_topics(ends, plan.audit)
    require_at_rest(link, [], DOING)
    points = _points(resumption(link, source, destination).points, plan)
    for one in plan.topics:
        _require_own(one, points)
    done = []
    for one in plan.topics:
        if one.way == "append":
            appended = append_newest(link, one, points, show)
            done.append(Repaired(one.topic, one.into, one.way, appended, {}, {}))
        else:
            written = TopicCopy(link, plan.audit, one, points, show).carry_out()
            done.append(Repaired(one.topic, one.into, one.way, written.records, written.groups, written.groups_left))
    return done


def _require_own(one: TopicRepair, points: Mapping[TopicPartition, ResumePoint]) -> None:
    """Require that no other producer was or is permitted to write to the destination topic: its records are not on the source,
    so a new topic would lack them, and the source's values would replace newer ones."""
    others = [
        part.name
        for part in one.partitions
        if part.on_foreign or points[TopicPartition(part.topic, part.partition)].topic.policy.on_foreign != "halt"
    ]
    if others:
        raise ConfigError(
            f"topic {one.copy}",
            [f"{', '.join(others)}: other producers may write there (`on_foreign`), and the repair would undo it"],
            hint="export the records that are missing with `strait audit export`; nothing was written",
        )


def _points(found: Sequence[ResumePoint], plan: RepairPlan) -> dict[TopicPartition, ResumePoint]:
    wanted = {one.topic for one in plan.topics}
    points = {point.place: point for point in found if point.place.topic in wanted}
    unknown = [f"{place}: {point.detail}" for place, point in points.items() if point.offset is None or not point.exact]
    lacking = [
        f"{one.name}: the link does not replicate it now"
        for repair in plan.topics
        for one in repair.partitions
        if TopicPartition(one.topic, one.partition) not in points
    ]
    if unknown or lacking:
        raise ConfigError(f"link {plan.audit.link}: {DOING}", [*unknown, *lacking])
    return points
