"""Links between clusters as an executable model: who gets which record, whatever happens to links and clusters.

Decisions are the product's: which topics are selected and how their copies are called, where partitions begin, what
follows when topics or clusters are others, which batches are copies (`survey`, `compose`, `Opposite`, `after_moved_in`,
`producers_left_out`). The clusters around them are modelled: logs of one partition, topics and clusters with IDs that end
with them, registers of producers, each link's state on its destination.

Not modelled: time, crashes of slots (see `protocol_model`), several partitions, budgets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from strait.config.links import Link
from strait.config.naming import Names
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.plan.draft import next_plans
from strait.planning.plan.moved_copies import after_moved_in
from strait.planning.plan.planner import Proposal, compose, survey
from strait.planning.topic_sync.opposite import Opposite
from strait.planning.topics.new_partitions import NewPartition
from strait.planning.topics.selection import CameBack
from strait.planning.topics.start_offsets import Range, StartOffsets, first_offset
from strait.state.moved_copies import MovedCopies
from strait.state.registrations import producers_left_out
from strait.state.schema import OffsetMapping, Plan, PlannedTopic, Registration


def every_topic(on_loss: str = "restart") -> dict[str, Any]:
    """The `topics` block of a link that copies all of them."""
    return {"regex": (".*",), "rules": ({"match": ".*", "on_loss": on_loss, "on_foreign": "expect"},)}


class Entry(NamedTuple):
    """One record of a log: which one it is, wherever it lies, and who wrote it here."""

    record: int
    producer: int


@dataclass
class Topic:
    """``grown_from``: the clusters, by ID, and topics that it is a copy of, by its creation, nearest first."""

    id: str
    log: list[Entry] = field(default_factory=list)
    grown_from: tuple[tuple[str, str], ...] = ()


@dataclass
class Cluster:
    name: str
    id: str
    topics: dict[str, Topic] = field(default_factory=dict)
    registered: dict[int, Registration] = field(default_factory=dict)
    moved_in: list[MovedCopies] = field(default_factory=list)

    def facts(self) -> ClusterFacts:
        return ClusterFacts(
            self.name, self.id, {name: TopicFacts(name, topic.id, 1) for name, topic in self.topics.items()}
        )


@dataclass
class State:
    """A link's, on its destination. ``copied``: its two topics' IDs -> how far it has read the source."""

    producer: int
    plans: dict[str, Plan] = field(default_factory=dict)
    runs: dict[tuple[str, int], tuple[OffsetMapping, ...]] = field(default_factory=dict)
    copied: dict[tuple[str, str, str], int] = field(default_factory=dict)


class World:
    def __init__(self, clusters: str, links: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
        """``links``: source and destination -> its settings."""
        self._numbers = count(1)
        self.clusters = {name: self._new(name) for name in clusters}
        self.links = {
            f"{source}-to-{destination}": Link.model_validate(
                {"source": source, "destination": destination, "topics": every_topic()} | dict(settings)
            )
            for (source, destination), settings in links.items()
        }
        self.states: dict[str, State] = {}

    # --- what happens -------------------------------------------------------------------------------------------------

    def write(self, cluster: str, topic: str) -> None:
        """A producer of its own writes a record that never was before."""
        self._topic(cluster, topic).log.append(Entry(next(self._numbers), next(self._numbers)))

    def move_in(self, link: str, topic: str, records: int) -> None:
        """Another tool copies the first records of a topic under the name that the link gives it; then the link takes
        over, as `strait offsets import` does."""
        settings = self.links[link]
        source, destination = (self.clusters[end] for end in (settings.source, settings.destination))
        copy = Names(settings).destination(topic)
        if topic not in source.topics or copy is None or link in self.states:
            return
        target, tool = self._topic(destination.name, copy), next(self._numbers)
        records = min(records, len(source.topics[topic].log))
        target.log += [entry._replace(producer=tool) for entry in source.topics[topic].log[:records]]
        target.grown_from = ((source.id, topic), *source.topics[topic].grown_from)
        state = self.states[link] = State(next(self._numbers))
        new = NewPartition(copy, source.topics[topic].id, target.id, records, len(target.log))
        state.runs[topic, 0] = (new.first_run(TopicPartition(topic, 0), 0),)
        destination.moved_in.append(
            MovedCopies(moved_in=copy, topic_id=target.id, link=link, source=source.id, ends=(len(target.log),))
        )

    def plan(self, link: str) -> int:
        """As the control plane does: look, create topics, register, publish. Return how many topics were created."""
        created = 0
        while (proposal := self._planned(link)).create:
            created += len(proposal.create)
            settings = self.links[link]
            for item in proposal.create:
                source = self.clusters[settings.source]
                grown = (source.id, item.source), *source.topics[item.source].grown_from
                self._topic(settings.destination, item.topic).grown_from = grown
        return created

    def copy(self, link: str, records: int) -> int:
        """Its slots copy so many offsets of each partition; return how many there were."""
        settings, state = self.links[link], self.states.get(link)
        source, destination = self.clusters[settings.source], self.clusters[settings.destination]
        done = 0
        for plan in state.plans.values() if state is not None else ():
            if (plan.source_cluster, plan.destination_cluster) != (source.id, destination.id):
                continue  # source_other_cluster: nothing is read from it
            for topic in plan.topics:
                if topic.slots[0] is not None:
                    done += self._copy(link, topic, records)
        return done

    def lose(self, cluster: str) -> None:
        """The cluster is lost with all that it holds, and rebuilt empty at the same address."""
        self.clusters[cluster] = self._new(cluster)
        for name, link in self.links.items():
            if link.destination == cluster:
                self.states.pop(name, None)

    def recreate(self, cluster: str, topic: str) -> None:
        """The topic is deleted and created again, empty."""
        found = self.clusters[cluster].topics
        if topic in found:
            found[topic] = Topic(f"id-{next(self._numbers)}", grown_from=found[topic].grown_from)

    def settle(self, rounds: int = 8) -> None:
        """All links plan and copy until nothing is left to do."""
        for _ in range(rounds):
            created = sum([self.plan(link) for link in self.links])
            if not created + sum([self.copy(link, 1 << 30) for link in self.links]):
                return
        raise AssertionError(f"links copy without end: {self.described()}")

    # --- what must hold -----------------------------------------------------------------------------------------------

    def doubles(self) -> list[str]:
        """Records that a cluster holds more than once, under whatever name."""
        return [
            f"record {record} on {cluster.name}: {sorted(places)}"
            for cluster in self.clusters.values()
            for record, places in _places(cluster).items()
            if len(places) > 1
        ]

    def copies_of_themselves(self) -> list[str]:
        """Topics that are copies of a topic of their own cluster that has another name."""
        return [
            f"{name} on {cluster.name}: {topic.grown_from}"
            for cluster in self.clusters.values()
            for name, topic in cluster.topics.items()
            if any(where == cluster.id and other != name for where, other in topic.grown_from)
        ]

    def held(self, cluster: str) -> set[int]:
        return set(_places(self.clusters[cluster]))

    def described(self) -> str:
        return str({name: {t: of.log for t, of in one.topics.items()} for name, one in self.clusters.items()})

    # --- parts --------------------------------------------------------------------------------------------------------

    def _new(self, name: str) -> Cluster:
        return Cluster(name, f"cluster-{next(self._numbers)}")

    def _topic(self, cluster: str, name: str) -> Topic:
        topics = self.clusters[cluster].topics
        if name not in topics:
            topics[name] = Topic(f"id-{next(self._numbers)}")
        return topics[name]

    def _planned(self, name: str) -> Proposal:
        link = self.links[name]
        source, destination = self.clusters[link.source], self.clusters[link.destination]
        state = self.states.setdefault(name, State(next(self._numbers)))
        moved_in = [one for one in source.moved_in if one.source == destination.id]
        opposite = Opposite.of(self._opposite(source, destination), moved_in, destination.topics)
        facts = source.facts(), destination.facts()
        found = survey(
            name, link, *facts, state.runs, {}, state.plans.values(), CameBack(opposite.copies, opposite.renamed)
        )
        found = after_moved_in(link, found, facts[0], source.moved_in)
        ends = {place: len(source.topics[place.topic].log) for place in found.new}
        starts = StartOffsets(
            {place: _first(first_offset(new.fresh.begin, Range(0, ends[place]))) for place, new in found.new.items()},
            {new.target: len(destination.topics[new.target.topic].log) for new in found.new.values()},
        )
        proposal = compose(link, found, starts, state.plans, stopped=False)
        destination.registered[state.producer] = Registration(
            producer_id=state.producer, link=name, source=source.id, destination=destination.id
        )
        state.plans |= {plan.group: plan for plan in next_plans(proposal.drafts, state.plans, name, state.producer, 0)}
        for run in proposal.first_runs(0):
            state.runs[run.topic, run.partition] = (*state.runs.get((run.topic, run.partition), ()), run)
        return proposal

    def _opposite(self, source: Cluster, destination: Cluster) -> Iterator[Plan]:
        for one in source.registered.values():
            if one.source == destination.id and one.link in self.states:
                yield from self.states[one.link].plans.values()

    def _copy(self, link: str, topic: PlannedTopic, records: int) -> int:
        settings, state = self.links[link], self.states[link]
        source, destination = self.clusters[settings.source], self.clusters[settings.destination]
        there, here = source.topics.get(topic.source), destination.topics.get(topic.destination)
        if there is None or here is None or (there.id, here.id) != (topic.source_id, topic.destination_id):
            return 0  # the slot notices another topic by its ID
        pair = topic.source, there.id, here.id
        begun = [run for run in state.runs[topic.source, 0] if (run.source_id, run.destination_id) == pair[1:]]
        begin = begun[-1].source_base if begun else 0  # a topic made anew is copied from its start
        at = max(state.copied.get(pair, 0), begin)
        left_out = producers_left_out(topic.policy.copies, source.registered.values(), source.id, destination.id)
        part = there.log[at : at + records]
        here.log += [Entry(one.record, state.producer) for one in part if one.producer not in left_out]
        state.copied[pair] = at + len(part)
        return len(part)


def _first(offset: object) -> int:
    assert isinstance(offset, int)
    return offset


def _places(cluster: Cluster) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, topic in cluster.topics.items():
        for entry in topic.log:
            found.setdefault(entry.record, []).append(name)
    return found
