"""What an exporter says of a link that it cannot look at any more."""

import time

from prometheus_client import generate_latest

from strait.errors import ConfigError
from strait.exporter.observation import Observation
from strait.exporter.rendering import registry_of
from strait.exporter.watch import LinkFollower
from support.fixtures.waiting import eventually


def test_a_look_that_fails_in_any_way_is_told_and_tried_again(monkeypatch):
    monkeypatch.setattr("strait.exporter.background._RETRY_SECONDS", 0.01)
    errors = iter([ValueError("of a kind nobody foresaw"), ConfigError("links file", ["is gone"]), KeyError("x")])
    tried = []

    def load():
        tried.append(time.monotonic())
        raise next(errors)

    watch = LinkFollower(load, "a-to-b", 1.0)
    watch.start()
    eventually(lambda: len(tried) >= 3, what="three looks")
    eventually(lambda: watch.newest is not None, what="an observation")
    watch.stop()
    text = generate_latest(registry_of(lambda: [watch.newest])).decode()
    assert 'strait_up{link="a-to-b"} 0.0' in text
    assert "strait_healthy{" not in text


def test_names_are_labels_whatever_they_hold():
    name = 'x"} 1\nstrait_up{link="\\y'
    text = generate_latest(registry_of(lambda: [Observation(name, "a", "b", time.monotonic())])).decode()
    assert [line for line in text.splitlines() if line.startswith("strait_up{")] == [
        'strait_up{link="x\\"} 1\\nstrait_up{link=\\"\\\\y"} 1.0'
    ]
