"""Which hours the task of a link's DAG gives to its assets, from what Airflow's events and the asset's state tell."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from strait.config.assets import Assets
from strait.errors import ClusterUnavailable, OffsetsPending
from strait.planning.status.complete_hours import HOUR_MS, TopicEnds, event_of, key_of
from strait.waiting import unix_ms
from strait_airflow import hours as module
from strait_airflow import settings
from strait_airflow.assets import HOURS, hour_of, hourly, hours_of, topic_of
from strait_airflow.hours import GIVEN, emit_hours, next_hours
from strait_airflow.noticing import ACTED, Acted

pytestmark = [pytest.mark.airflow, pytest.mark.core]

LINK, ORDERS = "shop/eu", "orders"
NOW = unix_ms() // HOUR_MS * HOUR_MS


class Store(dict[str, Any]):
    def set(self, key: str, value: Any) -> None:
        self[key] = value


class Events(list[Any]):
    """Of an asset, as a task reads them: newest first."""

    read = 0

    def ascending(self, _: bool) -> "Events":
        self.read += 1
        return self

    def limit(self, _: int) -> "Events":
        return self


class Hours:
    """Of a link that has replicated all hours before ``until``."""

    def __init__(self) -> None:
        self.until, self.away, self.reports_late = NOW, False, 0
        self.pending: int | None = None
        """Start of the first hour whose offsets on the destination are not known yet."""

        self.pending_calls = 1_000

    def complete(self, _: Any, next_ms: Mapping[str, int], now_ms: int) -> dict[str, list[int]]:
        if self.away:
            raise ClusterUnavailable("a", "away")
        if self.reports_late:
            self.reports_late -= 1
            return {}
        found = list(range(next_ms[ORDERS], min(self.until, now_ms), HOUR_MS))
        return {ORDERS: found} if found else {}

    def events(self, _: Any, __: str, starts: list[int], ___: Any) -> Iterator[dict[str, Any]]:
        for start in starts:
            if start == self.pending and self.pending_calls:
                self.pending_calls -= 1
                raise OffsetsPending("b", "not yet")
            yield event_of(start, TopicEnds("id", {0: 5}), {0: 5}, None)


class Link:
    """Its DAG, and what Airflow keeps of it."""

    def __init__(self, hours: Hours) -> None:
        self.asset, self.store, self.events, self.hours = hourly(LINK, ORDERS), Store(), Events(), hours

    def run(self, *, killed: bool = False) -> list[str]:
        """The keys of the events that the task adds. ``killed``: before Airflow has written them."""
        task = SimpleNamespace(outlets=[self.asset])
        outlet = SimpleNamespace(extra={}, partition_keys=set())
        context = {"task": task, "inlet_events": {self.asset: self.events}, "outlet_events": {self.asset: outlet}}
        emit_hours(LINK, self.store, context)  # type: ignore[arg-type]
        assert bool(task.outlets) == bool(outlet.partition_keys), "an outlet without a key starts unpartitioned runs"
        assert list(outlet.extra.get(HOURS, {})) == list(outlet.partition_keys)
        if not killed:
            self.events[:0] = [SimpleNamespace(extra=outlet.extra) for _ in outlet.partition_keys]
        return [key[11:16] for key in outlet.partition_keys]

    def context(self, key: str) -> dict[str, Any]:
        """That of a task in a run with this partition key, which all events have started."""
        run = SimpleNamespace(partition_key=key, run_id="r")
        return {"dag_run": run, "triggering_asset_events": {self.asset: self.events}}


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Hours:
    found, since = Hours(), key_of(NOW - 3 * HOUR_MS) + "Z"
    assets = Assets.model_validate({"hourly": [ORDERS], "lateness_seconds": 0, "since": since}, strict=False)
    plan = SimpleNamespace(topics=[SimpleNamespace(source=ORDERS)])
    state = SimpleNamespace(catch_up=lambda: None, plans={"default": plan})
    link = SimpleNamespace(settings=SimpleNamespace(assets=assets), state=lambda *_: nullcontext(state))
    monkeypatch.setattr(module, "_SETTLE_SECONDS", 0.04)
    monkeypatch.setattr(module, "unix_ms", lambda: NOW + 1000)  # no hour ends while the tests run
    monkeypatch.setattr(settings, "link_of", lambda *_, **__: link)
    monkeypatch.setattr("strait.control.hours.LinkHours", lambda _: found)
    return found


@pytest.fixture
def link(hours: Hours) -> Link:
    return Link(hours)


def before(count: int) -> list[str]:
    """The keys of the newest hours that are over, oldest first."""
    return [key_of(NOW - number * HOUR_MS)[11:16] for number in range(count, 0, -1)]


def test_each_hour_is_given_once_in_order(link, hours):
    hours.until = NOW - HOUR_MS
    assert link.run() == before(3)[:2]
    assert link.run() == []
    hours.until = NOW
    assert link.run() == before(1)
    assert link.run() == []


def test_events_are_read_only_while_an_hour_is_due_or_was_just_given(link):
    assert link.run() == before(3)
    link.run()
    read = link.events.read
    for _ in range(9):
        assert link.run() == []
    assert link.events.read == read


def test_what_a_killed_task_was_about_to_give_is_given_again(link):
    assert link.run(killed=True) == before(3)
    assert link.run(killed=True) == before(3)
    assert link.run() == before(3)


def test_events_that_airflow_has_cleaned_up_are_not_given_again(link):
    assert link.run() == before(3)
    assert link.run() == []  # the state has what the events told
    link.events.clear()
    assert link.run() == []


def test_an_event_that_a_user_has_made_changes_nothing(link):
    assert link.run() == before(3)
    link.events.insert(0, SimpleNamespace(extra={"hours": {"x": 1}}))
    link.events.insert(0, SimpleNamespace(extra={}))
    assert link.run() == []


def test_a_cluster_that_is_away_gives_nothing_and_the_watch_wakes_the_dag_again(link, hours):
    link.store[ACTED] = Acted(seen={"hours": "orders/1", "settings": "x"}).data()
    hours.away = True
    assert link.run() == []
    assert dict(Acted.of(link.store[ACTED]).seen) == {"settings": "x"}
    hours.away = False
    assert link.run() == before(3)


def test_slots_that_have_not_reported_yet_are_waited_for_and_the_watch_wakes_the_dag_for_what_is_not_complete(
    link, hours
):
    link.store[ACTED] = Acted(seen={"hours": "orders/1"}).data()
    hours.reports_late = 1
    assert link.run() == before(3)
    assert dict(Acted.of(link.store[ACTED]).seen) == {"hours": "orders/1"}
    link.store.clear()
    link.events.clear()
    link.store[ACTED] = Acted(seen={"hours": "orders/1"}).data()
    hours.reports_late = 1_000
    assert link.run() == []
    assert dict(Acted.of(link.store[ACTED]).seen) == {}


def test_an_hour_whose_offsets_are_not_known_yet_is_asked_for_again_and_those_before_it_are_given(link, hours):
    hours.pending, hours.pending_calls = NOW - HOUR_MS, 1
    assert link.run() == before(3), "a report is waited for, for some seconds"
    link.store.clear()
    link.events.clear()
    link.store[ACTED] = Acted(seen={"hours": "orders/1"}).data()
    hours.pending_calls = 1_000
    assert link.run() == before(3)[:2]
    assert dict(Acted.of(link.store[ACTED]).seen) == {}, "the watch wakes the DAG again"
    assert next_hours(link.store[GIVEN])[ORDERS].expected == hours.pending
    assert link.run() == []
    hours.pending = None
    assert link.run() == before(1)


def test_the_watch_knows_the_next_hour_as_soon_as_a_run_has_given_one(link):
    link.run()
    assert next_hours(link.store[GIVEN])[ORDERS].expected == NOW
    assert next_hours({"a": [1], "b": "x", "c": [1, 2]}).keys() == {"c"}
    assert next_hours(None) == {}


def test_a_task_finds_the_hour_of_its_run_however_the_key_was_mapped(link):
    link.run()
    asset = hourly(LINK, ORDERS)
    assert (asset.uri, topic_of(asset)) == ("strait://shop%2Feu/orders", ORDERS)
    whole = key_of(NOW - HOUR_MS)
    for key in (whole, whole[:13], f"{whole}+00:00"):
        assert hour_of(link.context(key), asset)["hour"] == whole
    for key in ("", whole[:10], whole[:4], f"{whole[:13]}:30", key_of(NOW)):
        with pytest.raises(ValueError, match="is no hour of asset strait://"):
            hour_of(link.context(key), asset)


def test_a_task_finds_all_hours_of_a_coarser_key_oldest_first(link):
    asset, first = hourly(LINK, ORDERS), NOW // (24 * HOUR_MS) * 24 * HOUR_MS
    keys = [key_of(first + number * HOUR_MS) for number in (3, 1, 24)]
    link.events[:] = [SimpleNamespace(extra={HOURS: {key: {"hour": key}}}) for key in keys]
    day = keys[0][:10]
    assert [one["hour"] for one in hours_of(link.context(day), asset)] == [keys[1], keys[0]]
    assert [one["hour"] for one in hours_of(link.context(keys[0][:13]), asset)] == [keys[0]]
    for key in ("", f"{day} (W11)"):
        with pytest.raises(ValueError, match="is no prefix of an hour of asset strait://"):
            hours_of(link.context(key), asset)
