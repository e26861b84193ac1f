"""Offsets on the destination of a moment that slots have reported as replicated: while a log end or a report is missing,
nothing is returned that would be taken for exact later."""

from types import SimpleNamespace
from typing import Any

import pytest

from strait.consumer_groups.offsets import Offsets
from strait.consumer_groups.translating import Known
from strait.control import hours as module
from strait.control.hours import LinkHours
from strait.control.reaching import Reaching
from strait.errors import ClusterUnavailable, OffsetsPending
from strait.model import TopicPartition
from strait.planning.status.complete_hours import HOUR_MS, Told, TopicEnds
from strait.planning.status.up_to import UpTo
from strait.state.schema import PlannedTopic
from strait.state.translation import Translator
from support.model.reports import plain_run

NINE = 1_764_234_000_000  # 2025-11-27 09:00 UTC
PLACE = TopicPartition("orders", 0)
TOPIC = PlannedTopic(source="orders", destination="dr.orders", source_id="s", destination_id="d", slots=(0,))
ELECTION = "cluster b: the end offset of dr.orders-0: leader not available"


def known(
    *,
    checkpoint: int = 100,
    position: int = 100,
    log_end: int = 100,
    doubt: str = "",
    first: int = 0,
    over: bool = False,
) -> Known:
    """A partition whose source offsets are those of the destination, less a thousand. ``first``: the rebuilt map does not
    have the offsets before it."""
    end = {"sequence_base": first, "source_base": first, "destination_base": 1000 + first, "after_unknown": first > 0}
    translator = Translator(
        [plain_run(sequence_end=checkpoint, **end)],
        written=checkpoint,
        position=1 << 62 if over else position,
        log_end=1000 + log_end,
    )
    return Known("l", 1, TOPIC, TopicPartition("dr.orders", 0), 0, None, translator, False, doubt)


NONE_REPLICATED = known()._replace(translator=None)


class Clusters:
    """What a link's map and clusters tell at the moment."""

    def __init__(self) -> None:
        self.now = known()


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    found = Clusters()
    monkeypatch.setattr(Offsets, "known", lambda _, places, **__: dict.fromkeys(places, found.now))
    return found


LINK: Any = SimpleNamespace(
    name="l",
    destination=SimpleNamespace(name="b"),
    settings=SimpleNamespace(assets=SimpleNamespace(lateness_seconds=0)),
    admin=lambda _: None,
    state=lambda *_: STATE,
)
STATE: Any = SimpleNamespace(plans={"default": SimpleNamespace(topics=[TOPIC])}, close=lambda: None)


def ends(*offsets: int, source_id: str = "s") -> TopicEnds:
    return TopicEnds(source_id, dict(enumerate(offsets)))


def events(before: Told | None, *hours: TopicEnds) -> list[dict[str, Any]]:
    of_link = LinkHours(LINK)
    of_link._ends = {("orders", NINE + number * HOUR_MS): one for number, one in enumerate(hours)}
    return list(of_link.events(STATE, "orders", [start for _, start in of_link._ends], before))


def destination(before: Told | None, *hours: TopicEnds) -> list[Any]:
    return [one["destination"]["0"] for one in events(before, *hours)]


BEFORE = Told(NINE - HOUR_MS, ends(50), {0: 1050})


def test_an_hour_has_the_offset_of_its_first_record_and_of_the_first_after_it(clusters):
    assert destination(BEFORE, ends(90), ends(100)) == [[1050, 1090], [1090, 1100]]


PENDING = {
    "a partition has no leader": known(doubt=ELECTION),
    "no slot has reported since the plan": known(checkpoint=80, position=-1, log_end=95),
}


@pytest.mark.parametrize("now", PENDING.values(), ids=PENDING.keys())
def test_an_offset_that_is_about_to_be_known_is_asked_for_again(clusters, now, monkeypatch):
    clusters.now = now
    with pytest.raises(OffsetsPending, match=r"cluster b: translating offset 90 of orders-0 of the source: ") as raised:
        events(BEFORE, ends(90))
    assert isinstance(raised.value, ClusterUnavailable) and raised.value.retriable
    monkeypatch.setattr(module, "ends_before", lambda *_: {PLACE: 90})
    with pytest.raises(OffsetsPending):
        events(None, ends(90))
    with pytest.raises(OffsetsPending):
        Reaching(LINK, ["orders"], UpTo(ends={PLACE: 90})).result()
    clusters.now = known()
    assert destination(BEFORE, ends(90)) == [[1050, 1090]]
    assert Reaching(LINK, ["orders"], UpTo(ends={PLACE: 90})).result().destination_ends == {
        TopicPartition("dr.orders", 0): 1090
    }


FINAL = {
    "the rebuilt map lacks it": (known(first=95), None),
    "acknowledged records are lost": (known(log_end=70), 1070),
    "the log has no record that the map lacks": (known(checkpoint=80, position=-1, log_end=80), 1080),
    "its copy has ended": (known(checkpoint=80, log_end=95, over=True), 1080),
    "no record is replicated": (NONE_REPLICATED, None),
}


@pytest.mark.parametrize(("now", "end"), FINAL.values(), ids=FINAL.keys())
def test_what_does_not_change_any_more_is_not_waited_for(clusters, now, end):
    clusters.now = now
    assert destination(BEFORE, ends(90)) == [[1050, end]]
    reached = Reaching(LINK, ["orders"], UpTo(ends={PLACE: 90})).result()
    assert reached.destination_ends == {TopicPartition("dr.orders", 0): end}


def test_hours_without_a_replicated_record_end_where_they_start_so_that_the_first_one_is_in_its_hour(clusters):
    clusters.now = NONE_REPLICATED
    told = Told(NINE - HOUR_MS, ends(0), {0: 0})
    assert destination(told, ends(0), ends(20)) == [[0, 0], [0, 0]], "the records before offset 20 were filtered out"
    clusters.now = known()
    assert destination(Told(NINE, ends(20), {0: 0}), ends(90)) == [[0, 1090]]


def test_the_hour_after_one_whose_end_stays_unknown_starts_with_its_own_first_record(clusters):
    told = Told(NINE - HOUR_MS, ends(50), {0: None})
    assert destination(told, ends(90), ends(100)) == [[1050, 1090], [1090, 1100]]
    again = destination(told, ends(9, source_id="other"))
    assert again == [[None, 1009]], "of a topic that was created again, no earlier offset counts"
