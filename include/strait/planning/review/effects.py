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
from collections.abc import Iterator, Sequence

from strait.config.links import Link
from strait.planning.plan.planner import Proposal
from strait.planning.review.changes import changes
from strait.planning.review.clusters import Clusters, cluster_effects
from strait.planning.review.effect import Effect
from strait.planning.topics.policies import start_of

FACTS = {"max_message_bytes", "source_compacted", "source_append_time", "destination_append_time"}
"""Policy fields that describe the two topics; the link's rules determine all others."""


Effects = Sequence[Effect]


def effects(link: Link, proposal: Proposal) -> Effects:
    """Return all effects, in order.

    A topic to create also counts as one to replicate, although the plan contains it only once it exists.
    """
    return tuple(sorted({*_on_topics(proposal), *planned_effects(link, proposal)}))


def planned_effects(link: Link, proposal: Proposal) -> Effects:
    """Return the effects of publishing the plan, once all changes to topics have been made."""
    return tuple(sorted({*_copied(link, proposal), *_policies(proposal), *cluster_effects(proposal)}))


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


def _on_topics(proposal: Proposal) -> Iterator[Effect]:
    return (Effect(action.verb, action.subject, action.detail) for action in proposal.actions)


def _copied(link: Link, proposal: Proposal) -> Iterator[Effect]:
    """Yield an effect per topic, not per partition: the partitions of a replicated topic come and go with it."""
    before, after = proposal.before, proposal.draft or proposal.before
    known = set() if before is None else {topic.source for topic in before.topics}
    created = {(item.source, item.topic) for item in proposal.create}
    planned = set() if after is None else {(topic.source, topic.destination) for topic in after.topics}
    for source, destination in created | planned:
        if source not in known:
            name = "" if source == destination else f"to {destination}, "
            yield Effect("copies", source, f"{name}from {_start(link, proposal, source)}")
    waiting = set() if after is None else {item.topic for item in after.waiting}
    for source in known - {source for source, _ in created | planned} - waiting:
        yield Effect("leaves", source)


def _start(link: Link, proposal: Proposal, source: str) -> object:
    if any(item.topic == source and item.action == "restart" for item in proposal.survey.decisions):
        return "its first record again"
    return "where it stopped" if source in proposal.survey.begun.topics else start_of(link, source)


def _policies(proposal: Proposal) -> Iterator[Effect]:
    if proposal.before is None or proposal.draft is None:
        return
    found = changes(proposal.before, proposal.draft, without=FACTS)
    for topic, text in found.policies.items():
        yield Effect("changes", topic, text)
    if found.budgets:
        yield Effect("budget", "of the link", found.budgets)


def _plain(effect: Effect) -> str:
    return " ".join(str(effect).split())
