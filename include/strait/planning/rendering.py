"""Proposals and what came of them, as text for people and as plain data for programs. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from strait.planning.changes import Changes, changes, ranges, spans
from strait.planning.plan import Draft, Proposal
from strait.planning.topics import CreateTopic
from strait.reasons import Reason
from strait.state.schema import Waiting


def proposal_text(proposal: Proposal) -> str:
    """Line by line what would be created, copied and left out, and why."""
    return "\n".join([*map(_creation, proposal.create), *_plan_lines(proposal), *left_out_lines(proposal)])


def proposal_data(proposal: Proposal) -> dict[str, Any]:
    """The same, complete."""
    return {
        "create": [creation_data(item) for item in proposal.create],
        "changes": None if proposal.draft is None else changes_data(_changes(proposal, proposal.draft)),
        "topics": [topic.model_dump() for topic in _in_force(proposal).topics],
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
    return {"added": list(found.added), "removed": list(found.removed), "moved": list(found.moved)}


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
    """One line for each topic with added, removed or moved partitions."""
    for what, partitions in (("copies", found.added), ("leaves", found.removed), ("moves", found.moved)):
        for span in spans(partitions):
            yield f"{what:<9} {span}"


def left_out_lines(proposal: Proposal) -> Iterator[str]:
    """Topics left out: excluded ones by name, since somebody may wonder; the rest only counted."""
    skipped = proposal.survey.selection.skipped
    for skip in skipped:
        if skip.reason is Reason.EXCLUDED and not skip.topic.startswith("__"):
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
    """Topics that the destination did not let us create."""
    return (f"refused   {topic}: {why}" for topic, why in sorted(refused.items()))


def _plan_lines(proposal: Proposal) -> Iterator[str]:
    if proposal.draft is None:
        assert proposal.previous is not None
        yield f"plan {proposal.previous.version} stays as it is: {summary(_in_force(proposal))}"
    else:
        before = 0 if proposal.previous is None else proposal.previous.version
        yield f"plan {before + 1}: {summary(proposal.draft)}"
        yield from change_lines(_changes(proposal, proposal.draft))
    yield from map(waiting_text, _in_force(proposal).waiting)


def _creation(item: CreateTopic) -> str:
    replicas = "" if item.replication_factor is None else f", replication factor {item.replication_factor}"
    return f"creates   {item.topic} for {item.source}: {item.partitions} partitions{replicas}"


def _changes(proposal: Proposal, draft: Draft) -> Changes:
    return changes(None if proposal.previous is None else Draft.of(proposal.previous), draft)


def _in_force(proposal: Proposal) -> Draft:
    if proposal.draft is not None:
        return proposal.draft
    assert proposal.previous is not None
    return Draft.of(proposal.previous)
