"""Two links into one cluster, on real brokers: each knows what the other one writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config import naming
from strait.config.links import LinksFile, parse
from strait.control import forecast
from strait.control.other_links import other_links
from strait.control.plane import Control
from strait.control.quarantine import Chosen, Quarantine
from strait.embedded.kafka import Cluster
from strait.errors import ApprovalMissing, ConfigError
from strait.kafka.admin import Admin
from strait.kafka.connection import silent
from strait.model import TopicPartition
from strait.planning.risks.risks import Risk
from strait.state.quarantine_log import Entry
from strait.state.topics import ensure_producers_topic
from support.fixtures.clusters import Clusters, pair
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.topics import alter, create, delete, exists, grow, look, produce
from support.links.copying import copying
from support.links.handles import handle_into

pytestmark = pytest.mark.broker

Make = Callable[..., Control]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Of their own: a forecast reads the plans of 100 links, and more than that have been made in those of the session."""
    with pair(tmp_path_factory) as found:
        yield found


@pytest.fixture
def topic(topic_name: str) -> str:
    return topic_name


@pytest.fixture
def make(clusters: Any, topic: str) -> Iterator[Make]:
    """Make the control plane of a link into b; it replicates the topic of a, unless it is told otherwise."""
    made: list[Control] = []

    def file(name: str, settings: dict[str, Any]) -> LinksFile:
        ends_of = {"a": dict(clusters.source.client_properties), "b": dict(clusters.destination.client_properties)}
        base = {"source": "a", "destination": "b", "topics": {"include": [topic]}}
        return parse({"clusters": ends_of, "links": {name: base | settings}}, where="test")

    def control(name: str, **settings: Any) -> Control:
        made.append(Control(file(f"{name}-{topic[-8:]}", settings), f"{name}-{topic[-8:]}", silent))
        return made[-1]

    yield control
    for one in made:
        one.close()


def within_b(topic: str, **settings: Any) -> dict[str, Any]:
    """A link from b into b, which replicates another topic to the same one."""
    rules = [{"match": ".*", **settings}]
    naming = {"policy": "rules", "rules": [{"match": f"{topic}-local", "replace": topic}]}
    return {"source": "b", "naming": naming, "topics": {"include": [f"{topic}-local"], "rules": rules}}


def risks(control: Control, *codes: str) -> list[Risk]:
    found = control.forecast(control.propose())
    assert found.unknown == ()
    return [risk for risk in found.risks if risk.code in codes]


@pytest.mark.core
def test_what_another_link_writes_is_told_before_it_halts_or_comes_twice(clusters: Any, make: Make, topic: str) -> None:
    create(clusters.source, topic, 1)
    create(clusters.destination, f"{topic}-local", 1)
    make("one").apply()
    (again,) = risks(make("two"), "shared_destination")
    assert again.topic == topic and "from the same source, so each record arrives twice" in again.detail
    (other,) = risks(make("three", **within_b(topic)), "shared_destination")
    assert (
        f"link one-{topic[-8:]} replicates {topic} to {topic}, too; a partition to which both write halts"
        in other.detail
    )
    grow(clusters.destination, topic, 3)
    (wider,) = risks(make("one"), "more_partitions")
    assert (wider.topic, f"{topic} has 3 partitions, the source 1" in wider.detail) == (topic, True)


def test_a_backfill_without_the_partitions_that_do_not_answer_is_not_shown_as_all(
    clusters: Any, make: Make, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(clusters.source, topic, 2)
    control, asked = make("one"), forecast.ranges_of

    def half(source: Admin, begins: Any) -> Any:
        ranges, unread = asked(source, begins)
        gone = TopicPartition(topic, 1)
        return {place: found for place, found in ranges.items() if place != gone}, unread | {gone: "it has no leader"}

    monkeypatch.setattr(forecast, "ranges_of", half)
    found = control.forecast(control.propose())
    assert found.unknown == (f"the backfill of 1 partition, such as {topic}-1: it has no leader",)


def test_a_copy_is_not_deleted_while_another_link_replicates_to_it(clusters: Any, make: Make, topic: str) -> None:
    create(clusters.source, topic, 1)
    create(clusters.source, f"{topic}-kept", 1)
    create(clusters.destination, f"{topic}-local", 1)
    topics = {"regex": [f"{topic}.*"]}
    deleting = make("one", delete_copies_after_seconds=0, topics=topics)
    deleting.apply()
    make("two", **within_b(topic)).apply()
    delete(clusters.source, topic)
    for _ in range(3):
        assert deleting.apply().done == ()
    (waiting,) = deleting.apply().plan.waiting
    assert f"destination topic not deleted: link two-{topic[-8:]} replicates to it, too" in waiting.detail
    assert exists(clusters.destination, topic)
    assert not deleting.apply().published, "it is said once"


def test_two_links_do_not_undo_each_others_configurations(clusters: Any, make: Make, topic: str) -> None:
    """A merge that is meant: both expect records of others, and both synchronize configurations."""
    create(clusters.source, topic, 1, retention_ms="1000000")
    create(clusters.destination, f"{topic}-local", 1, retention_ms="2000000")
    expect = {"topics": {"include": [topic], "rules": [{"match": ".*", "on_foreign": "expect"}]}}
    one, two = (
        make("one", configs={"sync": True}, **expect),
        make("two", configs={"sync": True}, **within_b(topic, on_foreign="expect")),
    )
    assert one.apply().created == (topic,)
    two.apply()
    for control in (one, two, one, two):
        assert control.apply().done == ()
    assert look(clusters.destination, topic).topic_configs["retention.ms"] == "1000000"
    alter(clusters.source, topic, retention_ms="3000000")
    assert one.apply().done == (), "a topic of two links is left as it is"


def test_nothing_is_replayed_into_a_copy_of_another_link_that_halts(clusters: Any, make: Make, topic: str) -> None:
    create(clusters.source, topic, 1)
    make("one").apply()
    properties = dict(clusters.destination.client_properties)
    mine = Quarantine(handle_into(properties, "b", f"two-{topic[-8:]}"))
    assert mine.unsettled(Chosen()) == []
    entry = Entry(0, "other", 0, 5, 1, "other", "batch_refused", "", 1, 10)
    with pytest.raises(ConfigError, match=f"{topic}: replayed records would halt the replication of {topic}"):
        mine.targets([entry], topic)
    create(clusters.destination, f"{topic}-repaired", 1)
    assert mine.targets([entry], f"{topic}-repaired") == {"other": f"{topic}-repaired"}
    other = naming.plan_topic(f"one-{topic[-8:]}")
    producer = Producer(properties)
    producer.produce(other, b"{", b"?")
    assert producer.flush(30) == 0
    with pytest.raises(
        ConfigError, match=f"whether link one-{topic[-8:]} replicates to {topic}-repaired, too, is unknown"
    ):
        mine.targets([entry], f"{topic}-repaired")
    producer.produce(other, None, b"?")
    assert producer.flush(30) == 0
    assert mine.targets([entry], f"{topic}-repaired") == {"other": f"{topic}-repaired"}


@contextmanager
def unreadable_registration(cluster: Cluster) -> Iterator[None]:
    """A registration by a version that does not exist yet."""
    properties = cluster.client_properties
    ensure_producers_topic(Admin(properties, "it"), "it", 1)
    producer = Producer(properties)
    producer.produce(naming.PRODUCERS_TOPIC, b'{"v":99}', b'{"producer_id":1}')
    assert producer.flush(30) == 0
    yield
    producer.produce(naming.PRODUCERS_TOPIC, None, b'{"producer_id":1}')
    assert producer.flush(30) == 0


def test_a_link_whose_registration_cannot_be_read_may_write_anywhere(
    clusters: Any, make: Make, topic: str, tmp_path: Path
) -> None:
    create(clusters.source, topic, 1)
    create(clusters.source, f"{topic}-kept", 1)
    create(clusters.destination, f"{topic}-repaired", 1)
    deleting = make("one", delete_copies_after_seconds=0, topics={"regex": [f"{topic}.*"]})
    deleting.apply()
    at = dict(clusters.destination.client_properties), "b"
    mine = Quarantine(handle_into(*at, f"two-{topic[-8:]}"))
    assert mine.unsettled(Chosen()) == []
    entry = Entry(0, "other", 0, 5, 1, "other", "batch_refused", "", 1, 10)
    delete(clusters.source, topic)
    with unreadable_registration(clusters.destination):
        for _ in range(3):
            assert deleting.apply().done == ()
        (waiting,) = deleting.apply().plan.waiting
        assert "destination topic not deleted: whether another link replicates to it, too, is unknown" in waiting.detail
        assert exists(clusters.destination, topic)
        with pytest.raises(ConfigError, match=f"whether another link replicates to {topic}-repaired, too, is unknown"):
            mine.targets([entry], f"{topic}-repaired")
        two = make("two", topics={"include": [f"{topic}-kept"]})
        unknown = two.forecast(two.propose()).unknown
        assert any(one.startswith("whether another link writes to the same topics: ") for one in unknown)
        assert any("whether a loop includes a link into b whose registration cannot be read" in one for one in unknown)
    eventually(lambda: deleting.apply() and not exists(clusters.destination, topic), what="the copy is deleted")


def test_no_topic_is_selected_while_a_registration_of_the_source_cannot_be_read(
    clusters: Any, make: Make, topic: str
) -> None:
    """It may be of a link in the opposite direction, whose copies a regular expression would take for new topics."""
    create(clusters.source, topic, 1)
    naming = {"policy": "rules", "rules": [{"match": topic, "replace": f"{topic}.copy"}]}
    link = make("one", topics={"regex": [f"{topic}.*"]}, naming=naming)
    with unreadable_registration(clusters.source):
        assert link.apply().created == ()
    assert link.apply().created == (f"{topic}.copy",)


def test_of_many_links_those_from_the_same_source_are_read_first_and_then_the_newest(
    clusters: Any, make: Make, topic: str
) -> None:
    create(clusters.source, topic, 1)
    create(clusters.destination, f"{topic}-local", 1)
    make("same-old").apply()
    make("same-new").apply()
    for name in ("first", "second"):
        make(name, **within_b(topic)).apply()
    at = dict(clusters.destination.client_properties), "b"
    source_id = Admin(clusters.source.client_properties, "a").observe(lambda _: False).cluster_id
    mine = f"mine-{topic[-8:]}"
    order = list(other_links(*at, mine, source_id=source_id).plans)
    of_here = [name.rsplit("-", 1)[0] for name in order if name.endswith(topic[-8:])]
    assert of_here == ["same-new", "same-old", "second", "first"]
    some = other_links(*at, mine, source_id=source_id, most=2)
    assert list(some.plans) == order[:2]
    assert some.unread == {f"link {name}": "only the plans of 2 links are read" for name in order[2:]}


def test_an_approval_of_one_link_is_none_of_what_the_other_one_has_done_meanwhile(
    clusters: Any, make: Make, topic: str, tmp_path: Path
) -> None:
    create(clusters.source, topic, 1)
    create(clusters.source, f"{topic}-old", 1)
    asking = make("one", approval="required", topics={"include": [f"{topic}-old"]})
    asking.apply(shown=asking.show(asking.propose()))
    asking = make("one", approval="required", topics={"regex": [f"{topic}.*"]})
    shown = asking.show(asking.propose())
    make("two").apply()
    with pytest.raises(ApprovalMissing, match=f"no longer: creates {topic}"):
        asking.apply(shown=shown)
    produce(clusters.source, f"{topic}-old", 5)
    with copying(asking, tmp_path):
        eventually(lambda: ends(clusters.destination, f"{topic}-old", 1) == [5], what="it goes on meanwhile")
    assert [effect.verb for effect in asking.apply().pending] == ["copies"]
    (told,) = risks(asking, "shared_destination")
    assert told.topic == topic
