"""The hook, sensors and operators for other DAGs, on real brokers, called as Airflow calls them."""

import asyncio
import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from confluent_kafka import Producer

from strait.control.plane import Control
from strait.control.quarantine import Quarantine
from strait.kafka.admin import Admin, NewTopic
from strait.wire.records import Record
from strait_airflow.hook import StraitHook
from strait_airflow.operators import (
    StraitApplyOperator,
    StraitAuditOperator,
    StraitFailoverOperator,
    StraitPauseOperator,
    StraitRehearsalOperator,
    StraitReplayQuarantineOperator,
    StraitResumeOperator,
)
from strait_airflow.page_address import page_address
from strait_airflow.sensors import StraitCaughtUpSensor, StraitHealthSensor
from support.links.copying import copying
from support.links.quarantined import keep_aside

pytestmark = [pytest.mark.airflow, pytest.mark.broker]

RECORDS = 10
CONTEXT = {"dag_run": SimpleNamespace(dag_id="nightly", triggering_user_name=None)}


@pytest.fixture
def links_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(tmp_path / "links.yaml"))
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    return tmp_path / "links.yaml"


@pytest.fixture
def link(clusters: Any, links_file: Path) -> str:
    """A link of this test alone, with a topic of its name: two partitions, of which one holds ten records."""
    name = f"l-{uuid.uuid4().hex[:8]}"
    both = {"a": clusters.source.client_properties, "b": clusters.destination.client_properties}
    settings = {"source": "a", "destination": "b", "topics": {"include": [name]}}
    links_file.write_text(yaml.safe_dump({"clusters": both, "links": {name: settings}}))
    Admin(clusters.source.client_properties, "a").create([NewTopic(name, 2, 1)])
    write(clusters, name, range(RECORDS))
    return name


def write(clusters: Any, topic: str, numbers: Any, **fields: Any) -> None:
    producer = Producer(clusters.source.client_properties)
    for number in numbers:
        producer.produce(topic, str(number).encode(), partition=0, **fields)
    assert producer.flush(30) == 0


@contextmanager
def replicating(link: str, links_file: Path, tmp_path: Path) -> Iterator[None]:
    with Control.of(links_file, link) as control, copying(control, tmp_path):
        yield


def deferred(sensor: Any) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as waits:
        sensor.execute(CONTEXT)
    assert waits.value.method_name == "resumed"
    return waits.value


def fired(waits: TaskDeferred, within_seconds: float = 120.0) -> dict[str, Any]:
    """The event of the trigger, after it has been stored and loaded as Airflow does."""
    _, arguments = waits.trigger.serialize()
    again = type(waits.trigger)(**json.loads(json.dumps(arguments)))

    async def first() -> dict[str, Any]:
        async for event in again.run():
            return json.loads(json.dumps(event.payload))
        raise AssertionError("it ended")

    return asyncio.run(asyncio.wait_for(first(), within_seconds))


def sensor(link: str, to: Any = "now", **arguments: Any) -> StraitCaughtUpSensor:
    return StraitCaughtUpSensor(task_id="complete", link=link, topics=[link], to=to, poke_interval=0.2, **arguments)


@pytest.mark.core
def test_a_batch_waits_until_what_was_written_is_replicated_and_reads_each_record_once(
    link, links_file, clusters, tmp_path
):
    waits = deferred(sensor(link))
    write(clusters, link, ["later"])
    with replicating(link, links_file, tmp_path):
        reached = sensor(link).resumed(CONTEXT, fired(waits))
        assert reached == {
            "link": link,
            "source_ends": {link: {"0": RECORDS, "1": 0}},
            "copies": {link: link},
            "destination_ends": {link: {"0": RECORDS, "1": 0}},
        }
        hook = StraitHook(link)
        batch = [message.value().decode() for message in hook.records("batch", reached)]
        assert batch == [str(number) for number in range(RECORDS)]
        assert len(list(hook.records("batch", reached))) == RECORDS, "nothing is committed yet"
        hook.commit("batch", reached)
        later = ended(sensor(link))
        assert [message.value() for message in hook.records("batch", later)] == [b"later"]
        hook.commit("batch", later)
        hook.commit("batch", reached)
        assert list(hook.records("batch", later)) == [], "an earlier moment takes nothing back"
        assert hook.translate({link: {0: 5}}) == {link: {"0": 5}}
        assert hook.status().link == link


def ended(waiting: Any) -> dict[str, Any]:
    """The result of a sensor, which waits in the triggerer if it has to."""
    try:
        return waiting.execute(CONTEXT)
    except TaskDeferred as waits:
        return waiting.resumed(CONTEXT, fired(waits))


def test_up_to_a_time_only_earlier_records_count_and_the_time_has_to_pass(link, links_file, clusters, tmp_path):
    write(clusters, link, ["early"], timestamp=1_000)
    write(clusters, link, ["new"], timestamp=4_000_000_000_000)
    at = datetime.now(UTC)
    with replicating(link, links_file, tmp_path):
        reached = ended(sensor(link, at))
        assert reached["source_ends"] == {link: {"0": RECORDS + 1, "1": 0}}, (
            "records of a later time are not waited for"
        )
        late = sensor(link, at, lateness=3600)
        waits = deferred(late)
        with pytest.raises(TimeoutError):
            fired(waits, within_seconds=3)
        assert json.loads(json.dumps(waits.trigger.serialize()[1]))["condition"]["lateness_seconds"] == 3600


def test_a_cluster_that_does_not_respond_is_waited_for(link, links_file, clusters, tmp_path):
    settings, waiting = links_file.read_text(), sensor(link)
    away = yaml.safe_load(settings)
    away["clusters"]["b"]["bootstrap.servers"] = "127.0.0.1:1"
    links_file.write_text(yaml.safe_dump(away))
    waits = deferred(waiting)
    links_file.write_text(settings)
    with replicating(link, links_file, tmp_path):
        assert waiting.resumed(CONTEXT, fired(waits))["source_ends"][link]["0"] == RECORDS


def test_a_topic_that_the_source_lacks_and_a_moment_that_is_none_fail_at_once(link, links_file):
    StraitApplyOperator(task_id="t", link=link).execute(CONTEXT)
    wrong = StraitCaughtUpSensor(task_id="t", link=link, topics=[f"{link}x"])
    with pytest.raises(AirflowFailException, match=rf"its source has no topic '{link}x'"):
        wrong.execute(CONTEXT)
    with pytest.raises(AirflowFailException, match="'None' is no moment"):
        sensor(link, "None").execute(CONTEXT)


def test_health_is_waited_for_and_a_pause_is_none_of_its_concern(link, links_file, tmp_path):
    healthy = StraitHealthSensor(task_id="t", link=link, poke_interval=0.2)
    waits = deferred(healthy)
    with replicating(link, links_file, tmp_path):
        assert healthy.resumed(CONTEXT, fired(waits)) == {"link": link, "topics": []}
        said = StraitPauseOperator(task_id="t", link=link, part=f"{link}:0", reason="batch").execute(CONTEXT)
        assert said.startswith(f"link {link}: pause ")
        assert "by DAG nightly: published plan" in said
        assert healthy.execute(CONTEXT) == {"link": link, "topics": []}
        other = StraitHealthSensor(task_id="t", link=link, topics="other", poke_interval=0.2)
        assert other._condition()["topics"] == ["other"]
        with pytest.raises(TimeoutError):
            fired(deferred(other), within_seconds=2)
        (pause,) = StraitHook(link).status().pauses
        assert (pause.by, pause.reason, pause.partition) == ("DAG nightly", "batch", 0)
        resume = StraitResumeOperator(task_id="t", link=link, part=f"{link}:0")
        assert "resume" in resume.execute(CONTEXT)
        assert resume.execute(CONTEXT) == f"link {link}: {link}-0 is not paused"
        assert StraitHook(link).status().pauses == ()


def test_apply_publishes_and_fails_while_a_change_waits_for_approval(link, links_file):
    assert StraitApplyOperator(task_id="t", link=link).execute(CONTEXT).startswith("plan 1: 2 partitions")
    file = yaml.safe_load(links_file.read_text())
    file["links"][link] |= {"approval": "required"}
    file["links"][link]["topics"]["include"].append("__none")
    file["links"][link]["naming"] = {"policy": "prefix", "prefix": "other."}
    links_file.write_text(yaml.safe_dump(file))
    with pytest.raises(AirflowException, match=f"link {link}: not all of it is done: ") as waits:
        StraitApplyOperator(task_id="t", link=link).execute(CONTEXT)
    assert not isinstance(waits.value, AirflowFailException), "a retry after the approval succeeds"


def test_a_rehearsal_below_the_score_fails_and_a_preview_of_a_failover_changes_nothing(link, links_file, tmp_path):
    with replicating(link, links_file, tmp_path):
        ended(sensor(link))
        said = StraitRehearsalOperator(task_id="t", link=link).execute(CONTEXT)
        assert f"link {link}: rehearsal" in said
        assert "% of the steps hold" in said
        with pytest.raises(AirflowFailException, match="required: 101 %"):
            StraitRehearsalOperator(task_id="t", link=link, minimum_score=101).execute(CONTEXT)
        preview = StraitFailoverOperator(task_id="t", link=link, preview=True).execute(CONTEXT)
        assert preview.startswith(f"link {link}: dry run: ")
        assert not StraitHook(link).status().stopped
    with pytest.raises(AirflowFailException, match="kind: 'quick' is neither"):
        StraitFailoverOperator(task_id="t", link=link, kind="quick").execute(CONTEXT)


def test_a_failover_ends_with_the_link_stopped(link, links_file, tmp_path):
    failover = StraitFailoverOperator(task_id="t", link=link, kind="unplanned", even_if_source_answers=True, reason="x")
    with replicating(link, links_file, tmp_path):
        ended(sensor(link))
        assert f"link {link}: unplanned failover" in failover.execute(CONTEXT)
    assert StraitHook(link).status().stopped


def test_quarantined_records_are_replayed(link, links_file, clusters):
    StraitApplyOperator(task_id="t", link=link).execute(CONTEXT)
    keep_aside(clusters.destination, link, Record(7, 1_600_000_000_000, b"k", b"v", ()), topic=link)
    replayed = f"{link}-replayed"
    Admin(clusters.destination.client_properties, "b").create([NewTopic(replayed, 1, 1)])
    chosen = {"task_id": "t", "link": link, "topic": link, "to": replayed}
    assert "would settle 1 record" in StraitReplayQuarantineOperator(**chosen, preview=True).execute(CONTEXT)
    assert "by DAG nightly: settled 1 record" in StraitReplayQuarantineOperator(**chosen).execute(CONTEXT)
    left = Quarantine(StraitHook(link).get_conn()).contents().entries()
    assert [entry for entry in left if not entry.settled] == []


@pytest.mark.spark
def test_an_audit_returns_its_verdict_and_fails_on_a_difference(link, links_file, clusters, tmp_path):
    ti = SimpleNamespace(dag_id="nightly", run_id="r1", task_id="audit", map_index=-1, max_tries=0)
    with replicating(link, links_file, tmp_path):
        ended(sensor(link))
    found = StraitAuditOperator(task_id="t", link=link, topics=[link]).execute({**CONTEXT, "ti": ti})
    assert found["verdict"] == "equal"
    again = StraitAuditOperator(task_id="t", link=link, topics=[link]).execute({**CONTEXT, "ti": ti})
    assert again == found, "a retry of the same task continues the same audit"
    body = json.loads((Path(found["directory"]) / "certificate.json").read_text())["body"]
    assert body["records"] == RECORDS


def test_each_has_its_fields_rendered_and_a_button_to_its_link(link, links_file):
    context = {"params": {"link": link, "topic": "orders"}, "data_interval_end": datetime(2026, 11, 26, 14, tzinfo=UTC)}
    made = [
        sensor("{{ params.link }}", "{{ data_interval_end }}"),
        StraitHealthSensor(task_id="t", link="{{ params.link }}"),
        StraitApplyOperator(task_id="t", link="{{ params.link }}"),
        StraitPauseOperator(task_id="t", link="{{ params.link }}", part="{{ params.topic }}"),
        StraitResumeOperator(task_id="t", link="{{ params.link }}", part="{{ params.topic }}"),
        StraitFailoverOperator(task_id="t", link="{{ params.link }}", topics=["{{ params.topic }}"]),
        StraitRehearsalOperator(task_id="t", link="{{ params.link }}"),
        StraitReplayQuarantineOperator(task_id="t", link="{{ params.link }}", topic="{{ params.topic }}"),
        StraitAuditOperator(task_id="t", link="{{ params.link }}", topics=["{{ params.topic }}"]),
    ]
    for one in made:
        one.render_template_fields(context)
        assert one.link == link
        (button,) = one.operator_extra_links
        assert button.get_link(one, ti_key=None) == page_address(link) == StraitHook(link).page
    logging.getLogger("strait.librdkafka").propagate = True
    for one in made:
        one.pre_execute(context)
    assert not logging.getLogger("strait.librdkafka").propagate, "its lines fill the logs of tasks"
    assert made[0]._condition()["to"] == "2026-11-26T14:00:00+00:00"
    assert [made[3].part, made[5].topics, made[8].topics] == ["orders", ["orders"], ["orders"]]
