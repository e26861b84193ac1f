"""Offsets of topics that two links replicate in opposite directions, translated with both links' state and both logs.

Observe, then translate (`strait.planning.two_way`). The link back is found in the source cluster's `strait.producers`,
and its plan, map and reports are on the same cluster. The order of queries matters: first the source's log, to count
the link back's records that the group has seen, then the map of the link back, which covers each of these by then, last
the destination's log.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

from strait.config import naming
from strait.config.cluster import Cluster
from strait.config.route_names import topic_of
from strait.consumer_groups.offsets import Offsets
from strait.consumer_groups.translating import Known, result
from strait.errors import NotAuthorized, StateError
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs
from strait.planning.two_way import (
    Copies,
    Log,
    NotExact,
    Progress,
    Writer,
    continuation,
    obstacle,
)
from strait.state.link_handle import LinkHandle
from strait.state.reader import StateReader
from strait.state.registrations import registrations
from strait.state.schema import Plan, Registration
from strait.state.translation import Fit, Translation, Translator

_REMEMBERED_SECONDS = 10.0
"""How long the information which links write to which topics is cached."""


class _Link(NamedTuple):
    """A link in a cluster's registry; ``plans`` None: they may not be read."""

    registration: Registration
    plans: Mapping[str, Plan] | None

    def writer(self, destination: str) -> Writer | None:
        """Return the link as a writer of a topic; None: it never wrote there. A registration with another producer ID
        than the plans' is from before the link was recreated."""
        if self.plans is None:
            return Writer(self.registration, None)
        plans = self.plans.values()
        mine = [plan for plan in plans if plan.producer_id == self.registration.producer_id]
        if plans and not mine:
            return Writer(self.registration, None)
        topic = next((one for plan in mine for one in plan.topics if one.destination == destination), None)
        left = any(one.destination == destination for plan in plans for one in plan.left)
        return Writer(self.registration, topic) if topic or left else None


class TwoWay:
    """For one link. Keeps its connections until its context is left.

    Raises (every method): ClusterUnavailable, NotAuthorized, StateError.
    """

    def __init__(self, link: LinkHandle, offsets: Offsets) -> None:
        self._link = link
        self._offsets = offsets
        self._here = PartitionLogs(*link.source)
        self._there = PartitionLogs(*link.destination)
        self._back: dict[str, Offsets] = {}
        self._registers: tuple[list[_Link], list[_Link]] = [], []
        self._unread = ""
        self._until = 0.0
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._until = 0.0
        self._back.clear()
        self._open.close()
        for logs in (self._here, self._there):
            logs.__exit__(kind, error, trace)

    def resolved(self, translations: Sequence[Translation]) -> list[Translation]:
        """Return the translations; those that depend on other producers' records are resolved by both links if
        possible."""
        asked = {
            (TopicPartition(one.topic, one.partition), one.offset)
            for one in translations
            if one.shared and one.to_offset is not None
        }
        if not asked:
            return list(translations)
        self._read_registers()
        forward = self._offsets.known({place for place, _ in asked}, reverse=False)
        pairs: dict[str, str] = {}
        refused: dict[str, str] = {}
        for known in forward.values():
            link, why = self._link_back(known)
            (refused if why else pairs)[known.topic.source] = why or link
        found = {item: _held(*item, forward[item[0]], refused.get(item[0].topic, "")) for item in asked}
        for link in sorted(set(pairs.values())):
            found |= self._by_link(link, {item for item in asked if pairs.get(item[0].topic) == link}, forward)
        return [found.get((TopicPartition(one.topic, one.partition), one.offset), one) for one in translations]

    # --- the link back ------------------------------------------------------------------------------------------------

    def _read_registers(self) -> None:
        if time.monotonic() < self._until:
            return
        self._unread = ""
        self._registers = self._register(self._link.source), self._register(self._link.destination)
        self._until = time.monotonic() + _REMEMBERED_SECONDS

    def _register(self, cluster: Cluster) -> list[_Link]:
        try:
            known = registrations(*cluster)
        except NotAuthorized as error:
            self._unread = str(error)
            return []
        if known.trouble:
            self._unread = f"cluster {cluster.name}: topic {naming.PRODUCERS_TOPIC}: {known.trouble}"
        links = (one for one in known.all() if one.purpose == "link")
        return [_Link(one, _plans(cluster, one.link)) for one in links]

    def _link_back(self, known: Known) -> tuple[str, str]:
        """Return the link back's name, or why none carries over all that other producers write."""
        if self._unread:
            return "", self._unread
        into_source, into_destination = (
            [writer for link in register if (writer := link.writer(topic))]
            for register, topic in zip(
                self._registers, (topic_of(known.topic.source), known.topic.destination), strict=True
            )
        )
        there = next((one for one in into_destination if one.registration.producer_id == known.producer_id), None)
        if there is None or there.topic is None:
            return "", f"link {known.link} is not registered on {self._link.destination.name}"
        ends = there.registration.source, there.registration.destination
        back = [
            one
            for one in into_source
            if one.registration.source == ends[1] != ends[0]
            and one.topic is not None
            and one.topic.source == known.topic.destination
        ]
        if len(back) != 1:
            number = "several links replicate" if back else "no link is known to replicate"
            way = f"{known.topic.destination} from {self._link.destination.name} to {self._link.source.name}"
            return "", f"{number} {way}"
        others = [one for one in into_source if one is not back[0]]
        return back[0].registration.link, obstacle(
            there, back[0], others, [one for one in into_destination if one is not there]
        )

    def _offsets_back(self, link: str) -> Offsets:
        if link not in self._back:
            offsets = Offsets(LinkHandle(link, self._link.destination, self._link.source))
            self._back[link] = self._open.enter_context(offsets)
        return self._back[link]

    # --- both logs ----------------------------------------------------------------------------------------------------

    def _by_link(
        self, link: str, asked: "set[tuple[TopicPartition, int]]", forward: Mapping[TopicPartition, Known]
    ) -> "dict[tuple[TopicPartition, int], Translation]":
        offsets = self._offsets_back(link)
        places = {place for place, _ in asked}
        backward = offsets.known(places, reverse=True)
        found: dict[tuple[TopicPartition, int], Translation] = {}
        arrived: dict[tuple[TopicPartition, int], int] = {}
        logs: dict[TopicPartition, Copies] = {}
        for item in sorted(asked):
            place, offset = item
            try:
                if place not in logs:
                    logs[place] = _copies(backward[place], self._here, place, _begun(forward[place]))
                arrived[item] = logs[place].before(offset)
            except NotExact as why:
                found[item] = _held(place, offset, forward[place], f"copies of link {link} on the source: {why}")
        most = {place: max((n for item, n in arrived.items() if item[0] == place), default=0) for place in places}
        backward = offsets.known({place for place, _ in arrived}, reverse=True, written=most)
        logs_there: dict[TopicPartition, Copies] = {}
        for item, number in sorted(arrived.items()):
            place, offset = item
            there, back = forward[place], backward[place]
            try:
                if place not in logs_there:
                    logs_there[place] = _copies(there, self._there, there.target, _begun(back), there.start)
                found[item] = _continued(item, number, there, back, logs_there[place], logs[place])
            except NotExact as why:
                found[item] = _held(place, offset, there, str(why))
        return found


def _continued(
    item: tuple[TopicPartition, int], arrived: int, there: Known, back: Known, copies: Copies, copies_here: Copies
) -> Translation:
    place, offset = item
    report = None if back.report is None else Progress(back.report.position, back.report.written)
    found = continuation(offset, arrived, _begun(there), _begun(back), copies, copies_here, report)
    return result(place, offset, there, found.offset, found.fit, shared=False, rereads=found.rereads)


def _copies(link: Known, logs: PartitionLogs, place: TopicPartition, other: Translator, start: int = 0) -> Copies:
    """Return a link's records in a log. ``other``: translator of the link that replicates the log's own records, so
    that none of these need be read."""
    log = Log(partial(logs.read, place), start)
    return Copies(log, link.producer_id, _begun(link).checkpoints(), other.replicated_from)


def _begun(link: Known) -> Translator:
    if link.doubt:
        raise NotExact(link.doubt)
    if link.translator is None:
        raise NotExact(f"link {link.link} has not begun to replicate the partition")
    return link.translator


def _held(place: TopicPartition, offset: int, known: Known, why: str) -> Translation:
    return Translation(*place, offset, known.target.topic, None, str(Fit.UNKNOWN), why, shared=True)


def _plans(cluster: Cluster, link: str) -> Mapping[str, Plan] | None:
    try:
        with StateReader(*cluster, link, follow=("plan",)) as state:
            state.catch_up()
            return dict(state.plans)
    except (NotAuthorized, StateError):
        return None
