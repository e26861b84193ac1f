"""TLS contexts from librdkafka's properties, against a server on loopback that asks for a certificate."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from strait.errors import ConfigError
from strait.net.tls_context import broker_context, endpoint_context
from support.security.pki import Authority

OURS, THEIRS = Authority("ours"), Authority("theirs")
BROKER, CLIENT = OURS.issue("broker"), OURS.issue("client")


def shown_to_broker(folder: Path, properties: dict[str, str]) -> str | None:
    """Connect with these properties; return the common name that the broker saw, None for nobody."""
    BROKER.write(folder / "broker.pem", folder / "broker.key")
    (folder / "trusted-by-broker.pem").write_text(OURS.pem)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "trusted-by-broker.pem")
    server.load_cert_chain(folder / "broker.pem", folder / "broker.key")
    server.verify_mode = ssl.CERT_OPTIONAL
    context = broker_context("cluster a", properties)
    ours, theirs = socket.socketpair()
    seen: list[str | None] = []

    def serve() -> None:
        try:
            with server.wrap_socket(theirs, server_side=True) as secured:
                certificate = secured.getpeercert()
                seen.append(certificate["subject"][0][0][1] if certificate else None)
                secured.recv(1)
        except OSError:
            theirs.close()  # the client does not trust us, as some tests want

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with context.wrap_socket(ours, server_hostname="127.0.0.1") as secured:
            secured.sendall(b"x")
    finally:
        thread.join()
    return seen[0]


def test_one_way(tmp_path: Path) -> None:
    assert shown_to_broker(tmp_path, {"ssl.ca.pem": OURS.pem}) is None


def test_only_the_given_authorities_are_trusted(tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shown_to_broker(tmp_path, {"ssl.ca.pem": THEIRS.pem})
    assert {name[0][0] for name in _trusted({"ssl.ca.pem": THEIRS.pem})} == {("commonName", "theirs")}


def test_authorities_from_a_file_and_the_systems_where_none_is_given(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(OURS.pem + THEIRS.pem)
    assert len(_trusted({"ssl.ca.location": str(tmp_path / "ca.pem")})) == 2
    assert _trusted({"ssl.ca.location": "probe"}) == _trusted({})


def _trusted(properties: dict[str, str]) -> list[tuple]:
    return [each["subject"] for each in broker_context("cluster a", properties).get_ca_certs()]


@pytest.mark.parametrize("passphrase", ["", "a passphrase"])
def test_mutual_by_files_and_by_text(tmp_path: Path, passphrase: str) -> None:
    (tmp_path / "client.pem").write_text(CLIENT.pem)
    (tmp_path / "client.key").write_text(CLIENT.key_pem(passphrase))
    (tmp_path / "both.pem").write_text(CLIENT.pem + CLIENT.key_pem(passphrase))
    common = {"ssl.ca.pem": OURS.pem, "ssl.key.password": passphrase}
    by_file, key_file = {"ssl.certificate.location": str(tmp_path / "client.pem")}, str(tmp_path / "client.key")
    by_text, key_text = {"ssl.certificate.pem": CLIENT.pem}, CLIENT.key_pem(passphrase)
    for certificate in (by_file, by_text):
        for key in ({"ssl.key.location": key_file}, {"ssl.key.pem": key_text}):
            assert shown_to_broker(tmp_path, common | certificate | key) == "client"
    assert shown_to_broker(tmp_path, common | {"ssl.certificate.location": str(tmp_path / "both.pem")}) == "client"


def test_mutual_by_keystore(tmp_path: Path) -> None:
    (tmp_path / "client.p12").write_bytes(CLIENT.keystore("a password"))
    properties = {"ssl.ca.pem": OURS.pem, "ssl.keystore.location": str(tmp_path / "client.p12")}
    assert shown_to_broker(tmp_path, properties | {"ssl.keystore.password": "a password"}) == "client"
    with pytest.raises(ConfigError, match="cluster a: certificate or key not usable"):
        broker_context("cluster a", properties | {"ssl.keystore.password": "a-wrong-Secret"})


@pytest.mark.parametrize("passphrase", ["", "a-wrong-Secret"])
def test_a_wrong_passphrase_is_an_error_and_no_question_at_the_terminal(passphrase: str) -> None:
    properties = {"ssl.certificate.pem": CLIENT.pem, "ssl.key.pem": CLIENT.key_pem("the right one")}
    with pytest.raises(ConfigError) as caught:
        broker_context("cluster a", properties | {"ssl.key.password": passphrase})
    assert "a-wrong-Secret" not in str(caught.value)


def test_files_that_are_not_there_are_named() -> None:
    with pytest.raises(ConfigError, match="No such file"):
        broker_context("cluster a", {"ssl.ca.location": "/nothing/ca.pem"})
    with pytest.raises(ConfigError, match="cannot be used"):
        endpoint_context("cluster a", {"https.ca.pem": "no certificate"})


@pytest.mark.parametrize("setting", [{"ssl.endpoint.identification.algorithm": "none"}, {}])
def test_the_broker_must_have_the_name_that_it_was_called_by_unless_told_otherwise(setting: dict[str, str]) -> None:
    assert broker_context("cluster a", setting).check_hostname is not bool(setting)
    assert broker_context("cluster a", setting).verify_mode is ssl.CERT_REQUIRED


def test_nothing_is_checked_only_where_the_setting_says_so() -> None:
    context = broker_context("cluster a", {"enable.ssl.certificate.verification": "false"})
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)
