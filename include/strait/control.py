"""The control plane of one link: observe both clusters, plan, apply, publish. Used alike by Airflow's tasks and the CLI.

Any number of them may run at once; `strait.state.publisher` says why that is safe.
"""

import random
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from strait import naming
from strait.config import LinksFile, load_link
from strait.engine.producer_id import allocate_producer_id
from strait.errors import ClusterUnavailable, PlanConflict, StateError
from strait.kafka.admin import Admin, NewTopic, Outcomes
from strait.model import ClusterFacts, TopicPartition
from strait.planning import rendering
from strait.planning.plan import Draft, Proposal, Starts, Survey, compose, survey
from strait.planning.selection import selects
from strait.planning.status import Status, status_of
from strait.planning.topics import OBSERVED_CONFIGS, CreateTopic
from strait.spec import AppSpec
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.schema import Plan
from strait.state.topics import ensure_state_topics

GROUP = "default"
_CONFLICTS_MOST = 8
_CONFLICT_PAUSE_SECONDS = 1.0
_USABLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a cycle did.

    Attributes:
        created: destination topics created here.
        refused: destination topics that could not be created, and why; their sources wait.
        plan: the plan in force now.
        proposal: what the plan in force was last held against; its draft is None where nothing was published.
    """

    created: tuple[str, ...]
    refused: Mapping[str, str]
    plan: Plan
    proposal: Proposal

    @property
    def published(self) -> bool:
        """Whether this cycle published a plan."""
        return self.proposal.draft is not None

    def as_text(self) -> str:
        """For people."""
        created = [f"created   {topic}" for topic in self.created]
        return "\n".join([*created, *rendering.refused_lines(self.refused), rendering.proposal_text(self.proposal)])

    def as_data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "created": list(self.created),
            "refused": dict(self.refused),
            "published": self.published,
            "plan": self.plan.model_dump(),
            "proposal": rendering.proposal_data(self.proposal),
        }


class Control:
    """Keeps its connections from cycle to cycle. After an error close it and make a new one.

    Raises (every method):
        ClusterUnavailable, NotAuthorized: which cluster, and within about ten seconds.
        ConfigError: the link cannot be as it is configured.
        StateError: the link's state cannot be read; nothing is written then.
    """

    def __init__(self, file: LinksFile, link: str) -> None:
        self.name = link
        self.link = file.links[link]
        self._source_properties = file.clusters[self.link.source]
        self._destination_properties = file.clusters[self.link.destination]

    @classmethod
    def of(cls, path: Path, link: str) -> "Control":
        """For a link in a links file. Raises ConfigError."""
        return cls(load_link(path, link), link)

    def propose(self, *, stopped: bool | None = None) -> Proposal:
        """Say what would make the link as it is configured. Changes nothing.

        Args:
            stopped: whether applications are to end; None: as the plan in force says.
        """
        facts = self._observe()
        self._state.catch_up()
        return self._decide(facts, {}, stopped)

    def apply(self, proposal: Proposal | None = None, *, stopped: bool | None = None) -> Outcome:
        """Create missing topics and publish the plan. What is published is decided again, from the state in force then.

        Raises:
            PlanConflict: other control planes were faster again and again; nothing was published here.
        """
        proposal = proposal or self.propose(stopped=stopped)
        created, refused = self._create(proposal.create)
        if proposal.empty and proposal.previous is not None:
            return Outcome((), {}, proposal.previous, proposal)
        ensure_state_topics(self._destination, self.name, self.link.replication_factor)
        for _ in range(_CONFLICTS_MOST):
            try:
                plan, published = self._publish(refused, stopped)
            except PlanConflict as error:
                conflict = error
                time.sleep(random.uniform(0, _CONFLICT_PAUSE_SECONDS))  # noqa: S311  only to get out of step
            else:
                return Outcome(tuple(created), refused, plan, published)
        raise conflict

    def run_cycle(self, *, stopped: bool | None = None) -> Outcome:
        """Observe, plan, apply, publish, once."""
        return self.apply(stopped=stopped)

    def status(self, topic: str | None = None) -> Status:
        """What each partition of the link's topics does, by the plan in force and the reports."""
        self._reports.catch_up()
        plan = self._reports.plans.get(GROUP)
        return status_of(self.name, GROUP, plan, self._reports.reports, _now_ms(), topic)

    def spec(self, *, ledger_dir: Path, checkpoint_dir: Path, group: str = GROUP) -> AppSpec:
        """What an application of a task group needs. It holds secrets: write it with its own `write` only."""
        return AppSpec(
            link=self.name,
            group=group,
            source_name=self.link.source,
            source=self._source_properties,
            destination_name=self.link.destination,
            destination=self._destination_properties,
            slots=self.link.groups[group].slots,
            slot_memory_bytes=self.link.slot_memory_mib << 20,
            epoch_seconds=self.link.epoch_seconds,
            ledger_dir=str(ledger_dir.resolve()),
            checkpoint_dir=str(checkpoint_dir.resolve()),
        )

    def close(self) -> None:
        """Leave both clusters."""
        for reader in ("_state", "_reports"):
            if reader in self.__dict__:
                self.__dict__.pop(reader).close()

    def __enter__(self) -> "Control":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _source(self) -> Admin:
        return Admin(self._source_properties, self.link.source)

    @cached_property
    def _destination(self) -> Admin:
        return Admin(self._destination_properties, self.link.destination)

    @cached_property
    def _state(self) -> StateReader:
        return StateReader(self._destination_properties, self.link.destination, self.name)

    @cached_property
    def _reports(self) -> StateReader:
        return StateReader(self._destination_properties, self.link.destination, self.name, follow=("plan", "reports"))

    def _observe(self) -> tuple[ClusterFacts, ClusterFacts]:
        source = self._source.observe(lambda topic: selects(self.link.topics, topic), OBSERVED_CONFIGS)
        wanted = {
            naming.destination_topic(topic, self.link.naming)
            for topic in source.topics
            if selects(self.link.topics, topic)
        }
        return source, self._destination.observe(wanted.__contains__, OBSERVED_CONFIGS)

    def _decide(
        self, facts: tuple[ClusterFacts, ClusterFacts], refused: Mapping[str, str], stopped: bool | None
    ) -> Proposal:
        previous = self._state.plans.get(GROUP)
        found = survey(self.name, self.link, *facts, self._state.runs, refused)
        if stopped is None:
            stopped = previous is not None and previous.stopped
        return compose(self.link, GROUP, found, self._starts(found), previous, stopped=stopped)

    def _starts(self, found: Survey) -> Starts:
        source = self._source.offsets_each(found.new.keys(), self.link.start)
        destination = self._destination.offsets_each(found.new.values(), "end")
        return Starts(source.results, destination.results, _texts(source), _texts(destination))

    def _create(self, wanted: Collection[CreateTopic]) -> tuple[list[str], dict[str, str]]:
        if not wanted:
            return [], {}
        topics = [NewTopic(item.topic, item.partitions, item.replication_factor, dict(item.configs)) for item in wanted]
        done = self._destination.create_each(topics)
        self._wait_until_usable([item for item in topics if item.topic in done.results])
        return sorted(topic for topic, here in done.results.items() if here), _texts(done)

    def _wait_until_usable(self, topics: Collection[NewTopic]) -> None:
        """A topic is created before every broker knows of it and its partitions have leaders."""
        deadline = time.monotonic() + _USABLE_SECONDS
        names = {item.topic for item in topics}
        partitions = [TopicPartition(item.topic, number) for item in topics for number in range(item.partitions)]
        while not (
            names <= self._destination.observe(lambda _: False).topics.keys()
            and not self._destination.offsets_each(partitions, "end").failures
        ):
            if time.monotonic() > deadline:
                raise ClusterUnavailable(
                    self.link.destination, f"its brokers do not serve the topics created on it: {', '.join(names)}"
                )
            time.sleep(0.1)

    def _publish(self, refused: Mapping[str, str], stopped: bool | None) -> tuple[Plan, Proposal]:
        publisher = ControlPublisher(self._destination_properties, self.link.destination, self.name)
        with publisher.exclusive(self._state) as publication:
            proposal = self._decide(self._observe(), refused, stopped)
            if proposal.draft is None:
                assert proposal.previous is not None
                return proposal.previous, proposal
            plan = self._as_plan(proposal.draft, proposal.previous)
            publication.publish(plan, proposal.first_runs(plan.published_at_ms))
            return plan, proposal

    def _as_plan(self, draft: Draft, previous: Plan | None) -> Plan:
        return draft.as_plan(
            link=self.name,
            group=GROUP,
            version=1 if previous is None else previous.version + 1,
            producer_id=self._producer_id(),
            now_ms=_now_ms(),
        )

    def _producer_id(self) -> int:
        for plan in self._state.plans.values():
            return plan.producer_id
        if self._state.runs:
            raise StateError(
                f"link {self.name}: publishing its first plan: the map has runs, so the link has copied before, but "
                f"topic {naming.plan_topic(self.name)} has no plan, so its producer id is lost",
                hint="restore the plan topic, or use a new link name with new destination topics",
            )
        return allocate_producer_id(self._destination_properties, self.link.destination)


def _texts(outcomes: Outcomes[Any, Any]) -> dict[Any, str]:
    return {key: error.message for key, error in outcomes.failures.items()}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
