"""OpenLineage events of hours. Its provider is not among Strait's libraries, so what is sent is caught where that would take
it: its public functions, and the classes of its client."""

import sys
from enum import StrEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from strait.planning.status.complete_hours import HOUR_MS, Told, TopicEnds, event_of
from strait_airflow.lineage import emit_lineage, records_of

pytestmark = [pytest.mark.airflow, pytest.mark.core]

NINE = 1_764_234_000_000  # 2025-11-27 09:00 UTC
LINK: Any = SimpleNamespace(
    name="shop",
    source=({"bootstrap.servers": "a:1, a:2", "sasl.password": "secret"}, "a"),
    destination=({"bootstrap.servers": "b:1"}, "b"),
)


class RunState(StrEnum):
    START = "START"
    COMPLETE = "COMPLETE"


def hour(start: int | None = 3, end: int | None = 8, number: int = 0, last: int = 90) -> dict[str, Any]:
    told = Told(NINE - HOUR_MS, TopicEnds("id", {0: 30}), {0: start})
    facts = event_of(NINE + number * HOUR_MS, TopicEnds("id", {0: last}), {0: end}, told)
    return {"topic": "orders", "destination_topic": "dr.orders", **facts}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    api, v2, facets = (ModuleType(name) for name in ("api", "v2", "facets"))
    api.is_openlineage_active, api.emit = lambda: True, found.append  # type: ignore[attr-defined]
    for name in ("Run", "Job", "InputDataset", "OutputDataset", "RunEvent"):
        setattr(v2, name, SimpleNamespace)
    v2.RunState = RunState  # type: ignore[attr-defined]
    facets.nominal_time_run = SimpleNamespace(NominalTimeRunFacet=SimpleNamespace)  # type: ignore[attr-defined]
    statistics = SimpleNamespace(OutputStatisticsOutputDatasetFacet=SimpleNamespace)
    facets.output_statistics_output_dataset = statistics  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", ModuleType("openlineage"))
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.api", api)
    for name, module in {"": ModuleType("openlineage"), ".client": ModuleType("client")}.items():
        monkeypatch.setitem(sys.modules, f"openlineage{name}", module)
    monkeypatch.setitem(sys.modules, "openlineage.client.event_v2", v2)
    monkeypatch.setitem(sys.modules, "openlineage.client.facet_v2", facets)
    return found


def test_each_hour_is_a_run_from_topic_to_topic_with_its_records(sent):
    emit_lineage(LINK, [hour(), hour(number=1)])
    assert [event.eventType for event in sent] == ["START", "COMPLETE"] * 2
    _, end, _, other = sent
    assert (end.job.namespace, end.job.name) == ("default", "strait.shop.orders")
    assert vars(end.run.facets["nominalTime"]) == {
        "nominalStartTime": "2025-11-27T09:00:00+00:00",
        "nominalEndTime": "2025-11-27T10:00:00+00:00",
    }
    assert [(one.namespace, one.name) for one in (*end.inputs, *end.outputs)] == [
        ("kafka://a:1", "orders"),
        ("kafka://b:1", "dr.orders"),
    ]
    assert end.outputs[0].outputFacets["outputStatistics"].rowCount == 5
    assert end.run.runId != other.run.runId
    assert "secret" not in str(sent)
    emit_lineage(LINK, [hour()])
    assert sent[-1].run.runId == end.run.runId, "a repeated run is the same"


@pytest.mark.parametrize(
    ("start", "end", "last", "records"),
    [
        (3, 8, 90, 5),
        (8, 8, 90, 0),
        (None, None, 90, None),
        (None, 8, 90, None),
        (3, None, 90, None),
        (0, None, 90, None),
        (0, None, 30, 0),
        (None, None, 30, 0),
        (None, 8, 30, 0),
    ],
)
def test_records_are_counted_on_the_destination_and_unknown_ones_are_no_zero(sent, start, end, last, records):
    """Of an hour that has no record on the source (which ends with 30, as the one before), none is unknown."""
    assert records_of(hour(start, end, last=last)) == records
    emit_lineage(LINK, [hour(start, end, last=last)])
    assert ("outputStatistics" in sent[0].outputs[0].outputFacets) == (records is not None)


def test_nothing_is_sent_without_the_provider_and_an_error_of_it_fails_nothing(sent, monkeypatch, caplog):
    api = sys.modules["airflow.providers.openlineage.api"]
    api.is_openlineage_active = lambda: False  # type: ignore[attr-defined]
    emit_lineage(LINK, [hour()])
    api.is_openlineage_active = lambda: 1 / 0  # type: ignore[attr-defined]
    emit_lineage(LINK, [hour()])
    assert "hours are not told to OpenLineage" in caplog.text
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.api", None)
    emit_lineage(LINK, [hour()])
    assert sent == []
