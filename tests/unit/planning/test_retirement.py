"""A copy is deleted only where nothing speaks for keeping it."""

from dataclasses import replace
from typing import Any

import pytest

from strait.config.links import Link
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.topic_sync.retirement import (
    Candidate,
    Evidence,
    Retirement,
    candidates,
    dated,
    retire,
)
from strait.state.schema import OffsetMapping, Waiting

GRACE_SECONDS, SINCE_MS = 60, 5_000
LATER_MS = SINCE_MS + 1000 * GRACE_SECONDS
PLACE = TopicPartition("orders", 0)


def link(on_foreign: str = "halt", **settings: Any) -> Link:
    rules = [{"match": "orders", "on_foreign": on_foreign}]
    block = {"source": "a", "destination": "b", "topics": {"regex": [".*"], "rules": rules}}
    return Link.model_validate(block | {"delete_copies_after_seconds": GRACE_SECONDS} | settings, strict=False)


def run(sequence: int = 0, offset: int = 0, end: int = 10, destination_id: str = "copy") -> OffsetMapping:
    return OffsetMapping(
        topic="orders",
        partition=0,
        destination="orders",
        source_id="gone",
        destination_id=destination_id,
        source_base=100 + sequence,
        destination_base=offset,
        sequence_base=sequence,
        sequence_end=end,
        checkpoint_at_ms=1,
    )


SOURCE = ClusterFacts("a", "cluster-a", {"other": TopicFacts("other", "other", 1)})
DESTINATION = ClusterFacts("b", "cluster-b", {"orders": TopicFacts("orders", "copy", 1)})
WAITING = (Waiting(topic="orders", reason="source_missing", detail="", since_ms=SINCE_MS),)
RUNS = {("orders", 0): (run(),), ("other", 0): (run().model_copy(update={"topic": "other"}),)}


def found(
    settings: Link | None = None,
    *,
    source: ClusterFacts = SOURCE,
    destination: ClusterFacts = DESTINATION,
    waiting: Any = WAITING,
    runs: Any = RUNS,
    copied_from: str = "cluster-a",
    now_ms: int = LATER_MS,
) -> tuple[Candidate, ...]:
    return candidates(settings or link(), waiting, source, destination, runs, copied_from, now_ms)


def decided(evidence: Evidence, *, settings: Link | None = None, runs: Any = RUNS, **facts: Any) -> Retirement:
    return retire(settings or link(), found(runs=runs, **facts), evidence, runs)


def log(first: int, end: int) -> Evidence:
    return Evidence(gone=frozenset({"orders"}), logs={PLACE: (first, end)})


def test_a_missing_topic_is_dated_once() -> None:
    new = Waiting(topic="orders", reason="source_missing", detail="new words")
    other = Waiting(topic="x", reason="destination_missing", detail="")
    assert [item.since_ms for item in dated([new, other], WAITING, 9_999)] == [SINCE_MS, 0]
    assert [item.since_ms for item in dated([new], [], 9_999)] == [9_999]


def test_a_topic_is_a_candidate_when_its_time_is_over() -> None:
    (one,) = found()
    assert (one.source, one.destination, one.destination_id) == ("orders", "orders", "copy")
    assert one.partitions == [PLACE]
    assert found(now_ms=LATER_MS - 1) == ()


@pytest.mark.parametrize(
    "facts",
    [
        {"settings": link(delete_copies_after_seconds=None)},
        {"source": replace(SOURCE, topics={})},
        {"source": replace(SOURCE, topics={"__consumer_offsets": TopicFacts("__consumer_offsets", "", 50)})},
        {"source": replace(SOURCE, cluster_id="another")},
        {"source": replace(SOURCE, topics={"orders": TopicFacts("orders", "back", 1)})},
        {"copied_from": ""},
        {"runs": {}},
        {"waiting": (WAITING[0].model_copy(update={"since_ms": 0}),)},
        {"waiting": (WAITING[0].model_copy(update={"reason": "destination_missing"}),)},
    ],
)
def test_nothing_is_a_candidate_where_it_may_not_be_gone_or_was_never_copied(facts: Any) -> None:
    settings = facts.pop("settings", None)
    assert found(settings, **facts) == ()


@pytest.mark.parametrize(
    ("topic", "copy"), [("orders", "payments"), ("payments", "payments"), ("x" * 40 + "!", "payments")]
)
def test_a_segment_that_a_foreign_client_has_written_deletes_no_topic_of_another_name(topic: str, copy: str) -> None:
    forged = run().model_copy(update={"topic": topic, "destination": copy})
    waiting = (WAITING[0].model_copy(update={"topic": topic}),)
    there = replace(DESTINATION, topics={copy: TopicFacts(copy, "copy", 1)})
    settings = link(topics={"include": ["orders"], "regex": ["(x+)+y"]})
    assert found(settings, runs={(topic, 0): (forged,)}, waiting=waiting, destination=there) == ()


def test_a_copy_that_holds_just_what_the_link_wrote_is_deleted() -> None:
    (deleted,) = decided(log(0, 10)).delete
    assert (deleted.topic, deleted.source, deleted.missing_since_ms) == ("orders", "orders", SINCE_MS)
    assert decided(log(3, 10)).delete, "retention has deleted the beginning"
    assert decided(log(10, 10)).delete, "retention has deleted all"
    two = {("orders", 0): (run(end=4), run(4, 4, end=10))}
    assert decided(log(0, 10), runs=two).delete


@pytest.mark.parametrize(
    ("evidence", "runs", "why"),
    [
        (Evidence(logs={PLACE: (0, 10)}), RUNS, "does not confirm that the topic is deleted"),
        (Evidence(gone=frozenset({"orders"})), RUNS, "offsets of partition orders-0 are unknown"),
        (log(0, 11), RUNS, "partition orders-0 has records"),
        (log(0, 9), RUNS, "partition orders-0 has records"),
        (log(0, 17), {("orders", 0): (run(offset=7),)}, "partition orders-0 has records"),
        (log(0, 13), {("orders", 0): (run(end=4), run(4, 7, end=10))}, "partition orders-0 has records"),
        (log(0, 10), {("orders", 0): (run(destination_id="former"),)}, "is not the topic that was replicated to"),
    ],
)
def test_a_copy_is_kept_where_anything_else_may_be_in_it(evidence: Evidence, runs: Any, why: str) -> None:
    verdict = decided(evidence, runs=runs)
    assert verdict.delete == ()
    assert why in verdict.kept["orders"]


def test_a_copy_with_a_partition_that_the_link_never_wrote_is_kept_unless_it_is_empty() -> None:
    wider = replace(DESTINATION, topics={"orders": TopicFacts("orders", "copy", 2)})
    logs = {PLACE: (0, 10), TopicPartition("orders", 1): (0, 1)}
    evidence = Evidence(gone=frozenset({"orders"}), logs=logs)
    assert "partition orders-1" in decided(evidence, destination=wider).kept["orders"]
    empty = replace(evidence, logs=logs | {TopicPartition("orders", 1): (0, 0)})
    assert decided(empty, destination=wider).delete


def test_a_copy_that_others_may_write_into_is_kept() -> None:
    assert "on_foreign" in decided(log(0, 10), settings=link("continue")).kept["orders"]


def test_what_is_gone_on_both_sides_is_forgotten() -> None:
    nowhere = replace(DESTINATION, topics={})
    gone = Evidence(gone=frozenset({"orders"}), copies_gone=frozenset({"orders"}))
    verdict = decided(gone, destination=nowhere)
    assert verdict == Retirement(forget=RUNS["orders", 0])
    assert verdict.forgotten == {"orders"}
    unseen = decided(replace(gone, copies_gone=frozenset()), destination=nowhere)
    assert "does not say whether orders exists" in unseen.kept["orders"]


def test_a_topic_to_which_another_link_replicates_is_kept_with_the_reason() -> None:
    evidence = replace(log(0, 10), others={"orders": "link other replicates to it, too"})
    assert [item.topic for item in decided(log(0, 10)).delete] == ["orders"]
    assert decided(evidence).kept == {"orders": "link other replicates to it, too"}
