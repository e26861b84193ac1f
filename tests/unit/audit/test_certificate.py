"""Certificates: equal for equal audits, and each change of one shows."""

import copy
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from typer.testing import CliRunner

from strait.audit.certificate import certificate, hash_of, problems, signed
from strait.audit.findings import Difference
from strait.audit.plan import AuditedPartition, AuditedTopic, AuditPlan
from strait.audit.publishing import record_of, results_of
from strait.audit.task_result import ChunkResult, of_parquet, parquet
from strait.cli.main import app
from strait.config.audit import AuditRequest
from strait.errors import ConfigError
from strait.state.audit_records import Audit, TopicResult
from strait.state.codec import decode, encode


def plan_of(**changed):
    partitions = [AuditedPartition(topic="t", partition=n, copy_topic="t", first=0, end=200) for n in range(2)]
    return AuditPlan(
        id="one",
        link="a-to-b",
        request=AuditRequest(**changed),
        source="a",
        destination="b",
        source_cluster="A",
        destination_cluster="B",
        topics=(AuditedTopic(topic="t", copy_topic="t", source_id="S", copy_id="D"),),
        partitions=tuple(partitions),
        planned_at_ms=5,
    )


def result(partition, first, **changed):
    sums = {"records": 100, "by_batch": 90, "by_record": 10, "source_bytes": 1000, "copy_bytes": 999}
    return ChunkResult("t", partition, first, first + 100, 0, 0, 0, 0, "equal", **sums | changed)


def made(results, *, at=10, **changed):
    chunks = {"t-0": 2, "t-1": 2}
    return certificate(plan_of(**changed), results, began_at_ms=at, ended_at_ms=at + 1, chunks=chunks)


EQUAL = [result(partition, first) for partition in range(2) for first in (0, 100)]


def test_two_audits_of_the_same_ranges_have_the_same_body():
    one, other = made(EQUAL), made(list(reversed(EQUAL)), at=99)
    assert one["body"] == other["body"] and one["sha256"] == other["sha256"]
    assert one["times"] != other["times"]
    assert one["body"]["verdict"] == "equal" and one["body"]["records"] == 400
    assert problems(one) == []


@pytest.mark.parametrize(
    ("counts", "changed", "verdict"),
    [
        ((("missing", "", 3),), {}, "different"),
        ((("missing", "losses: tail_dropped", 3),), {}, "explained"),
        ((("deleted", "", 3),), {}, "incomplete"),
        ((), {"error": "cluster a: down"}, "incomplete"),
    ],
)
def test_the_verdict_follows_from_all_chunks(counts, changed, verdict):
    differences = tuple(Difference(kind, 7, -1, records, why) for kind, why, records in counts)
    whole = made([*EQUAL[:3], result(1, 100, counts=counts, differences=differences, **changed)])
    assert whole["body"]["verdict"] == verdict
    assert [one["verdict"] for one in whole["body"]["partitions"]] == ["equal", verdict]
    assert problems(whole) == []


@pytest.mark.parametrize("left", [{"tail": 9}, {"deleted": 9}, {"before": 9}])
def test_a_partition_of_which_nothing_was_compared_is_not_equal_unless_it_is_empty(left):
    plan = plan_of()
    empty, other = plan.partitions
    whole = certified(plan, (empty.model_copy(update=left), other), EQUAL[2:])
    assert [one["verdict"] for one in whole["body"]["partitions"]] == ["incomplete", "equal"]
    assert whole["body"]["verdict"] == "incomplete"
    assert "t-0: none of its records could be compared" in whole["body"]["not_covered"]
    whole = certified(plan, (empty, other), EQUAL[2:])
    assert whole["body"]["verdict"] == "equal"


def test_a_time_without_records_is_not_equal():
    for plan in (plan_of(since_ms=7), plan_of(until_ms=7)):
        tail = [one.model_copy(update={"tail": 3}) for one in plan.partitions]
        whole = certified(plan, tail, [])
        assert whole["body"]["verdict"] == "incomplete"
        assert "no record is of the requested time" in whole["body"]["not_covered"]
        assert certified(plan, tail, EQUAL[:2])["body"]["verdict"] == "equal", "others are quiet"


def certified(plan, partitions, results):
    changed = plan.model_copy(update={"partitions": tuple(partitions)})
    return certificate(changed, results, began_at_ms=1, ended_at_ms=2, chunks={})


def test_a_sample_says_how_much_it_does_not_cover():
    whole = made(EQUAL[:3], sample=0.5, seed="x")
    assert "1 of 4 chunks are not in the sample" in whole["body"]["not_covered"]
    assert whole["body"]["method"]["seed"] == "x"


def keys():
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_each_change_of_a_certificate_shows():
    private, public = keys()
    whole = signed(made(EQUAL), private)
    assert problems(json.loads(json.dumps(whole)), public) == []
    for path in (
        ("body", "verdict"),
        ("body", "records"),
        ("times", "ended_at_ms"),
        ("sha256",),
        ("times_sha256",),
        ("signature", "value"),
    ):
        changed = copy.deepcopy(whole)
        inner = changed
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = 1 if path[-1].endswith("ms") or path[-1] == "records" else "AAAA"
        assert problems(changed, public), path
        assert problems(changed) or path[0] == "signature", path


@pytest.mark.parametrize(
    "changed",
    [
        {"partitions": [1]},
        {"partitions": [{"records": "a"}]},
        {"partitions": {}},
        {"records": "1"},
        {"verdict": None},
        {"partitions": []},
    ],
)
def test_a_certificate_of_another_shape_is_refused_also_if_its_hash_is_right(changed, tmp_path):
    body = {name: one for name, one in {**made(EQUAL)["body"], **changed}.items() if one is not None}
    whole = {"body": body, "times": {}, "sha256": hash_of(body)}
    assert problems(whole)
    file = tmp_path / "c.json"
    file.write_text(json.dumps(whole))
    shown = CliRunner().invoke(app, ["audit", "verify", str(file)])
    assert (shown.exit_code, shown.exception) in [(1, None)] or isinstance(shown.exception, SystemExit)
    assert "Traceback" not in shown.output


def test_the_signature_is_of_one_key():
    private, _ = keys()
    _, other = keys()
    assert problems(signed(made(EQUAL), private), other) == ["the signature is not of this key and this content"]
    assert problems(made(EQUAL), other) == ["it has no signature"]
    with pytest.raises(ConfigError, match="private key in PEM"):
        signed(made(EQUAL), b"no key")


@pytest.mark.parametrize("content", ["[]", "{}", '{"body": {}, "times": {}}', "null", '{"body": 1}'])
def test_anything_else_is_no_certificate(content, tmp_path):
    assert problems(json.loads(content))
    file = tmp_path / "c.json"
    file.write_text(content)
    assert CliRunner().invoke(app, ["audit", "verify", str(file)]).exit_code == 1


def test_the_command_verifies_a_file_and_its_signature(tmp_path):
    private, public = keys()
    files = {"c.json": json.dumps(signed(made(EQUAL), private)).encode(), "pub.pem": public}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    shown = CliRunner().invoke(app, ["audit", "verify", str(tmp_path / "c.json"), "--key", str(tmp_path / "pub.pem")])
    assert shown.exit_code == 0 and "signature is valid" in shown.stdout
    (tmp_path / "c.json").write_bytes(files["c.json"].replace(b'"equal"', b'"explained"', 1))
    shown = CliRunner().invoke(app, ["audit", "verify", str(tmp_path / "c.json"), "-o", "json"])
    assert shown.exit_code == 1 and json.loads(shown.stdout)["valid"] is False


def test_the_results_of_chunks_survive_a_file():
    results = [*EQUAL, result(0, 500, counts=(("missing", "x", 1),), differences=(Difference("missing", 1, -1),))]
    assert of_parquet(parquet(results)) == results


def test_the_records_in_the_link_s_state_are_read_as_they_were_written():
    record = record_of("a-to-b", made(EQUAL))
    assert decode(Audit, *encode(record)) == record
    (result_,) = results_of(made(EQUAL))
    assert decode(TopicResult, *encode(result_)) == result_
    assert (result_.verdict, result_.records, result_.verified_until_ms, result_.kind) == (
        "equal",
        400,
        5,
        "conclusive",
    )
    (sample,) = results_of(made(EQUAL, sample=0.5))
    assert (sample.verified_until_ms, sample.kind) == (None, "partial")
    (behind,) = results_of(made([*EQUAL[:3], result(1, 100, tail=7, newest_ms=3)]))
    assert behind.verified_until_ms == 3
    (ahead,) = results_of(made([*EQUAL[:3], result(1, 100, tail=7, newest_ms=1_790_000_000_000_009)]))
    assert ahead.verified_until_ms == 5, "a timestamp in microseconds is after the audit"
    (different,) = results_of(made([*EQUAL[:3], result(1, 100, counts=(("missing", "", 1),))], sample=0.5))
    assert (different.differences, different.verified_until_ms, different.kind) == (1, None, "conclusive")


def test_a_year_of_nightly_audits_of_many_topics_adds_little_to_the_topic_that_is_kept_forever():
    key, value = encode(record_of("a-to-b", made(EQUAL)))
    assert 366 * (len(key) + len(value) + 100) < 250_000
