import socket
from collections.abc import Iterator

import pytest

from strait.demo import ports
from strait.embedded import ports as embedded_ports
from strait.embedded.ports import free_ports
from strait.errors import SetupError


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_usual_port_in_use_gives_way_to_the_next_free_one(taken, monkeypatch):
    monkeypatch.setattr(ports, "AIRFLOW", taken)
    chosen = ports.choose_ports(airflow=None, source=None, destination=None)
    assert chosen.airflow > taken


def test_a_port_that_was_asked_for_and_is_in_use_is_refused_with_its_number(taken):
    with pytest.raises(SetupError, match=f"--source-port.*{taken}.*in use"):
        ports.choose_ports(airflow=None, source=taken, destination=None)


def test_the_same_port_asked_for_twice_is_refused():
    (free,) = free_ports(1)
    with pytest.raises(SetupError, match="--destination-port"):
        ports.choose_ports(airflow=None, source=free, destination=free)


def test_no_default_takes_a_port_that_was_asked_for(monkeypatch):
    (free,) = free_ports(1)
    monkeypatch.setattr(ports, "AIRFLOW", free)
    chosen = ports.choose_ports(airflow=None, source=None, destination=free)
    assert chosen.destination == free
    assert chosen.airflow != free


def test_a_port_that_another_process_has_been_given_is_not_found_again(monkeypatch):
    mine, other = free_ports(2)
    embedded_ports._claims.pop().close()  # of the second one, of which nobody knows any more
    drawn = iter([mine, other])
    monkeypatch.setattr(embedded_ports.secrets, "randbelow", lambda _: next(drawn) - embedded_ports._LOWEST)
    assert free_ports(1) == [other]
