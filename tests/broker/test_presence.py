"""A standby hears whether another application reports, whatever else is written into the same topic."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.config import naming
from strait.kafka.admin import Admin
from strait.state.presence import SILENT_SECONDS, Presence
from strait.state.topics import ensure_state_topics
from support.fixtures.background import beside
from support.fixtures.waiting import eventually
from support.kafka.topics import delete
from support.links.engine_link import EngineLink
from support.security.secured import PASSWORD, Secured, link_between

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
ME, FIRST = "local-1", "local-2"


@contextmanager
def reporting(link: EngineLink, slots: range, application: str, every_seconds: float) -> Iterator[None]:
    """Slots that report in turn, one each ``every_seconds``."""
    producer = Producer(link.destination.client_properties | {"linger.ms": 0})

    def report(stopped: threading.Event) -> None:
        turn = 0
        while not stopped.wait(every_seconds):
            key = f'{{"group":"default","slot":{slots[turn % len(slots)]},"part":0}}'
            value = f'{{"application":"{application}"}}'
            producer.produce(naming.reports_topic(link.name), value=value, key=key)
            producer.poll(0)
            turn += 1

    try:
        with beside(report):
            yield
    finally:
        producer.flush(5)


def seconds_until_gone(presence: Presence, within_seconds: float = 20.0) -> float:
    began = time.monotonic()

    def gone() -> bool:
        presence.listen(0.1)
        return presence.is_gone()

    eventually(gone, what=lambda: "it is heard that the other one is gone", within_seconds=within_seconds)
    return time.monotonic() - began


@pytest.mark.core
def test_one_silent_slot_among_many_that_report_all_the_time_is_taken_over(make_link: MakeLink) -> None:
    link = make_link()
    link.make_topics()
    with reporting(link, range(1, 400), FIRST, 0.001), Presence.of_slot(link.spec, 0, ME) as presence:
        assert seconds_until_gone(presence) < SILENT_SECONDS + 1.0


def test_only_the_same_slot_of_another_application_is_heard(make_link: MakeLink) -> None:
    link = make_link()
    link.make_topics()
    with Presence.of_slot(link.spec, 1, ME) as presence:
        with reporting(link, range(1, 2), FIRST, 0.5):
            until = time.monotonic() + 3 * SILENT_SECONDS
            while time.monotonic() < until:
                presence.listen(0.1)
                assert not presence.is_gone()
            assert presence.is_back()
        with reporting(link, range(10, 20), FIRST, 0.1), reporting(link, range(1, 2), ME, 0.1):
            assert seconds_until_gone(presence) < SILENT_SECONDS + 1.0
            assert not presence.is_back()


def test_it_is_heard_again_after_the_reports_topic_was_made_anew(make_link: MakeLink) -> None:
    link = make_link()
    link.make_topics()
    admin = Admin(link.destination.client_properties, "destination")
    with Presence.of_slot(link.spec, 0, ME) as presence:
        with reporting(link, range(1), FIRST, 0.1):
            until = time.monotonic() + 3.0
            while time.monotonic() < until:
                presence.listen(0.1)
        delete(link.destination, naming.reports_topic(link.name))
        eventually(lambda: ensure_state_topics(admin, link.name, 1), what="the topic is made anew")
        assert seconds_until_gone(presence, 60.0) > 0
        with reporting(link, range(1), FIRST, 0.5):
            eventually(lambda: presence.listen(0.1) or presence.is_back(), what="it is heard", within_seconds=60.0)


def test_it_is_heard_with_a_password_that_was_rotated(secured: Secured, tmp_path: Path, topic_name: str) -> None:
    (tmp_path / "password").write_text("of yesterday")
    properties = secured.sasl(secured.destination, "PLAIN") | {"sasl.password": f"${{directory:{tmp_path}:password}}"}
    link = link_between(secured, tmp_path, topic_name, properties, properties)
    with Presence.of_slot(link.spec, 0, ME) as presence:
        until = time.monotonic() + 2 * SILENT_SECONDS
        while time.monotonic() < until:
            presence.listen(0.1)
            assert not presence.is_gone()
        (tmp_path / "password").write_text(PASSWORD)
        assert seconds_until_gone(presence, 60.0) > 0
