"""Signatures of plans, and the limits of a plan without one."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from strait.config.app_spec import AppSpec
from strait.config.client_properties import FORMER_STATE_KEY, STATE_KEY, problems
from strait.config.links import Link, Naming, Topics
from strait.config.selecting import Selected
from strait.config.topics import Rule
from strait.config.transform import Fields, Format, Transform
from strait.planning.plan.group_sync import planned_sync
from strait.planning.topic_sync import heartbeats
from strait.state.admission import Admission, with_selection_of
from strait.state.codec import encode
from strait.state.schema import Plan, PlannedHeartbeat, PlannedTopic, TopicPolicy
from strait.state.signing import HEADER, Keys, Proof, with_key
from strait.state.transform import TopicTransform
from strait.state.view import Place, StateView

KEY, OTHER = "k" * 32, "o" * 32
TOPIC = "strait.l.plan"


def plan(*topics: tuple[str, str], **fields: Any) -> Plan:
    planned = tuple(
        PlannedTopic(source=source, destination=destination, source_id="", destination_id="", slots=(0,))
        for source, destination in topics
    )
    base = {"link": "l", "group": "default", "version": 1, "producer_id": 1, "slots": 1, "published_at_ms": 0}
    return Plan(**base | {"topics": planned} | fields)


def link(**fields: Any) -> Link:
    base: dict[str, Any] = {
        "source": "a",
        "destination": "b",
        "topics": Topics(include=("orders",), regex=("logs-.*",)),
    }
    return Link(**base | fields)


def spec(of: Link | None, **destination: str) -> AppSpec:
    return AppSpec(
        link="l",
        group="default",
        source_name="a",
        source={},
        destination_name="b",
        destination=destination,
        selected=None if of is None else Selected.of(of),
        slots=1,
        slot_memory_bytes=1,
        ledger_seconds=1,
        ledger_dir="",
        checkpoint_dir="",
    )


MASKED = Transform(where="key IS NOT NULL", key="sha2(key, 256)")


def test_without_a_signature_no_plan_has_a_masked_topic_copied_as_it_is() -> None:
    """Who may write to the plan topic, on the destination, must not get what the rule keeps from it."""
    masking = link(topics=Topics(include=("orders",), rules=(Rule(match="orders", transform=MASKED),)))
    admission = Admission(spec(masking))
    kept = plan(("orders", "orders"))
    raw = TopicPolicy()
    wanted = TopicPolicy(transform=TopicTransform.of(MASKED))
    other = TopicPolicy(transform=TopicTransform.of(Transform(where="true")))
    for policy, refused in ((raw, {"orders"}), (wanted, set()), (other, {"orders"}), (raw, {"orders"})):
        forged = kept.model_copy(
            update={"topics": tuple(topic.model_copy(update={"policy": policy}) for topic in kept.topics)}
        )
        assert admission.refused_topics(forged, Proof.UNSIGNED) == refused
        assert admission.refused_topics(forged, Proof.PROVEN) == set()


def test_without_a_signature_no_plan_has_other_schemas_of_avro() -> None:
    """With a schema that has no such field, nothing would be masked."""
    schema = '{"type":"record","name":"A","fields":[{"name":"NAME","type":"string"}]}'
    real, false = (schema.replace("NAME", name) for name in ("email", "other"))
    mask = Transform(format=Format(value="avro", schema=real, schema_id=2), fields=Fields(set={"email": "''"}))
    masking = link(topics=Topics(include=("orders",), rules=(Rule(match="orders", transform=mask),)))
    admission, kept = Admission(spec(masking)), plan(("orders", "orders"))
    wanted = TopicTransform.of(mask)
    assert wanted is not None and wanted.avro is not None
    forged = wanted.model_copy(update={"avro": wanted.avro.model_copy(update={"older": {"1": false}})})
    assert forged.digest == wanted.digest
    for transform, refused in ((wanted, set()), (forged, {"orders"})):
        topics = (topic.model_copy(update={"policy": TopicPolicy(transform=transform)}) for topic in kept.topics)
        changed = kept.model_copy(update={"topics": tuple(topics)})
        assert admission.refused_topics(changed, Proof.UNSIGNED) == refused


def test_a_signature_is_of_one_record_of_one_topic_under_one_key() -> None:
    keys = Keys([KEY])
    headers = keys.signature(TOPIC, b"key", b"value")
    assert keys.proof(TOPIC, b"key", b"value", headers) is Proof.PROVEN
    assert Keys([OTHER, KEY]).proof(TOPIC, b"key", b"value", headers) is Proof.PROVEN
    for place in ((f"{TOPIC}2", b"key", b"value"), (TOPIC, b"key2", b"value"), (TOPIC, b"key", b"value2")):
        assert keys.proof(*place, headers) is Proof.OTHER_KEY
    limited = keys.signature(TOPIC, b"key", b"value", Proof.LIMITED)
    assert keys.proof(TOPIC, b"key", b"value", limited) is Proof.LIMITED
    (_, full), (_, less) = headers[0], limited[0]
    for forged in (b"1:" + less[2:], b"2:" + full[2:]):
        assert keys.proof(TOPIC, b"key", b"value", [(HEADER, forged)]) is Proof.OTHER_KEY
    assert [proof for proof in Proof if proof.is_own] == [Proof.PROVEN, Proof.LIMITED]
    for proof in (Proof.UNSIGNED, Proof.OTHER_KEY):
        assert keys.signature(TOPIC, b"key", b"value", proof) == []
    for others in (Keys([OTHER]), Keys([]), Keys(["", ""])):
        assert others.proof(TOPIC, b"key", b"value", headers) is Proof.OTHER_KEY


@pytest.mark.parametrize("told", [None, b"", b"1:", "1:text", b"\xff" * 70, "é"])
def test_no_header_proves_without_the_key(told: bytes | str | None) -> None:
    proof = Keys([KEY]).proof(TOPIC, None, b"value", [("x", b"y"), (HEADER, told)])
    assert proof is (Proof.UNSIGNED if told is None else Proof.OTHER_KEY)
    assert Keys([]).signature(TOPIC, b"", b"") == []


def test_the_view_keeps_whether_each_plan_is_proven() -> None:
    view, (key, value) = StateView("l", keys=Keys([KEY])), encode(plan())
    for headers, proof in ((Keys([KEY]).signature(TOPIC, key, value), Proof.PROVEN), ([], Proof.UNSIGNED)):
        view.apply("plan", key, value, Place(TOPIC, 0, 0), headers)
        assert view.proofs == {"default": proof}
    view.apply("plan", key, None, Place(TOPIC, 0, 1))
    assert view.proofs == {}


def test_the_key_of_a_host_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    with ThreadPoolExecutor(8) as pool:
        found = {with_key({"a": "b"})[STATE_KEY] for _ in pool.map(lambda _: None, range(8))}
        found |= {made[STATE_KEY] for made in pool.map(with_key, [{}] * 32)}
    (key,) = found
    assert len(key) == 64 and stat.S_IMODE((tmp_path / "home" / STATE_KEY).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "home").iterdir()] == [STATE_KEY]
    assert with_key({STATE_KEY: KEY}) == {STATE_KEY: KEY}, "that of the links file comes first"


def test_a_host_that_can_keep_no_key_signs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "file" / "home"))
    assert with_key({"a": "b"}) == {"a": "b"}


def test_keys_may_be_in_files_and_are_not_short(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    referred = {STATE_KEY: f"${{directory:{tmp_path}:key}}", FORMER_STATE_KEY: OTHER}
    assert not list(problems(referred))
    headers = Keys([KEY]).signature(TOPIC, b"", b"")
    assert Keys.of("b", referred).proof(TOPIC, b"", b"", headers) is Proof.PROVEN
    assert list(problems({STATE_KEY: "short"})) == [
        "`state.key` has 5 characters, fewer than 32; `openssl rand -hex 32` makes one"
    ]


@pytest.mark.parametrize(
    ("settings", "topic", "is_refused"),
    [
        ({}, ("orders", "orders"), False),
        ({}, ("logs-1", "logs-1"), False),
        ({}, ("salaries", "salaries"), True),
        ({}, ("orders", "salaries"), True),
        ({}, ("__consumer_offsets", "__consumer_offsets"), True),
        ({"topics": Topics(regex=(".*",), exclude=("secret-.*",))}, ("secret-1", "secret-1"), True),
        ({"topics": Topics(regex=(".*",))}, ("strait.l.map", "strait.l.map"), True),
        ({"naming": Naming(policy="prefix", prefix="a.")}, ("orders", "a.orders"), False),
        ({"naming": Naming(policy="prefix", prefix="a.")}, ("orders", "orders"), True),
        (
            {"topics": Topics(regex=(".*",), rules=(Rule(match="o.*", naming=Naming(policy="suffix", suffix=".x")),))},
            ("orders", "orders.x"),
            False,
        ),
        ({"topics": Topics(regex=("(a|aa)+b",))}, ("a" * 60 + "c", "a" * 60 + "c"), True),
    ],
)
def test_without_a_signature_a_plan_is_limited_to_the_selection(
    settings: dict[str, Any], topic: tuple[str, str], is_refused: bool
) -> None:
    admission = Admission(spec(link(**settings)))
    expected = {topic[0]} if is_refused else set()
    for _ in range(2):
        assert admission.refused_topics(plan(topic), Proof.UNSIGNED) == expected
        assert admission.refused_topics(plan(topic), Proof.OTHER_KEY) == expected
        assert admission.refused_topics(plan(topic), Proof.PROVEN) == set()
    assert Admission(spec(None)).admits(plan(topic), None)


def test_without_a_signature_heartbeats_go_to_the_links_own_topic_alone() -> None:
    beating = heartbeats.with_heartbeats(Link(source="a", destination="b", heartbeats={"enabled": True}))  # type: ignore[arg-type]
    planned = heartbeats.planned(beating)
    assert planned is not None
    forged = PlannedHeartbeat(**planned.model_dump() | {"topic": "orders"})
    for of, beat, admitted in ((beating, planned, True), (beating, forged, False), (link(), planned, False)):
        assert Admission(spec(of)).admits_heartbeat(plan(heartbeat=beat), Proof.UNSIGNED) is admitted
        assert Admission(spec(of)).admits_heartbeat(plan(heartbeat=beat), Proof.PROVEN)
    assert Admission(spec(link())).admits_heartbeat(plan(), Proof.UNSIGNED)
    source, destination = "heartbeats", "a.heartbeats"
    assert Admission(spec(beating)).refused_topics(plan((source, destination)), Proof.UNSIGNED) == set()


def test_without_a_signature_consumer_groups_are_those_of_the_settings() -> None:
    own = planned_sync(link(consumer_groups={"mm2_checkpoints": True}))
    assert own is not None
    admission = Admission(spec(link(consumer_groups={"mm2_checkpoints": True})))
    assert admission.admits_groups(own, Proof.UNSIGNED) and admission.admits_groups(None, Proof.UNSIGNED)
    assert admission.admits_groups(own.model_copy(update={"interval_seconds": 9}), Proof.UNSIGNED)
    for change in ({"include": ("other",)}, {"include_moved": True}, {"checkpoints_topic": "orders"}):
        forged = own.model_copy(update=change)
        assert not admission.admits_groups(forged, Proof.UNSIGNED) and admission.admits_groups(forged, Proof.PROVEN)
    assert not Admission(spec(link(consumer_groups={"sync": False}))).admits_groups(own, Proof.UNSIGNED)


def test_an_edit_restarts_an_application_only_if_that_could_not_follow_the_plan() -> None:
    both = link(topics=Topics(include=("orders", "new")))
    running, wanted = spec(link(), **{STATE_KEY: KEY}), spec(both, **{STATE_KEY: KEY})
    new, proven = plan(("orders", "orders"), ("new", "new")), {"default": Proof.PROVEN}
    assert with_selection_of(wanted, running, new, proven) == running, "it follows the signature"
    assert with_selection_of(wanted, running, new, {"default": Proof.UNSIGNED}) == wanted
    assert with_selection_of(wanted, running, new, {}) == wanted
    assert with_selection_of(wanted, running, plan(("orders", "orders")), {}) == running, "nothing new yet"
    assert with_selection_of(wanted, None, new, proven) == wanted
    other = spec(link(), **{STATE_KEY: OTHER})
    assert with_selection_of(wanted, other, new, proven) == wanted, "it does not know this key"
    assert other.without_keys() == running.without_keys()


def test_a_spec_is_read_as_it_was_written(tmp_path: Path) -> None:
    rules = (Rule(match="o.*", naming=Naming(policy="suffix", suffix=".x")), Rule(match="p", on_loss="restart"))
    written = spec(link(topics=Topics(regex=(".*",), rules=rules)), **{STATE_KEY: KEY})
    written.write(tmp_path / "spec")
    assert AppSpec.read(tmp_path / "spec") == written
    assert KEY not in repr(written)


def test_settings_that_limit_nothing_are_not_part_of_the_selection() -> None:
    rules = (Rule(match="o.*", on_loss="restart"),)
    ruled = link(topics=Topics(include=("orders",), regex=("logs-.*",), rules=rules), slot_memory_mib=32)
    assert Selected.of(ruled) == Selected.of(link())
