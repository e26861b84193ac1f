"""Proposals and what came of them, as text for people and as plain data for programs. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from strait.config.groups import DEFAULT_GROUP
from strait.planning.plan.planner import Draft, Proposal
from strait.planning.review.changes import Changes, changes, ranges, spans
from strait.planning.review.sync_text import upkeep_data, upkeep_lines
from strait.planning.topic_sync.creation import CreateTopic
from strait.reasons import Reason
from strait.state.schema import Waiting


def proposal_text(proposal: Proposal) -> str:
    """Line by line what would be created, copied and left out, and why."""
    beats = (
        [] if proposal.create_heartbeats is None else [f"creates   {proposal.create_heartbeats.topic} on the source"]
    )
    topics = [*beats, *map(_creation, proposal.create), *upkeep_lines(proposal.upkeep)]
    safety = [*map(_safety, proposal.state_changes.items()), *map(str, proposal.state_risks)]
    return "\n".join([*topics, *safety, *_plan_lines(proposal), *left_out_lines(proposal)])


def _safety(change: tuple[str, Mapping[str, str]]) -> str:
    topic, put = change
    return f"sets      {', '.join(f'{name}={value}' for name, value in put.items())} on state topic {topic}"


def proposal_data(proposal: Proposal) -> dict[str, Any]:
    """The same, complete."""
    return {
        "create": [creation_data(item) for item in proposal.create],
        "create_heartbeats": None if proposal.create_heartbeats is None else creation_data(proposal.create_heartbeats),
        **upkeep_data(proposal.upkeep),
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
    """Partitions as [topic, partition] pairs."""
    return {"added": list(found.added), "removed": list(found.removed), "moved": list(found.moved)} | {
        "policies": dict(found.policies),
        "budgets": found.budgets,
    }


def creation_data(item: CreateTopic) -> dict[str, Any]:
    """One topic to create."""
    return {
        "topic": item.topic,
        "source": item.source,
        "partitions": item.partitions,
        "replication_factor": item.replication_factor,
        "configs": dict(item.configs),
    }


def waiting_data(item: Waiting) -> dict[str, Any]:
    """One thing that waits, with what to do about it."""
    remedy = Reason(item.reason).remedy if item.reason in set(Reason) else ""
    return item.model_dump() | {"remedy": remedy}


def waiting_text(item: Waiting) -> str:
    """One thing that waits: what, why, what to do."""
    which = f" {ranges(item.partitions)}" if item.partitions else ""
    remedy = f" {Reason(item.reason).remedy}" if item.reason in set(Reason) else ""
    return f"waits     {item.topic}{which}: {item.reason}: {item.detail}.{remedy}"


def change_lines(found: Changes) -> Iterator[str]:
    """One line for each topic with added, removed or moved partitions or another policy, and one for budgets."""
    for what, partitions in (("copies", found.added), ("leaves", found.removed), ("moves", found.moved)):
        for span in spans(partitions):
            yield f"{what:<9} {span}"
    for topic, text in found.policies.items():
        yield f"changes   {topic}: {text}"
    if found.budgets:
        yield f"budget    {found.budgets}"


def left_out_lines(proposal: Proposal) -> Iterator[str]:
    """Topics left out: excluded ones by name, since somebody may wonder; the rest only counted."""
    skipped = proposal.survey.selection.skipped
    for skip in skipped:
        if skip.reason is not Reason.NOT_SELECTED and not skip.topic.startswith("__"):
            yield f"left out  {skip.topic}: {skip.detail}"
    counted = Counter(skip.reason for skip in skipped)
    if counted[Reason.NOT_SELECTED]:
        yield f"left out  {counted[Reason.NOT_SELECTED]} other topics of the source that nothing selects"


def summary(draft: Draft) -> str:
    """A plan in one line."""
    copied = sum(slot is not None for topic in draft.topics for slot in topic.slots)
    text = f"{copied} partitions of {len(draft.topics)} topics on {draft.slots} slots, {len(draft.waiting)} waiting"
    return f"stopped, {text}" if draft.stopped else text


def refused_lines(refused: Mapping[str, str]) -> Iterator[str]:
    """What a cluster did not let us do to topics and rights."""
    return (f"refused   {topic}: {why}" for topic, why in sorted(refused.items()))


def _plan_lines(proposal: Proposal) -> Iterator[str]:
    versions = {group: plan.version for group, plan in proposal.plans.items()}
    draft = proposal.draft
    if draft is None:
        yield f"plan {_versions(versions)} stays as it is: {summary(_in_force(proposal))}"
    else:
        yield f"plan {_versions({group: versions.get(group, 0) + 1 for group in proposal.drafts})}: {summary(draft)}"
        yield from change_lines(changes(proposal.before, draft))
    yield from map(waiting_text, _in_force(proposal).waiting)


def _versions(versions: Mapping[str, int]) -> str:
    """Of a link with one task group the number alone."""
    if versions.keys() == {DEFAULT_GROUP}:
        return str(versions[DEFAULT_GROUP])
    return ", ".join(f"{version} of group {group}" for group, version in sorted(versions.items()))


def _creation(item: CreateTopic) -> str:
    replicas = "" if item.replication_factor is None else f", replication factor {item.replication_factor}"
    return f"creates   {item.topic} for {item.source}: {item.partitions} partitions{replicas}"


def _in_force(proposal: Proposal) -> Draft:
    found = proposal.draft or proposal.before
    assert found is not None
    return found
