"""Links to brokers of another implementation, and to such as lack a request."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from strait.cli.main import app
from strait.control.plane import Control
from strait.errors import UnsupportedRequest
from strait.kafka.admin import Admin, NewTopic
from strait.reasons import Reason
from support.fixtures.waiting import eventually
from support.kafka.kfake import (
    SERVERLESS,
    TOO_OLD,
    WITHOUT_ACLS,
    WITHOUT_EPOCHS,
    WITHOUT_LOG_DIRS,
    WITHOUT_PRODUCERS,
    WITHOUT_TRANSACTIONS,
    OtherBrokers,
    kfake,
)
from support.kafka.tansu import tansu
from support.links.engine_link import EngineLink
from support.links.load import writing

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    "lacking",
    [{}, WITHOUT_PRODUCERS, {**WITHOUT_ACLS, **WITHOUT_LOG_DIRS}, SERVERLESS],
    ids=["all", "no producers", "no ACLs, no log dirs", "serverless"],
)
def test_every_record_is_copied_once_also_after_kill_9(tmp_path: Path, lacking: dict[int, int]) -> None:
    with kfake(WITHOUT_LOG_DIRS if lacking else {}) as source, kfake(lacking) as destination:
        link, slot = started(tmp_path, source, destination, partitions=3)
        with writing(source, link.topics, seed=3, records=20_000):
            eventually(lambda: link.copied() > 2_000, what=lambda: f"copying has begun: {link.log()}")
            link.kill(slot)
            link.start_slot()
        link.until_copied()
        link.assert_equal()
        link.stop()


@pytest.mark.parametrize(
    ("end", "lacking", "request_name", "reason"),
    [
        ("source", TOO_OLD, "Fetch", Reason.SOURCE_UNSUPPORTED),
        ("destination", TOO_OLD, "Produce", Reason.DESTINATION_UNSUPPORTED),
        ("source", WITHOUT_EPOCHS, "OffsetForLeaderEpoch", Reason.SOURCE_UNSUPPORTED),
        ("destination", WITHOUT_EPOCHS, "OffsetForLeaderEpoch", Reason.DESTINATION_UNSUPPORTED),
    ],
)
def test_a_partition_that_waits_for_a_request_names_it(
    tmp_path: Path, end: str, lacking: dict[int, int], request_name: str, reason: Reason
) -> None:
    with kfake(lacking if end == "source" else {}) as source, kfake(lacking if end == "destination" else {}) as other:
        link, slot = started(tmp_path, source, other, partitions=1)
        with link.reports() as newest:

            def waits() -> bool:
                row = newest("other", 0)
                return row is not None and row.reason == reason and request_name in (row.detail or "")

            eventually(waits, what=lambda: f"{reason}: {newest('other', 0)} {link.log()}")
        assert slot.poll() is None, link.log()
        link.stop()


@pytest.mark.parametrize("end", ["source", "destination"])
def test_brokers_that_accept_what_they_must_not_are_refused_and_get_nothing(tmp_path: Path, end: str) -> None:
    """Tansu lacks the request by which a log that was cut is recognized. Nothing is copied from it, or into it."""
    with tansu(tmp_path / "hostile") as hostile, kfake({}) as plain:
        source, destination = (hostile, plain) if end == "source" else (plain, hostile)
        link, slot = started(tmp_path, source, destination, partitions=1)
        with writing(source, link.topics, seed=5, records=1_000):
            pass
        with link.reports() as newest:

            def waits() -> bool:
                row = newest("other", 0)
                lacks = row is not None and "OffsetForLeaderEpoch" in (row.detail or "")
                return lacks and row is not None and row.reason == f"{end}_unsupported"

            eventually(waits, what=lambda: f"it is refused: {newest('other', 0)} {link.log()}")
        assert (link.copied(), slot.poll()) == (0, None), link.log()
        link.stop()
        shown = CliRunner().invoke(app, ["validate", "-f", str(links_file(tmp_path, source, destination)), "--connect"])
        assert shown.exit_code == 1
        assert "OffsetForLeaderEpoch: nothing can be copied" in shown.output


def test_validate_says_what_is_missing_and_what_that_costs(tmp_path: Path) -> None:
    with kfake(WITHOUT_LOG_DIRS, brokers=2) as source, kfake(SERVERLESS) as destination, kfake(TOO_OLD) as old:
        file = links_file(tmp_path, source, destination)
        shown = CliRunner().invoke(app, ["validate", "-f", str(file), "--connect"])
        assert shown.exit_code == 0, shown.output
        assert "a as source: records can be copied; 2 brokers lack:" in shown.output
        assert "DescribeLogDirs: `strait plan` does not know the size of a backfill" in shown.output
        assert "b as destination: records can be copied; 1 broker lacks:" in shown.output
        assert "DescribeProducers: each start reads the end of each destination log" in shown.output

        shown = CliRunner().invoke(app, ["doctor", "-f", str(file), "--json"])
        found = {one["subject"]: one for one in json.loads(shown.output)["checks"]}
        assert (found["a as source"]["verdict"], found["a as source"]["found"]) == (
            "warning",
            "2 brokers answer, without DescribeLogDirs",
        )

        file = links_file(tmp_path, old, destination)
        shown = CliRunner().invoke(app, ["validate", "-f", str(file), "--connect", "--json"])
        assert shown.exit_code == 1
        source_end = next(one for one in json.loads(shown.output)["clusters"] if one["end"] == "source")
        assert not source_end["copies"]
        assert source_end["lacks"][0]["request"] == "Fetch"
        assert source_end["lacks"][0]["required"]
        shown = CliRunner().invoke(app, ["validate", "-f", str(file), "--connect"])
        assert "a as source: nothing can be copied; 1 broker lacks:" in shown.output
        assert re.search(r"  Fetch in versions \d+ to \d+ \(serves \d+ to 10\): nothing can be copied\n", shown.output)

    shown = CliRunner().invoke(app, ["validate", "-f", str(file), "--connect"])
    assert shown.exit_code == 1
    assert "a as source: no broker was asked" in shown.output


def test_a_plan_names_what_is_missing_and_is_made_all_the_same(tmp_path: Path) -> None:
    with kfake(WITHOUT_LOG_DIRS) as source, kfake(WITHOUT_PRODUCERS) as destination:
        file = links_file(tmp_path, source, destination)
        Admin(source.client_properties, "a").create([NewTopic("orders", 1, 1)])
        with writing(source, {"orders": 1}, seed=1, records=100):
            pass
        with Control.of(file, "a-to-b") as control:
            found = control.forecast(control.propose())
        lacks = {risk.detail for risk in found.risks if risk.code == "missing_request"}
        assert lacks == {
            "the source does not serve DescribeLogDirs: `strait plan` does not know the size of a backfill",
            "the destination does not serve DescribeProducers: each start reads the end of each destination log",
        }
        assert found.backfill.records == 100
        assert any("DescribeLogDirs" in text for text in found.unknown)


def test_a_destination_without_transactions_is_refused_at_once_and_gets_no_topic(tmp_path: Path) -> None:
    lacks = "AddPartitionsToTxn, EndTxn"
    with kfake({}) as source, kfake(WITHOUT_TRANSACTIONS) as destination:
        file = links_file(tmp_path, source, destination)
        Admin(source.client_properties, "a").create([NewTopic("orders", 1, 1)])
        with Control.of(file, "a-to-b") as control:
            proposal = control.propose()
            text = control.show(proposal).text
            assert all(f"does not serve {one}: nothing can be copied" in text for one in lacks.split(", "))
            with pytest.raises(UnsupportedRequest, match=f"cluster b: its brokers do not serve {lacks}: nothing"):
                control.apply(proposal)
        assert not Admin(destination.client_properties, "b").partition_counts()


def started(
    folder: Path, source: OtherBrokers, destination: OtherBrokers, partitions: int
) -> tuple[EngineLink, subprocess.Popen[bytes]]:
    link = EngineLink("other", source, destination, folder, {"other": partitions})
    link.make_topics()
    link.publish()
    return link, link.start_slot()


def links_file(folder: Path, source: OtherBrokers, destination: OtherBrokers) -> Path:
    file = folder / "links.json"
    clusters = {"a": source.client_properties, "b": destination.client_properties}
    link = {"source": "a", "destination": "b", "topics": {"include": ["orders"]}}
    file.write_text(json.dumps({"clusters": clusters, "links": {"a-to-b": link}}))
    return file
