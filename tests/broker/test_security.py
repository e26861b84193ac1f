"""One cluster definition in librdkafka's names serves both libraries, behind every door that brokers have."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from confluent_kafka import Producer

from strait.kafka.admin import Admin
from strait.net.channel import Channel
from strait.net.producer_id import allocate_producer_id
from strait.reasons import Reason
from strait.state.report_records import Report
from strait.tokens import sources
from support.fixtures.waiting import eventually
from support.security.secured import CLIENT, SECRET, SESSION_MS, Properties, Secured, link_between, produce, settled

pytestmark = pytest.mark.broker

Door = Callable[[Secured, Any], Properties]


def _mutual_by_files(secured: Secured, cluster: Any) -> Properties:
    identity = secured.authority.issue("ANONYMOUS")
    certificate, key = secured.folder / "client.pem", secured.folder / "client.key"
    certificate.write_text(identity.pem)
    key.write_text(identity.key_pem("a passphrase"))
    return secured.tls(cluster) | {
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
        "ssl.key.password": "a passphrase",
    }


def _mutual_by_keystore(secured: Secured, cluster: Any) -> Properties:
    keystore = secured.folder / "client.p12"
    keystore.write_bytes(secured.authority.issue("ANONYMOUS").keystore("a password"))
    return secured.tls(cluster) | {
        "ssl.keystore.location": str(keystore),
        "ssl.keystore.password": "a password",
    }


DOORS: dict[str, Door] = {
    "tls": lambda secured, cluster: secured.tls(cluster),
    "mutual-tls-pem": lambda secured, cluster: secured.tls(cluster, secured.authority.issue("ANONYMOUS")),
    "mutual-tls-files": _mutual_by_files,
    "mutual-tls-keystore": _mutual_by_keystore,
    "plain": lambda secured, cluster: secured.sasl(cluster, "PLAIN"),
    "scram-256": lambda secured, cluster: secured.sasl(cluster, "SCRAM-SHA-256"),
    "scram-512": lambda secured, cluster: secured.sasl(cluster, "SCRAM-SHA-512"),
    "oauthbearer": lambda secured, cluster: secured.sasl(cluster, "OAUTHBEARER"),
    "token-command": lambda secured, cluster: secured.own_tokens(cluster, "command"),
    "token-file": lambda secured, cluster: secured.own_tokens(cluster, "file"),
    "msk-iam": lambda secured, cluster: secured.own_tokens(cluster, "msk_iam"),
}


PAIRS = list(pairwise([*DOORS, next(iter(DOORS))]))
CORE = {("tls", "mutual-tls-pem"), ("scram-256", "scram-512")}


@pytest.fixture(autouse=True)
def identity_provider(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody who renews the token file in time, and a signer whose tokens these brokers understand in place of AWS's."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(0.25):
            partial = secured.token_file.with_suffix(".new")
            partial.write_text(secured.tokens.issue(CLIENT))
            partial.replace(secured.token_file)

    def sign(_: str) -> tuple[str, int]:
        return secured.tokens.issue(CLIENT), int((time.time() + secured.tokens.life_seconds) * 1000)

    monkeypatch.setattr(MSKAuthTokenProvider, "generate_auth_token", sign)
    monkeypatch.setattr(sources, "_cache", {})
    secured.token_file.write_text(secured.tokens.issue(CLIENT))
    renewing = threading.Thread(target=renew)
    renewing.start()
    yield
    over.set()
    renewing.join()


@pytest.mark.parametrize(
    "ends",
    [pytest.param(pair, marks=pytest.mark.core if pair in CORE else (), id=" to ".join(pair)) for pair in PAIRS],
)
def test_a_link_copies_through_any_two_doors(
    secured: Secured, tmp_path: Path, topic_name: str, ends: tuple[str, str]
) -> None:
    source = DOORS[ends[0]](secured, secured.source)
    destination = DOORS[ends[1]](secured, secured.destination)
    assert topic_name not in Admin(source, "source").observe(topic_name.__eq__, ()).topics
    assert allocate_producer_id(destination, "destination") >= 0
    link = link_between(secured, tmp_path, topic_name, source, destination)
    produce(link, topic_name, 300)
    link.publish()
    with link.slot_thread():
        link.until_copied()
        produce(link, topic_name, 30)
        link.until_copied()
    link.assert_equal()


@pytest.mark.parametrize("tokens_from", ["oidc", "command", "file", "msk_iam"])
def test_sessions_that_end_every_five_seconds_do_not_disturb_copying(
    secured: Secured, tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch, tokens_from: str
) -> None:
    """KIP-368, with tokens that expire under load. Each partition is looked up once, at its start: no connection is ever
    lost, nothing is ever in doubt."""
    renewed = []
    go_on_with = Channel.go_on_with
    monkeypatch.setattr(Channel, "go_on_with", lambda *how: (renewed.append(how), go_on_with(*how)))
    monkeypatch.setattr(secured.tokens, "life_seconds", 8.0)
    source = secured.sasl(secured.source, "SCRAM-SHA-512")
    destination = secured.sasl(secured.destination, "OAUTHBEARER")
    if tokens_from != "oidc":
        destination = secured.own_tokens(secured.destination, tokens_from)
    link = link_between(secured, tmp_path, topic_name, source, destination)
    link.publish()
    producer = Producer(link.source.client_properties | {"linger.ms": 5})
    with link.slot_thread(), link.slot_reports() as newest:
        until = time.monotonic() + 3.5 * SESSION_MS / 1000
        while time.monotonic() < until:
            produce(link, topic_name, 100, producer)
            time.sleep(0.02)  # a stream, not a flood: all of it is compared below
        link.until_copied()
        report = eventually(lambda: settled(newest(), link.written()), what="a report of the end")
    link.assert_equal()
    assert (report.recoveries, report.conflicts) == (2, 0), report
    assert len(renewed) >= 8, "too few for three ends of a session on at least two connections to each cluster"


def test_copying_goes_on_when_a_login_that_was_refused_is_accepted_again(
    secured: Secured, tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions cannot be renewed and end, one after the other; meanwhile the reports say why."""
    monkeypatch.setattr(secured.tokens, "life_seconds", 8.0)
    source = secured.sasl(secured.source, "OAUTHBEARER")
    link = link_between(secured, tmp_path, topic_name, source, secured.tls(secured.destination))
    link.publish()
    with link.slot_thread(), link.slot_reports() as newest:
        produce(link, topic_name, 100)
        link.until_copied()
        monkeypatch.setitem(secured.tokens.clients, CLIENT, "another secret")
        eventually(lambda: all_refused(newest()), what=lambda: f"the reason; last {newest()}")
        produce(link, topic_name, 100)
        secured.tokens.clients[CLIENT] = SECRET
        link.until_copied()
    link.assert_equal()


def all_refused(report: Report | None) -> bool:
    """Whether every partition waits, because the token endpoint refuses the client."""
    return report is not None and all(
        row.reason == Reason.SOURCE_UNREACHABLE and "401 invalid_client" in row.detail for row in report.partitions
    )
