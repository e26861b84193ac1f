"""The control plane of one link: observe both clusters, plan, apply, publish. Used alike by Airflow's tasks and the
CLI.

Any number of control planes may run at the same time; `strait.state.publisher` explains why that is safe.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from pathlib import Path

from cachetools import TTLCache

from strait.config import naming
from strait.config.app_spec import AppSpec
from strait.config.client_properties import STATE_KEY
from strait.config.groups import DEFAULT_GROUP
from strait.config.links import LinksFile, load_link
from strait.config.route_names import topic_of
from strait.config.selecting import selects
from strait.control.executor import Done, harden_state_topics, perform, with_acls
from strait.control.forecast import Clusters, Forecast, forecast
from strait.control.group_status import group_status
from strait.control.kept_less import Beginnings
from strait.control.opposite import opposite_of
from strait.control.other_links import Claim
from strait.control.outcome import Outcome
from strait.control.previewing import preview
from strait.control.proposing import Observed, Proposing, state_replicas
from strait.control.registration import is_registered, producer_id_of, register
from strait.control.report_history import LoadMonitor
from strait.control.specs import spec_of
from strait.errors import StateError
from strait.kafka.admin import Admin
from strait.kafka.connection import silent
from strait.model import ClusterFacts, TopicPartition
from strait.net.survey import require_served
from strait.planning.plan.bounds import reached_ends
from strait.planning.plan.draft import next_plans
from strait.planning.plan.planner import Proposal
from strait.planning.plan.settings import InForce, in_force, planned_settings
from strait.planning.review import text
from strait.planning.review.approval import Approval, ShownPlan
from strait.planning.review.backfill import Reports
from strait.planning.review.clusters import planned_clusters
from strait.planning.review.effect import removals_first
from strait.planning.review.effects import Effects, effects, planned_effects
from strait.planning.review.preview import Preview
from strait.planning.status.metrics import written_records
from strait.planning.status.status import Status
from strait.planning.topic_sync.configs import OBSERVED_CONFIGS, observed
from strait.planning.topic_sync.heartbeats import with_heartbeats
from strait.planning.topic_sync.sync import follows_acls
from strait.planning.topics.retained import retained
from strait.planning.topics.routes import with_routes
from strait.state.exchanged import exchanged_addresses
from strait.state.link_handle import ConfiguredLink
from strait.state.publisher import Publication
from strait.state.reader import StateReader
from strait.state.safety import SAFETY_CONFIGS, durable_topics
from strait.state.schema import Plan, Registration
from strait.state.segments import SEGMENT_CONFIGS, segments_of
from strait.state.topics import ensure_state_topics
from strait.text import plural
from strait.waiting import unix_ms

GROUP = DEFAULT_GROUP
_CLAIMS_MOST, _CLAIMS_SECONDS = 10_000, 60.0
_BEGINNINGS_MOST, _BEGINNINGS_SECONDS = 10_000, 30.0


class Control:
    """Keeps its connections from cycle to cycle. After an error, close it and create a new one.

    Raises (every method):
        ClusterUnavailable, NotAuthorized: names the cluster, and is raised within about 10 s.
        ConfigError: the link's configuration cannot be applied.
        StateError: the link's state cannot be read; nothing is written then.
    """

    def __init__(self, file: LinksFile, link: str, progress: Callable[[str], None] = silent) -> None:
        self.name = link
        self._progress = progress  # of long operations
        self._configured = file.links[link]
        self.link = with_heartbeats(self._configured)
        self._handle = ConfiguredLink.of(file, link).with_key()
        self._adopts = False
        self._register_is_there = self._state_is_there = True  # as last seen
        self._claims: TTLCache[str, Claim] = TTLCache(_CLAIMS_MOST, _CLAIMS_SECONDS)
        self._beginnings: Beginnings = TTLCache(_BEGINNINGS_MOST, _BEGINNINGS_SECONDS)
        self._state_topics = {*durable_topics(link), naming.history_topic(link)} - {naming.PRODUCERS_TOPIC}

    @classmethod
    def of(cls, path: Path, link: str, progress: Callable[[str], None] = silent) -> "Control":
        """Return the control plane of a link in a links file. Raises ConfigError."""
        return cls(load_link(path, link), link, progress)

    def settings_in_force(self, *, adopt: bool = False) -> InForce:
        """Return the settings that the current plan was made from. ``adopt``: from now on plan with the topics of the plan
        that is then the current one, if they came from elsewhere than the links file.

        Raises (besides): ConfigError if topics to adopt name task groups that the links file does not have.
        """
        if adopt:
            _ = self._source, self._destination  # both connect; if both fail, the source's error is raised
        self._state.catch_up()
        if not adopt:
            return in_force(self._handle.settings, self._state.plans.get(GROUP))
        found = self._adopt()
        self._adopts = True
        return found

    def _adopt(self) -> InForce:
        found = in_force(self._handle.settings, self._state.plans.get(GROUP))
        if found.elsewhere and not self._state.proofs[GROUP].is_own:
            raise StateError(
                f"link {self.name}: plan {found.version} names topics from {found.elsewhere}, and it is "
                f"{self._state.proofs[GROUP].value}, so they may come from any client that may write to the plan topic",
                hint="set the same `state.key` here and there, or take the links file's topics with `--from-file`",
            )
        self._configured, self.link = found.link, with_heartbeats(found.link)
        return found

    def propose(self, *, stopped: bool | None = None) -> Proposal:
        """Return the changes that bring the link to its configuration. Changes nothing.

        Args:
            stopped: whether applications are to stop; None: as in the current plan.
        """
        _ = self._source  # connects first: if both clusters fail, its error is raised
        self._state.catch_up()
        facts = self._observe()
        # A source that lists no plan topic is not asked for it: links need no permission on it.
        asked = not self._state.plans and naming.plan_topic(self.name) in facts[0].topics
        if asked and (error := exchanged_addresses(self.name, self._handle.source, self._handle.destination)):
            raise error
        return self._decide(facts, {}, stopped)

    def has_work(self, proposal: Proposal) -> bool:
        """Return whether `apply` would do anything for this proposal, which must be the latest."""
        done = proposal.empty and not proposal.deleted_there and proposal.previous
        return not (done and self._register_is_there and self._state_is_there)

    def show(self, proposal: Proposal, ahead: Forecast | None = None) -> ShownPlan:
        """Return a proposal as an operator sees it for approval: with its cost and its risks."""
        found = effects(self.link, proposal)
        lines = [text.proposal_text(proposal), *(ahead or self.forecast(proposal)).lines()]
        if found and self.link.approval == "required":
            lines = [
                f"{plural(len(found), 'change')} to approve:",
                *(effect.line for effect in removals_first(found)),
                "",
                *lines,
            ]
        return ShownPlan.of(self.name, found, "\n".join(lines), proposal.survey.clusters)

    def forecast(self, proposal: Proposal) -> Forecast:
        """Return how much there is to copy of topics whose replication starts, how long that takes, and the risks."""
        return forecast(self.name, self.link, proposal, self._clusters, self._heard)

    def preview(self, proposal: Proposal, topic: str) -> Preview:
        """Return the results of a topic's transformation for its recent records; see `strait.control.previewing`."""
        return preview(self._handle, self.link, self._source, proposal, topic, self._progress)

    def apply(
        self, proposal: Proposal | None = None, *, stopped: bool | None = None, shown: ShownPlan | None = None
    ) -> Outcome:
        """Create missing topics and publish the plan. The published plan is computed again, from the state current
        then.

        Args:
            shown: the plan that an operator has approved; None: any changes or, on a link with `approval: required`,
                only those that need no approval.

        Raises:
            ApprovalMissing: different changes than the approved ones would be made now, or none that need no approval;
                nothing was published here.
            PlanConflict: other control planes were faster each time; nothing was published here.
        """
        whole = proposal or self.propose(stopped=stopped)
        approval = Approval.of(self.name, self.link.approval, shown)
        proposal = approval.part_of(whole)
        if proposal is whole:
            approval.check(effects(self.link, whole), whole.survey.clusters)
        if not proposal.previous:  # a cluster that cannot be a destination gets no topic
            require_served(*self._handle.destination, "destination")
        done = perform(self._source, self._destination, proposal)
        refused = {**done.refused, **harden_state_topics(self._destination, proposal.state_changes)}
        if not self.has_work(proposal):
            return Outcome(done.actions, refused, proposal.plans, proposal, self._pending(whole, proposal))
        ensure_state_topics(self._destination, self.name, state_replicas(self.link))
        self._state_topics.discard(naming.history_topic(self.name))  # if still missing, it may not be created
        publish = partial(self._publish, refused, stopped, approval, done)
        plans, whole, published = self._handle.publisher().until_published(self._state, publish)
        return Outcome(done.actions, refused, plans, published, self._pending(whole, published))

    def _pending(self, whole: Proposal, made: Proposal) -> Effects:
        """Return the effects that wait for approval, if only the part ``made`` of a proposal was carried out."""
        return () if made is whole else effects(self.link, whole)

    def status(self, topic: str | None = None) -> Status:
        """Return the state of each partition of the default group's topics, from the current plan and the reports.

        Raises (besides): ConfigError if the plan has no such topic.
        """
        self._reports.catch_up()
        return group_status(self._handle, GROUP, self._reports, topic)

    def statuses(self) -> tuple[Status, ...]:
        """Return the same for every task group that has a plan."""
        self._reports.catch_up()
        return tuple(group_status(self._handle, group, self._reports) for group in sorted(self._reports.plans))

    def written(self) -> dict[TopicPartition, int]:
        """Return the number of records that the link has ever written to each partition, as far as the map and the
        newest reports know."""
        self._state.catch_up()
        return written_records(self._state.runs, self.statuses())

    def spec(self, plan: Plan, *, ledger_dir: Path, checkpoint_dir: Path, standby: bool = False) -> AppSpec:
        """Return the settings of the application of the plan's task group. They hold secrets: write them with their own
        `write` only."""
        return spec_of(self._handle, self.link, plan, ledger_dir, checkpoint_dir, standby=standby)

    @property
    def known_clusters(self) -> dict[str, str]:
        """Cluster -> Kafka's ID, as last seen: for `with_known`."""
        return {admin.cluster: admin.cluster_id for admin in (self._source, self._destination)}

    def close(self) -> None:
        """Disconnect from both clusters."""
        for reader in ("_state", "_reports"):
            if reader in self.__dict__:
                self.__dict__.pop(reader).close()

    def __enter__(self) -> "Control":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _source(self) -> Admin:
        return self._handle.admin("source", self._progress)

    @cached_property
    def _destination(self) -> Admin:
        return self._handle.admin("destination", self._progress)

    @property
    def _clusters(self) -> Clusters:
        return Clusters(self._source, self._destination)

    @cached_property
    def _state(self) -> StateReader:
        return self._handle.state()

    @cached_property
    def _loads(self) -> LoadMonitor:
        return LoadMonitor(self.link, self._handle, lambda: self._reports)

    @cached_property
    def _reports(self) -> StateReader:
        return self._handle.state("plan", "reports")

    def _heard(self) -> Reports:
        self._reports.catch_up()
        return self._reports.reports

    @property
    def _planned(self) -> dict[str, str]:
        """Source topic -> destination topic by the current plans, which replicate a topic until its end is approved."""
        return {topic.source: topic.destination for plan in self._state.plans.values() for topic in plan.topics}

    def _observe(self) -> tuple[ClusterFacts, ClusterFacts]:
        if self._adopts:  # another control plane may have published other topics since
            self._adopt()
        source_id, destination_id = planned_clusters(self._state.plans.values())
        self._handle = self._handle.expecting(source_id, destination_id)
        self._destination.expect(destination_id)
        self._source.expect(source_id)
        source = self._observe_source()
        return source, self._observe_destination(source)

    def _observe_source(self) -> ClusterFacts:
        planned = self._planned
        topics = set(map(topic_of, planned))
        facts = self._source.observe(
            lambda topic: topic in topics or selects(self.link.topics, topic), observed(self.link)
        )
        facts = with_routes(facts, self.link.topics, {*planned, *(topic for topic, _ in self._state.runs)})
        return with_acls(self._source, facts) if follows_acls(self.link) else facts

    def _observe_destination(self, source: ClusterFacts) -> ClusterFacts:
        """Return the destination's facts, including destination topics whose source topics no longer exist: the state
        must be read before."""
        names = naming.Names(self.link)
        wanted: set[str | None] = set(self._planned.values())
        wanted |= {names.destination(topic) for topic in source.topics if selects(self.link.topics, topic)}
        runs = self._state.runs
        wanted |= {run.destination for place in runs if place[0] not in source.topics for run in runs[place]}
        wanted |= {*durable_topics(self.name), *segments_of(self.name)}
        facts = self._destination.observe(wanted.__contains__, (*OBSERVED_CONFIGS, *SAFETY_CONFIGS, *SEGMENT_CONFIGS))
        self._register_is_there = naming.PRODUCERS_TOPIC in facts.topics
        self._state_is_there = facts.topics.keys() >= self._state_topics
        return with_acls(self._destination, facts) if follows_acls(self.link) else facts

    def _decide(
        self,
        facts: tuple[ClusterFacts, ClusterFacts],
        refused: Mapping[str, str],
        stopped: bool | None,
        done: Done | None = None,
    ) -> Proposal:
        """Return the proposal, with the part of it that needs no approval."""
        proofs = dict(self._state.proofs) if STATE_KEY in self._handle.destination.properties else {}
        plans = dict(self._state.plans)
        if stopped is None:
            stopped = GROUP in plans and plans[GROUP].stopped
        seen = Observed(
            retained(*facts, plans.values()),
            plans,
            self._state.runs,
            opposite_of(self.link, self._handle.source, facts[1]),
            self._loads.now(),
            () if done is None else done.actions,
            unix_ms(),
            proofs,
            self._reached(plans),
        )
        settings = planned_settings(self._configured)
        proposing = Proposing(self.name, self.link, settings, self._clusters, seen, self._claims, self._beginnings)
        return proposing.proposal(refused, stopped=stopped)

    def _reached(self, plans: Mapping[str, Plan]) -> Collection[TopicPartition]:
        if not any(topic.policy.ends for plan in plans.values() for topic in plan.topics):
            return ()
        return reached_ends(plans.values(), self._heard())

    def _publish(
        self,
        refused: Mapping[str, str],
        stopped: bool | None,
        approval: Approval,
        done: Done,
        publication: Publication,
    ) -> tuple[Mapping[str, Plan], Proposal, Proposal]:
        """Return the current plans, the whole proposal, and the part of it that was published."""
        whole = self._decide(self._observe(), refused, stopped, done)
        proposal = approval.part_of(whole)
        if proposal is whole:
            approval.check_rest(planned_effects(self.link, whole), whole.survey.clusters)
        at_ms = unix_ms()
        producer_id = producer_id_of(self.name, self._state, *self._handle.destination)
        self._register(producer_id, proposal.plans)
        if not proposal.drafts and not proposal.deleted_there:
            return proposal.plans, whole, proposal
        plans = next_plans(proposal.drafts, proposal.plans, self.name, producer_id, at_ms)
        forgotten = proposal.sync.retirement.forget
        losses = (*proposal.losses(self.name, at_ms), *proposal.deleted_there)
        publication.publish(
            plans, proposal.first_runs(at_ms), losses, forgotten, vouched=True, limited=proposal.limited
        )
        return {**proposal.plans, **{plan.group: plan for plan in plans}}, whole, proposal

    def _register(self, producer_id: int, plans: Mapping[str, Plan]) -> None:
        """Register the link before its first plan; again if the registry topic was deleted, or the source is another
        cluster now."""
        source, destination = self._source.cluster_id, self._destination.cluster_id
        if self._register_is_there and is_registered(plans.values(), source):
            return
        registration = Registration(producer_id=producer_id, link=self.name, source=source, destination=destination)
        register(self._destination, registration, state_replicas(self.link))
