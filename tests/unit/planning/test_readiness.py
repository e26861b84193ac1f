"""What a rehearsal makes of a link that is not as safe as it could be."""

from dataclasses import replace

import pytest

from strait.model import TopicFacts, TopicPartition
from strait.planning import readiness
from strait.planning.failover import Verdict
from strait.planning.readiness import Sample
from strait.planning.status.rows import PartitionStatus
from strait.state.audit_records import AuditVerdict
from strait.state.failover_records import FailoverStep
from strait.state.verified import Verified


def facts(
    partitions: int = 3, replicas: int = 3, policy: str = "delete", ms: str = "1000", size: str = "-1"
) -> TopicFacts:
    configs = {"cleanup.policy": policy, "retention.ms": ms, "retention.bytes": size}
    return TopicFacts("t", "id", partitions, configs=configs, replicas=replicas)


@pytest.mark.parametrize(
    ("copy", "words"),
    [
        (facts(), ""),
        (facts(4, 4, ms="-1"), ""),
        (facts(partitions=2), "t: 2 partitions instead of 3"),
        (facts(replicas=1), "t: 1 replica instead of 3"),
        (facts(policy="compact"), "t: cleanup.policy compact"),
        (facts(ms="999"), "t: retention.ms 999 instead of 1000"),
        (facts(size="5"), "t: retention.bytes 5 instead of -1"),
        (None, "t: has no copy"),
    ],
)
def test_a_destination_that_keeps_less_is_named(copy: TopicFacts | None, words: str) -> None:
    check = readiness.settings([(facts(), copy)])
    assert check.verdict is (Verdict.WARNING if words else Verdict.DONE)
    assert words in check.detail


def test_topics_that_are_left_out_are_named_and_not_knowing_is_not_none() -> None:
    row = PartitionStatus("u", None, "", None, "left_out", "name_illegal", "")
    assert readiness.topics((), "").verdict is Verdict.DONE
    assert readiness.topics((row,), "").detail == "1 topic is left out: u (name_illegal)"
    assert readiness.topics((), "cluster a is away").verdict is Verdict.WARNING


def test_another_next_record_fails() -> None:
    place = TopicPartition("t", 0)
    assert readiness.samples([Sample("g", place, "x", "x"), Sample("g", place, None, None)]).verdict is Verdict.DONE
    left_out = readiness.samples([Sample("g", place, "x", "x")], ["users", "pay→big"])
    assert left_out.verdict is Verdict.WARNING and left_out.detail.endswith("a rule transforms it: pay→big, users")
    failed = readiness.samples([Sample("g", place, "x", "y")], ["users"])
    assert failed.verdict is Verdict.FAILED
    assert "g in t-0" in failed.detail
    assert readiness.shadow(2, ["g in t-0"]).verdict is Verdict.FAILED


def audited(verdict: AuditVerdict = "equal", differences: int = 0, until_ms: int | None = 3_600_000) -> Verified:
    return Verified(verdict, differences, until_ms)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ({}, "of 0 of 2 topics; not of t, u: strait audit l compares them"),
        (
            {"t": audited(), "other": audited()},
            "of 1 of 2 topics, and found no difference, until 1970-01-01 01:00:00 UTC; not of u",
        ),
        ({"t": audited(), "u": audited("incomplete", until_ms=None)}, "of 1 of 2 topics"),
        ({"t": audited(), "u": audited("different", 3, None)}, "records of 1 topic that differs: u 3;"),
        ({"t": audited(), "u": audited("equal", 3, None)}, "records of 1 topic that differs: u 3;"),
        (
            {"u": audited("different", 3, None)},
            "names the audits; audits have compared all records of 0 of 2 topics; not of t:",
        ),
    ],
)
def test_what_no_audit_has_compared_or_found_different_is_named(results: dict[str, Verified], words: str) -> None:
    check = readiness.audited("l", {"t", "u"}, results)
    assert check.verdict is Verdict.WARNING
    assert words in check.detail


def test_topics_are_verified_until_the_oldest_of_their_times() -> None:
    check = readiness.audited("l", {"t", "u"}, {"t": audited(until_ms=7_200_000), "u": audited("explained")})
    text = "audits have compared all records of 2 of 2 topics, and found no difference, until 1970-01-01 01:00:00 UTC"
    assert check == (Verdict.DONE, text)


def test_a_warning_is_worth_half_of_what_holds() -> None:
    def steps(*verdicts: str) -> list[FailoverStep]:
        return [
            FailoverStep.model_validate({"name": "s", "verdict": it, "detail": "", "began_at_ms": 0, "seconds": 0.0})
            for it in verdicts
        ]

    assert readiness.score(steps("done", "done", "warning", "failed")) == 62
    assert readiness.score(steps("waiting")) == 0
    assert readiness.score([]) == 0


def test_what_a_failover_would_lack_is_unknown_if_it_is_of_one_partition() -> None:
    known = PartitionStatus(
        *("t", 0, "t", 0, "copying", "", ""), lag_records=5, lag_seconds=2.0, held_back_records=1, held_back_seconds=9.0
    )
    silent = PartitionStatus("t", 1, "t", 0, "waiting", "slot_silent", "")
    assert (readiness.rpo_records([known]), readiness.rpo_seconds([known])) == (6, 9.0)
    assert (readiness.rpo_records([known, silent]), readiness.rpo_seconds([known, silent])) == (None, None)
    routes = [replace(known, topic="t→big", lag_records=3), replace(known, topic="t→rest"), replace(known, topic="u")]
    assert readiness.rpo_records(routes) == 6 + 6, "each record is on one of the routes"
    assert (readiness.rpo_records([]), readiness.rpo_seconds([])) == (0, 0.0)
