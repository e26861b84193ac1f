"""Effects of a proposal that an operator may have to approve, one by one. Pure.

An effect results from the configuration: a topic whose replication starts or ends, an object that is created, altered
or deleted on the destination, a changed policy or budget. The assignment of partitions to slots is *not* an effect, nor
are changes of state of partitions that are replicated already: these move, wait and resume without approval. Otherwise
replication would stall with every broker restart.

Proposals with equal effects do the same, so the fingerprint of the shown effects determines whether a proposal is still
the one that was shown.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from strait.config.links import Link
from strait.config.route_names import destination_of
from strait.config.rules import rule_of
from strait.config.start_offset import until_text
from strait.model import TopicPartition
from strait.planning.plan.draft import Draft
from strait.planning.plan.planner import Proposal
from strait.planning.review.changes import changes
from strait.planning.review.clusters import Clusters, cluster_effects
from strait.planning.review.effect import Effect
from strait.planning.topic_sync.actions import Action, CreateTopic
from strait.planning.topics.identity import Change
from strait.planning.topics.policies import FACTS, start_of
from strait.reasons import Reason

Effects = Sequence[Effect]

_NOT_INTO_THE_SAME = (
    "its destination topic stays as it is, and nothing more is copied into it: copy into a new topic, from the first record "
    "on, by a new link with another `naming`"
)


def effects(link: Link, proposal: Proposal) -> Effects:
    """Return all effects that need approval, in order.

    A topic to create also counts as one to replicate, although the plan contains it only once it exists.
    """
    made = (effect for effect, action in _on_topics(proposal) if not is_decided(action, proposal))
    return tuple(sorted({*made, *planned_effects(link, proposal)}))


def without_approval(link: Link, proposal: Proposal) -> Effects:
    """Return the effects that need none, in order: topics that the current plans replicate or wait for, and that are
    replicated again, and creations that an operator has decided by `strait resolve`."""
    made = (effect for effect, action in _on_topics(proposal) if is_decided(action, proposal))
    return tuple(sorted({*made, *_returning(link, proposal)}))


def planned_effects(link: Link, proposal: Proposal) -> Effects:
    """Return the effects of publishing the plan that need approval, once all changes to topics have been made."""
    return tuple(sorted({*_copied(link, proposal), *_policies(proposal), *cluster_effects(proposal)}))


def is_decided(action: Action, proposal: Proposal) -> bool:
    """Return whether an operator has decided about the topic that the action creates."""
    decided = {decision.topic for decision in proposal.survey.decisions}
    return isinstance(action, CreateTopic) and action.source in decided


def replicated(proposal: Proposal) -> dict[str, str]:
    """Return source topic -> destination topic of all topics that the current plans replicate, or wait for to continue
    them."""
    before = proposal.before
    if before is None:
        return {}
    begun = proposal.survey.begun
    # An entry without partitions that waits for approval is of a topic that is not started; others continue.
    not_started = {
        item.topic for item in before.waiting if item.reason == Reason.AWAITING_APPROVAL and not item.partitions
    }
    waiting = ({item.topic for item in before.waiting} & begun.topics) - not_started
    planned = {topic.source: topic.destination for topic in before.topics}
    return begun.destinations(waiting - planned.keys()) | planned


def fingerprint(shown: Effects, clusters: Clusters) -> str:
    """Return a fingerprint: equal for equal effects between the same clusters, and for no others."""
    rows = [list(effect) for effect in sorted(shown)]
    text = json.dumps([rows, list(clusters)], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(shown: Effects, now: Effects) -> list[str]:
    """Return one line for each effect that only one of the two contains."""
    gone, new = sorted(set(shown) - set(now)), sorted(set(now) - set(shown))
    return [f"no longer: {_plain(effect)}" for effect in gone] + [f"not shown: {_plain(effect)}" for effect in new]


def unseen(shown: Effects, now: Effects) -> list[str]:
    """Return one line for each effect that was not shown.

    Effects that were already applied, such as a creation, may be missing from ``now``.
    """
    return [f"not shown: {_plain(effect)}" for effect in sorted(set(now) - set(shown))]


def _on_topics(proposal: Proposal) -> Iterator[tuple[Effect, Action]]:
    return ((Effect(action.verb, action.subject, action.detail), action) for action in proposal.actions)


def _copied(link: Link, proposal: Proposal) -> Iterator[Effect]:
    """Yield an effect per topic, not per partition: the partitions of a replicated topic come and go with it."""
    known, wanted = replicated(proposal), _wanted(proposal)
    for source, destination in wanted.items():
        if source not in known:
            yield _copies(link, proposal, source, destination)
        elif known[source] != destination:
            yield Effect("changes", source, f"destination topic {known[source]} -> {destination}")
    for source in known.keys() - wanted.keys() - {item.topic for item in _after(proposal).waiting}:
        yield Effect("leaves", source)


def _returning(link: Link, proposal: Proposal) -> Iterator[Effect]:
    planned = set() if proposal.before is None else {topic.source for topic in proposal.before.topics}
    known = replicated(proposal)
    for source, destination in _wanted(proposal).items():
        if source in known and source not in planned:
            yield _copies(link, proposal, source, destination)


def _wanted(proposal: Proposal) -> dict[str, str]:
    """Return source topic -> destination topic of all topics that the proposal replicates."""
    created = {item.source: item.topic for item in proposal.create}
    return created | {topic.source: topic.destination for topic in _after(proposal).topics}


def _after(proposal: Proposal) -> Draft:
    after = proposal.draft or proposal.before
    assert after is not None
    return after


def _copies(link: Link, proposal: Proposal, source: str, destination: str) -> Effect:
    name = "" if destination in (source, destination_of(source)) else f"to {destination}, "
    return Effect("copies", source, f"{name}from {_start(link, proposal, source)}")


def _start(link: Link, proposal: Proposal, source: str) -> object:
    if any(item.topic == source and item.action == "restart" for item in proposal.survey.decisions):
        return "its first record again"
    if source in proposal.survey.begun.topics:
        return "where it stopped"
    start = start_of(link, source)
    if isinstance(start, Mapping) or all(place.topic != source for place in proposal.survey.moved_in):
        until = until_text(rule_of(link.topics, source).until)
        return f"{start} until {until}" if until else start
    return f"{start}, after the records that another tool replicated"


def _policies(proposal: Proposal) -> Iterator[Effect]:
    if proposal.before is None or proposal.draft is None:
        return
    found = changes(_undecided(proposal.before, proposal), _undecided(proposal.draft, proposal), without=FACTS)
    made_otherwise = {tp.topic for tp, change in _halted(proposal) if change.reason is Reason.TRANSFORM_CHANGED}
    for topic, text in found.policies.items():
        more = f"; {_NOT_INTO_THE_SAME}" if topic in made_otherwise else ""
        yield Effect("changes", topic, f"{text}{more}")
    if found.budgets:
        yield Effect("budget", "of the link", found.budgets)


def _halted(proposal: Proposal) -> Iterable[tuple[TopicPartition, Change]]:
    return proposal.survey.halted.items()


def _undecided(draft: Draft, proposal: Proposal) -> Draft:
    """Return the draft without the `on_loss` of topics that an operator has decided about: it is the decision's, and
    the configured one again afterwards."""
    assert proposal.before is not None
    decided = {decision.topic for decision in (*proposal.before.decisions, *proposal.survey.decisions)}
    if not decided:
        return draft
    topics = (
        topic.model_copy(update={"policy": topic.policy.model_copy(update={"on_loss": "halt"})})
        if topic.source in decided
        else topic
        for topic in draft.topics
    )
    return replace(draft, topics=tuple(topics))


def _plain(effect: Effect) -> str:
    return " ".join(str(effect).split())
