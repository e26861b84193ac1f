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
        ({"security.protocol": "sasl_ssl", "sasl.mechanisms": "OAUTHBEARER"}, "`sasl.oauthbearer.method` must be oidc"),
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
