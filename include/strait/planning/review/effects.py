"""What a proposal does that somebody may want to be asked about, piece by piece. Pure.

An effect is a decision of the configuration: topics that begin or cease to be copied, what is created, altered or
deleted on the destination, another policy or budget. It is *not* where partitions are copied, and not what the world
does to partitions that are copied already: they move, wait and go on without anybody's leave, or copying would stand
still with every broker that restarts.

Two proposals with equal effects do the same, so the fingerprint of what was shown says whether it is still what would
be done.
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
"""What a policy carries of both topics; the rest of it is what the link's rules decide."""


Effects = Sequence[Effect]


def effects(link: Link, proposal: Proposal) -> Effects:
    """All of them, in order. A topic to create is copied as well, though the plan names it only once it is there."""
    return tuple(sorted({*_on_topics(proposal), *planned_effects(link, proposal)}))


def planned_effects(link: Link, proposal: Proposal) -> Effects:
    """Those that come with the publication of the plan, when what has to be done to topics is done."""
    return tuple(sorted({*_copied(link, proposal), *_policies(proposal), *cluster_effects(proposal)}))


def fingerprint(shown: Effects, clusters: Clusters) -> str:
    """Equal for equal effects between the same clusters, and for no others."""
    rows = [list(effect) for effect in sorted(shown)]
    text = json.dumps([rows, list(clusters)], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(shown: Effects, now: Effects) -> list[str]:
    """One line for each effect that is in one of them only."""
    gone, new = sorted(set(shown) - set(now)), sorted(set(now) - set(shown))
    return [f"no longer: {_plain(effect)}" for effect in gone] + [f"not shown: {_plain(effect)}" for effect in new]


def unseen(shown: Effects, now: Effects) -> list[str]:
    """One line for each effect that nobody has seen. What is done already, such as a creation, may be missing by
    now."""
    return [f"not shown: {_plain(effect)}" for effect in sorted(set(now) - set(shown))]


def _on_topics(proposal: Proposal) -> Iterator[Effect]:
    return (Effect(action.verb, action.subject, action.detail) for action in proposal.actions)


def _copied(link: Link, proposal: Proposal) -> Iterator[Effect]:
    """Topics, not partitions: those of a topic that is copied come and go as the topic does."""
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
