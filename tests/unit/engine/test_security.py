"""What the engine takes and refuses of a cluster's properties."""

import pytest

from strait.errors import ConfigError
from strait.net.security import Security


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"ssl.ca.locaton": "x"}, "`ssl.ca.locaton` is not supported; did you mean 'ssl.ca.location'?"),
        ({"sasl.oauthbearer.config": "principal=me"}, "`sasl.oauthbearer.config` is not supported"),
        ({"https.ca.file": "x"}, "`https.ca.file` is not supported; did you mean 'https.ca.pem'?"),
        ({"ssl.crl.location": "x"}, "`ssl.crl.location` is not supported"),
        ({"security.protocol": "tls"}, "`security.protocol` 'TLS' is not one of"),
        ({"security.protocol": "sasl_ssl"}, "`sasl.mechanism` '' is not one of"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "GSSAPI"}, "`sasl.mechanism` 'GSSAPI' is not one of"),
        (
            {"security.protocol": "sasl_ssl", "sasl.mechanisms": "OAUTHBEARER"},
            "`sasl.oauthbearer.method` must be one of oidc",
        ),
    ],
)
def test_what_the_slots_would_ignore_is_refused(properties: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Security("a", properties)
    assert said in str(caught.value)
    assert str(caught.value).startswith("cluster a: ")


def test_settings_of_librdkafka_that_secure_nothing_are_none_of_the_engines_business() -> None:
    security = Security("a", {"socket.keepalive.enable": "true", "client.id": "x"})
    assert (security.uses_tls, security.uses_sasl) == (False, False)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "scram-sha-512"])
def test_a_scram_message_keeps_a_name_apart_from_what_follows(mechanism: str) -> None:
    properties = {"security.protocol": "sasl_ssl", "sasl.mechanism": mechanism, "sasl.username": "a=b,c"}
    first = Security("a", properties).sasl("broker").auth_bytes()
    assert first.startswith(b"n,,n=a=3Db=2Cc,r=")


@pytest.mark.parametrize(("iterations", "refused"), [(1, True), (4095, True), (4096, False), (8192, False)])
def test_a_broker_that_asks_for_few_iterations_gets_no_proof_of_the_password(iterations: int, refused: bool) -> None:
    properties = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "a"}
    exchange = Security("a", properties | {"sasl.password": "b"}).sasl("broker")
    nonce = exchange.auth_bytes().rpartition(b"r=")[2]
    message = b"r=%bmore,s=c2FsdA==,i=%d" % (nonce, iterations)
    if refused:
        with pytest.raises(ValueError, match=f"{iterations} iterations are asked for, fewer than 4096"):
            exchange.receive(message)
    else:
        exchange.receive(message)
        assert exchange.auth_bytes().startswith(b"c=biws,r=")
