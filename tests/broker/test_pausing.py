"""Pausing and resuming live: what is meant stops, nothing else does, and all of it goes on exactly where it was."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.cli.foreground import run_in_foreground
from strait.cli.options import Output
from strait.config.links import LinksFile, parse
from strait.control import pausing
from strait.control.link_status import link_status
from strait.control.plane import Control
from strait.errors import ConfigError, StateError
from strait.planning.plan.pauses import Scope
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from support.fixtures.background import beside
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


def links_file(link: EngineLink, **settings: Any) -> LinksFile:
    raw = {
        "clusters": {
            "source": dict(link.source.client_properties),
            "destination": dict(link.destination.client_properties),
        },
        "links": {
            link.name: {"source": "source", "destination": "destination", "topics": {"include": sorted(link.topics)}}
            | settings
        },
    }
    return parse(raw, where="links file")


@contextmanager
def writing(link: EngineLink) -> Iterator[None]:
    """Somebody writes to every partition all the time."""
    producer = Producer(link.source.client_properties | {"linger.ms": 5})

    def write(stopped: threading.Event) -> None:
        number = 0
        while not stopped.wait(0.005):
            for topic, partitions in link.topics.items():
                producer.produce(topic, f"value {number}".encode(), b"key", partition=number % partitions)
            producer.poll(0)
            number += 1

    try:
        with beside(write):
            yield
    finally:
        assert producer.flush(30) == 0


def until_followed(link: EngineLink, version: int) -> None:
    """Wait until the slot has taken up this plan, or a later one."""
    properties = link.destination.client_properties
    with StateReader(properties, "destination", link.name, follow=("reports",)) as state:
        state.catch_up()

        def followed() -> bool:
            state.poll(0.1)
            return any(report.plan_version >= version for parts in state.reports.values() for report in parts)

        eventually(followed, what=lambda: f"plan {version} is followed {link.log()}")


def change(link: EngineLink, file: LinksFile, what: str, *, paused: bool) -> None:
    scope = Scope.parse(what)
    if paused:
        done = pausing.pause(ConfiguredLink.of(file, link.name), scope, by="ann", reason="a test")
    else:
        done = pausing.resume(ConfiguredLink.of(file, link.name), scope)
    for plan in done.published:
        until_followed(link, plan.version)


@pytest.mark.core
def test_what_is_paused_stops_alone_and_goes_on_exactly(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={f"{topic_name}.a": 2, f"{topic_name}.b": 1})
    first, second = sorted(link.topics)
    link.make_topics()
    file = links_file(link)
    with Control(file, link.name) as control:
        control.apply()
    link.start_slot()
    with writing(link):
        eventually(lambda: all(ends(link.destination, first, 2)), what=lambda: f"it copies {link.log()}")
        change(link, file, f"{first}:1", paused=True)
        before = ends(link.destination, first, 2) + ends(link.destination, second, 1)
        eventually(
            lambda: (
                ends(link.destination, first, 2)[0] > before[0] and ends(link.destination, second, 1)[0] > before[2]
            ),
            what="the others go on",
        )
        assert ends(link.destination, first, 2)[1] == before[1]
        change(link, file, "", paused=True)
        change(link, file, f"{first}:1", paused=False)
        before = ends(link.destination, first, 2) + ends(link.destination, second, 1)
        found = link_status(ConfiguredLink.of(file, link.name))
        assert {(row.state, row.reason) for row in found.rows} == {("waiting", "paused")}
        assert "the link was paused by ann at " in found.rows[0].detail
        assert ends(link.destination, first, 2) + ends(link.destination, second, 1) == before
        with Control(file, link.name) as control:
            assert not control.apply().published, "what planning makes of a pause is what pausing made of it"
        change(link, file, "", paused=False)
        eventually(lambda: ends(link.destination, first, 2)[1] > before[1], what=lambda: f"it goes on {link.log()}")
    link.until_copied()
    link.assert_equal()
    with Control(file, link.name) as control:
        assert not control.apply().published


@pytest.mark.parametrize("seed", [31])
def test_pausing_and_resuming_at_random_neither_loses_nor_doubles_a_record(
    make_link: MakeLink, topic_name: str, seed: int
) -> None:
    dice = random.Random(seed)
    link = make_link(topics={topic_name: 3}, slots=2)
    link.make_topics()
    file = links_file(link, groups={"default": {"slots": 2}})
    with Control(file, link.name) as control:
        control.apply()
    link.start_slot(0)
    link.start_slot(1)
    paused: set[str] = set()
    with writing(link):
        for _ in range(12):
            what = dice.choice(["", topic_name, f"{topic_name}:0", f"{topic_name}:2"])
            scope = Scope.parse(what)
            if what in paused:
                pausing.resume(ConfiguredLink.of(file, link.name), scope)
            else:
                pausing.pause(ConfiguredLink.of(file, link.name), scope, by="dice", reason="")
            paused ^= {what}
        for what in paused:
            pausing.resume(ConfiguredLink.of(file, link.name), Scope.parse(what))
    link.until_copied()
    link.assert_equal()


def test_a_pause_survives_control_planes_that_publish_at_the_same_time(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={f"{topic_name}.{number}": 1 for number in range(4)})
    link.make_topics()
    files = [
        links_file(link, topics={"include": sorted(link.topics)[: 2 + number % 3]}, groups={"default": {"slots": 1}})
        for number in range(3)
    ]
    with Control(files[0], link.name) as control:
        control.apply()
    threads = [threading.Thread(target=lambda file=file: cycle(file, link.name), daemon=True) for file in files]
    for thread in threads:
        thread.start()
    pausing.pause(ConfiguredLink.of(files[0], link.name), Scope(sorted(link.topics)[0]), by="ann", reason="")
    pausing.pause(ConfiguredLink.of(files[0], link.name), Scope(), by="bob", reason="")
    pausing.resume(ConfiguredLink.of(files[0], link.name), Scope())
    for thread in threads:
        thread.join(120)
    cycle(files[2], link.name)
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("plan",)) as state:
        state.catch_up()
        plan = state.plans["default"]
    assert [(item.topic, item.by) for item in plan.pauses] == [(sorted(link.topics)[0], "ann")]
    assert {item.topic: item.reason for item in plan.waiting} == {sorted(link.topics)[0]: "paused"}
    assert [topic.slots for topic in plan.topics] == [(None,), (0,), (0,), (0,)]


def cycle(file: LinksFile, link: str) -> None:
    with Control(file, link) as control:
        control.apply()


def test_what_was_never_planned_or_never_paused_is_refused(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    file = links_file(link)
    with pytest.raises(StateError, match="it has no plan yet"):
        pausing.pause(ConfiguredLink.of(file, link.name), Scope(), by="ann", reason="")
    cycle(file, link.name)
    with pytest.raises(ConfigError, match="is not paused"):
        pausing.resume(ConfiguredLink.of(file, link.name), Scope(topic_name))
    with pytest.raises(ConfigError, match=f"has no such topic; did you mean '{topic_name}'"):
        pausing.pause(ConfiguredLink.of(file, link.name), Scope(f"{topic_name}x"), by="ann", reason="")
    last = pausing.pause(ConfiguredLink.of(file, link.name), Scope(f"{topic_name}-0"), by="ann", reason="")
    assert last.scope == Scope(topic_name, 0)


def test_a_link_is_stopped_and_started_while_its_source_is_down(
    make_link: MakeLink, topic_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And `strait run`, which a service manager starts again, does not start it."""
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    file = links_file(link)
    cycle(file, link.name)
    source = file.links[link.name].source
    away = file.model_copy(update={"clusters": {**file.clusters, source: {"bootstrap.servers": "127.0.0.1:1"}}})
    (stopped,) = pausing.set_stopped(ConfiguredLink.of(away, link.name), stopped=True, by="a test").published
    assert stopped.stopped
    assert [topic.slots for topic in stopped.topics] == [(0,)]
    assert pausing.why_stopped(ConfiguredLink.of(away, link.name)).startswith("the link was stopped by a test at ")
    assert pausing.set_stopped(ConfiguredLink.of(away, link.name), stopped=True, by="a test").published == []
    written = tmp_path / "links.yaml"
    written.write_text(away.model_dump_json(include={"clusters", "links"}, exclude_unset=True))
    run_in_foreground(written, link.name, 30.0, Output.TABLE, start=False)
    assert "the link was stopped by a test at " in capsys.readouterr().out
    (started,) = pausing.set_stopped(ConfiguredLink.of(away, link.name), stopped=False, by="a test").published
    assert pausing.why_stopped(ConfiguredLink.of(away, link.name)) == ""
    assert (started.stopped, started.topics) == (False, stopped.topics)
