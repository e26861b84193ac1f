"""Formats proposals and their results as human-readable text and as plain data. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from strait.config.groups import DEFAULT_GROUP
from strait.model import ranges, spans
from strait.planning.plan.draft import Draft
from strait.planning.plan.planner import Proposal
from strait.planning.review.changes import Changes, changes
from strait.planning.review.clusters import cluster_effects
from strait.planning.review.effect import Effect, totals
from strait.planning.topic_sync.actions import Action, CreateTopic, actions_data
from strait.reasons import Reason
from strait.state.schema import Waiting
from strait.text import plural


def proposal_text(proposal: Proposal) -> str:
    """Return the topics to create, replicate and skip, with reasons, line by line, followed by the totals."""
    actions = [_shown(action) for action in proposal.actions]
    safety = [
        Effect("sets", f"state topic {topic}", ", ".join(f"{name}={value}" for name, value in put.items()))
        for topic, put in proposal.state_changes.items()
    ]
    moved = [*cluster_effects(proposal)]
    moved += [] if proposal.draft is None else _changed(changes(proposal.before, proposal.draft))
    waits = [_waits(item) for item in _in_force(proposal).waiting]
    refused = [f"refused   ACLs: {proposal.sync.acls_denied}"] if proposal.sync.acls_denied else []
    return "\n".join(
        [
            *(effect.line for effect in (*actions, *safety)),
            *refused,
            *map(str, proposal.state_risks),
            _headline(proposal),
            *(effect.line for effect in (*moved, *waits, *_left_out(proposal))),
            totals([*actions, *safety, *moved]),
        ]
    )


LINES_MOST = 20
"""Number of lines with the same first word that `shortened` keeps."""


def shortened(text: str, command: str = "strait plan") -> list[str]:
    """Return the lines of a proposal, or of its outcome, without those that are too many of one kind."""
    counted: Counter[str] = Counter()
    kept = []
    for line in text.splitlines():
        kind = line.lstrip(" +-~=!").partition(" ")[0]
        counted[kind] += 1
        if counted[kind] <= LINES_MOST:
            kept.append(line)
    more = [
        f"and {n - LINES_MOST:,} more of {kind!r}: `{command}` shows all"
        for kind, n in counted.items()
        if n > LINES_MOST
    ]
    return [*kept, *more]


def proposal_data(proposal: Proposal) -> dict[str, Any]:
    """Return the complete proposal as plain data."""
    return {
        **actions_data(proposal.actions, proposal.sync.acls_denied),
        "state_changes": {topic: dict(put) for topic, put in proposal.state_changes.items()},
        "risks": [risk._asdict() for risk in proposal.state_risks],
        "changes": None if proposal.draft is None else changes_data(changes(proposal.before, proposal.draft)),
        "topics": [
            {"group": group, **topic.model_dump()}
            for group, draft in sorted(proposal.groups.items())
            for topic in draft.topics
        ],
        "waiting": [waiting_data(item) for item in _in_force(proposal).waiting],
        "starts": [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "source_base": new.source_base,
                "destination_base": new.destination_base,
            }
            for tp, new in sorted(proposal.new.items())
        ],
        "skipped": [
            {"topic": skip.topic, "reason": str(skip.reason), "detail": skip.detail}
            for skip in proposal.survey.selection.skipped
        ],
    }


def changes_data(found: Changes) -> dict[str, Any]:
    """Return changes as plain data, with partitions as [topic, partition] pairs."""
    return {"added": list(found.added), "removed": list(found.removed), "moved": list(found.moved)} | {
        "policies": dict(found.policies),
        "budgets": found.budgets,
    }


def waiting_data(item: Waiting) -> dict[str, Any]:
    """Return a waiting entry as plain data, with its remedy."""
    remedy = Reason(item.reason).remedy if item.reason in set(Reason) else ""
    return item.model_dump() | {"remedy": remedy}


def summary(draft: Draft) -> str:
    """Return a plan in one line."""
    copied = sum(slot is not None for topic in draft.topics for slot in topic.slots)
    text = f"{plural(copied, 'partition')} of {plural(len(draft.topics), 'topic')} on {plural(draft.slots, 'slot')}, {len(draft.waiting)} waiting"
    return f"stopped, {text}" if draft.stopped else text


def refused_lines(refused: Mapping[str, str]) -> Iterator[str]:
    """Return a line for each change of topics and ACLs that a cluster rejected."""
    return (f"refused   {topic}: {why}" for topic, why in sorted(refused.items()))


def _shown(action: Action) -> Effect:
    """Return the effect of an action. A topic to create has its source topic added if the names differ."""
    subject = action.subject
    if isinstance(action, CreateTopic) and action.source != action.topic:
        subject += f" for {action.source}"
    return Effect(action.verb, subject, action.detail)


def _headline(proposal: Proposal) -> str:
    versions = {group: plan.version for group, plan in proposal.plans.items()}
    draft = proposal.draft
    if draft is None:
        return f"plan {_versions(versions)} stays as it is: {summary(_in_force(proposal))}"
    new = _versions({group: versions.get(group, 0) + 1 for group in proposal.drafts})
    created = [action for action in proposal.actions if isinstance(action, CreateTopic)]
    partitions = sum(action.partitions for action in created)
    later = f"; then {plural(partitions, 'partition')} of {plural(len(created), 'new topic')}" if created else ""
    return f"plan {new}: {summary(draft)}{later}"


def _changed(found: Changes) -> Iterator[Effect]:
    """Yield an effect per topic with added, removed or moved partitions or a changed policy, and one for budgets."""
    for verb, partitions in (("copies", found.added), ("leaves", found.removed), ("moves", found.moved)):
        for span in spans(partitions):
            yield Effect(verb, span)
    for topic, text in found.policies.items():
        yield Effect("changes", topic, text)
    if found.budgets:
        yield Effect("budget", found.budgets)


def _waits(item: Waiting) -> Effect:
    """Return a waiting entry as an effect: partitions, reason and remedy."""
    which = f" {ranges(item.partitions)}" if item.partitions else ""
    remedy = f" {Reason(item.reason).remedy}" if item.reason in set(Reason) else ""
    return Effect("waits", f"{item.topic}{which}", f"{item.reason}: {item.detail}.{remedy}")


def _left_out(proposal: Proposal) -> Iterator[Effect]:
    """Yield skipped topics: excluded ones by name, since an operator may miss them; the others only as a count."""
    skipped = proposal.survey.selection.skipped
    for skip in skipped:
        if skip.reason is not Reason.NOT_SELECTED and not skip.topic.startswith("__"):
            yield Effect("left out", skip.topic, skip.detail)
    counted = Counter(skip.reason for skip in skipped)
    if counted[Reason.NOT_SELECTED]:
        yield Effect(
            "left out", f"{plural(counted[Reason.NOT_SELECTED], 'other topic')} of the source, which no pattern selects"
        )


def _versions(versions: Mapping[str, int]) -> str:
    """Return the versions as text; of a link with only the `default` task group, just the number."""
    if versions.keys() == {DEFAULT_GROUP}:
        return str(versions[DEFAULT_GROUP])
    return ", ".join(f"{version} of group {group}" for group, version in sorted(versions.items()))


def _in_force(proposal: Proposal) -> Draft:
    found = proposal.draft or proposal.before
    assert found is not None
    return found
