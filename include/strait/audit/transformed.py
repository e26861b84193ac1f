"""Transformed topics in the plan of an audit: which can be compared, and the source offsets to evaluate. Pure."""

from collections.abc import Sequence

from strait.audit.link_state import LinkState
from strait.audit.plan import AuditedPartition
from strait.state.admission import Admission
from strait.state.offset_map import gaps_of
from strait.state.schema import OffsetMapping
from strait.state.signing import Proof
from strait.state.transform import TopicTransform
from strait.state.translation import Translator


def transformation(digest: str) -> str:
    """Return the name of a transformation in messages. ``digest``: "" for none."""
    return f"transformation {digest}" if digest else "no transformation"


def made_otherwise(runs: Sequence[OffsetMapping], digest: str) -> str:
    """Return why records of a partition cannot be compared: they were made in another way than the plan now has; "" if all were
    made so."""
    others = sorted({run.transform for run in runs} - {digest})
    if not others:
        return ""
    return f"its records were made by {transformation(others[0])}, and the plan has {transformation(digest)}"


def of_transformed(
    one: AuditedPartition,
    transform: TopicTransform,
    runs: Sequence[OffsetMapping],
    map_of: Translator,
    requested: tuple[int, int],
) -> AuditedPartition:
    """Return a partition with the source offsets to evaluate.

    A destination record shows that its source record was kept, but nothing shows which ones were filtered out. So all offsets
    from the first copied record on are evaluated, also those after the last one.

    Args:
        one: with its numbers.
        requested: source offsets of the requested times.
    """
    if one.moved_in is not None:
        return one.model_copy(update={"problem": "another tool had replicated records that no transformation made"})
    base, _ = map_of.first
    began = min(run.source_base for run in runs if run.sequence_base == base)
    first = began if one.first == base else map_of.next_at_source(one.first).number
    low, high = max(one.source_start, first, requested[0]), min(requested[1], one.source_end)
    reached = [gap.source for run in runs for gap in gaps_of(run, one.end, one.end + 1)]
    return one.model_copy(
        update={
            "transform": transform,
            "source_from": low,
            "source_to": max(low, high),
            "before": max(0, began - max(one.source_start, requested[0])) if one.first == base else 0,
            "passed": max([map_of.next_at_source(one.end).number, *reached]),
        }
    )


def refused_transforms(state: LinkState, admission: Admission) -> dict[str, str]:
    """Return the source topics whose transformation the audit must not evaluate, with the problem."""
    found = {}
    for group, plan in state.plans.items():
        proof = state.proofs.get(group, Proof.UNSIGNED)
        for topic in plan.topics:
            if not admission.admits_transform(topic, proof):
                made = transformation(topic.policy.transform_digest)
                found[topic.source] = f"its plan, {proof.value}, has {made}, and the link's rules do not"
    return found
