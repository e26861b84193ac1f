"""Makes a link's proposal from one observation of both clusters and of the link's state. Queries the clusters for facts
that only the proposal shows to be needed, such as start offsets; changes nothing."""

import gc
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from strait.config.links import Link
from strait.control.bounds import with_ends
from strait.control.executor import acceptable, acceptable_changes, gather
from strait.control.forecast import Clusters
from strait.control.kept_less import Beginnings, losses_by_settings
from strait.control.other_links import Claim, claims
from strait.control.registration import moved_in
from strait.control.start_offsets import look_up
from strait.errors import NotAuthorized, StateError
from strait.kafka.admin import Admin
from strait.model import ClusterFacts, TopicPartition
from strait.planning.history.load import Load
from strait.planning.plan.foreign import Foreign, foreign_topics, replacing, unproven, without_foreign
from strait.planning.plan.moved_copies import after_moved_in, leaves_copies_out, withheld
from strait.planning.plan.pauses import pauses_of
from strait.planning.plan.planner import Proposal, Runs, Survey, compose, survey
from strait.planning.review.withholding import unapproved_of, without_actions
from strait.planning.risks.state_safety import state_changes, state_risks, wanted_replicas
from strait.planning.topic_sync.actions import Action, AlterTopic, DeleteTopic
from strait.planning.topic_sync.creation import Destinations
from strait.planning.topic_sync.opposite import Opposite
from strait.planning.topic_sync.retirement import candidates, retire
from strait.planning.topic_sync.sync import Memory, TopicSync, topic_sync
from strait.planning.topics.emptied import check_not_emptied
from strait.planning.topics.selection import CameBack
from strait.planning.topics.unapproved import NOTHING, Unapproved
from strait.reasons import Reason
from strait.state.schema import Plan, PlannedSettings
from strait.state.signing import Proof


@dataclass(frozen=True, slots=True)
class Observed:
    """One observation.

    Attributes:
        facts: of source and destination.
        plans: task group -> its current plan.
        proofs: task group -> whether its plan is proven; empty: this host has no key.
        done: actions completed in this cycle.
        reached: partitions that have reached the ends in these plans.
    """

    facts: tuple[ClusterFacts, ClusterFacts]
    plans: Mapping[str, Plan]
    runs: Runs
    opposite: Opposite
    loads: Mapping[TopicPartition, Load]
    done: tuple[Action, ...]
    now_ms: int
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    reached: Collection[TopicPartition] = ()


@dataclass(frozen=True, slots=True)
class Proposing:
    """Makes the proposals of one observation.

    Attributes:
        settings: of ``link``, as plans record them.
        claims: those of other links on destination topics; from earlier cycles, and extended.
        beginnings: of compacted destination topics; from earlier cycles, and extended.
    """

    name: str
    link: Link
    settings: PlannedSettings
    clusters: Clusters
    observed: Observed
    claims: MutableMapping[str, Claim] = field(default_factory=dict)
    beginnings: Beginnings = field(default_factory=dict)

    def proposal(self, refused: Mapping[str, str], *, stopped: bool) -> Proposal:
        """Return the proposal, with the part of it that needs no approval.

        ``refused``: destination topics that could not be created or changed, and why.
        """
        foreign = foreign_topics(self.link, self.observed.plans, self.observed.proofs)
        whole = self._proposal(refused, NOTHING, foreign, stopped=stopped)
        if self.link.approval != "required":
            return whole
        left_out = unapproved_of(self.link, whole, {topic.source for topics in foreign.values() for topic in topics})
        if left_out is None:
            return whole
        part = self._proposal(left_out.refused(refused), left_out, foreign, stopped=stopped)
        return replace(whole, permitted=without_actions(part))

    def _proposal(
        self, refused: Mapping[str, str], unapproved: Unapproved, foreign: Foreign, *, stopped: bool
    ) -> Proposal:
        observed, opposite, link = self.observed, self.observed.opposite, self.link
        source, destination = observed.facts
        plans = without_foreign(observed.plans, foreign)
        with collector_paused():
            found = survey(
                self.name,
                link,
                source,
                destination,
                observed.runs,
                refused,
                plans.values(),
                CameBack(opposite.copies, opposite.renamed, opposite.unknown if opposite.exist else ""),
                unapproved,
            )
        if unapproved is NOTHING:  # topics that wait for approval are selected, too
            check_not_emptied(self.name, link, found.selection, observed.plans.values())
        create = acceptable(self.clusters.destination, link, found.destinations.create)
        found = replace(found, destinations=replace(found.destinations, create=create))
        found = without_moved_copies(self.name, link, found, source, self.clusters.source)
        found = with_ends(link, found, plans.values(), self.clusters.source, observed.reached, observed.now_ms)
        starts = look_up(
            self.clusters.source, self.clusters.destination, found.new, histories=link.backfill is not None
        )
        sync, config_risks = acceptable_changes(
            self.clusters.destination, link, self._sync(found.destinations, refused)
        )
        with collector_paused():
            proposal = compose(
                link,
                found,
                starts,
                plans,
                stopped=stopped,
                pauses=pauses_of(plans.values()),
                sync=sync,
                loads=observed.loads,
                settings=self.settings,
                now_ms=observed.now_ms,
            )
        if observed.proofs:
            carried = {} if unapproved is NOTHING else foreign
            proposal = replacing(proposal, observed.plans, observed.proofs, carried, observed.now_ms)
        replicas = wanted_replicas(state_replicas(link), (pair.destination for pair in found.destinations.pairs))
        return replace(
            proposal,
            state_changes=state_changes(self.name, destination.topics),
            deleted_there=losses_by_settings(
                self.clusters,
                self.name,
                found.destinations.pairs,
                observed.runs,
                found.policies,
                observed.now_ms,
                self.beginnings,
            ),
            state_risks=(*proposal.state_risks, *config_risks, *state_risks(self.name, destination.topics, replicas)),
        )

    def _sync(self, destinations: Destinations, refused: Mapping[str, str]) -> TopicSync:
        """Return the changes to destination topics, without deletions and changed configurations of topics to which other
        links may replicate: each link would undo the other one's changes."""
        observed = self.observed
        memory, now_ms = Memory.of(observed.plans.values(), unproven(observed.plans, observed.proofs)), observed.now_ms
        over = candidates(self.link, memory.waiting, *observed.facts, observed.runs, memory.copied_from, now_ms)
        evidence = gather(self.clusters.source, self.clusters.destination, over)

        def sync() -> TopicSync:
            known = dict(self.claims)
            claimed = {topic: claim.why for topic, claim in known.items()}
            found = topic_sync(
                self.link,
                destinations,
                *observed.facts,
                memory,
                retirement=retire(self.link, over, replace(evidence, others=claimed), observed.runs),
                refused=refused,
                done=observed.done,
                opposite=observed.opposite,
            )
            return found.without_altering({topic for topic, claim in known.items() if claim.known})

        found = sync()
        alone = [action.topic for action in found.actions if isinstance(action, AlterTopic | DeleteTopic)]
        if not alone:
            return found
        self.claims.update(claims(*self.clusters.destination.at, self.name, alone))
        return sync()


def state_replicas(link: Link) -> int | None:
    """Return the replication factor of the link's state topics; None: the destination broker's default."""
    factor = link.replication_factor
    return None if factor == "source" else factor


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the collector temporarily. Objects without references are still freed, except those in reference
    cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def without_moved_copies(name: str, link: Link, found: Survey, source: ClusterFacts, admin: Admin) -> Survey:
    """Return the survey with starts after such copies. Queries the source only if topics start; without an answer these
    wait.

    Args:
        admin: the source's.

    Raises:
        ClusterUnavailable
    """
    if not leaves_copies_out(link, found):
        return found
    try:
        known = moved_in(*admin.at, name)
    except NotAuthorized as error:
        return withheld(link, found, Reason.SOURCE_DENIED, error.message)
    except StateError as error:
        return withheld(link, found, Reason.PRODUCERS_UNREADABLE, error.message)
    return after_moved_in(link, found, source, known)
