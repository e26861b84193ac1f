"""What a cluster's properties may say, and which files those of a Connection may refer to."""

from pathlib import Path

import pytest

from strait.config.client_properties import ALLOWED, file_problems, missing, overridden, problems
from strait.config.links import parse
from strait.errors import ConfigError
from strait.kafka.clients import Watch, make_admin
from strait.kafka.rejected_values import rejected_values


@pytest.mark.parametrize(
    "name",
    [
        "plugin.library.paths", "ssl.engine.location", "ssl.engine.id", "ssl.providers", "sasl.kerberos.kinit.cmd",
        "enable.sasl.oauthbearer.unsecure.jwt", "debug", "statistics.interval.ms", "group.id", "no.such.property",
    ],
)  # fmt: skip
def test_what_is_not_named_is_refused_wherever_a_links_file_is_read(name: str) -> None:
    assert len(list(problems({"bootstrap.servers": "a:1", name: "x"}))) == 1
    ends = {"a": {"bootstrap.servers": "a:1", name: "x"}, "b": {"bootstrap.servers": "b:1"}}
    with pytest.raises(ConfigError, match=f"clusters.a: `{name}` is not a property that a cluster may have"):
        parse({"clusters": ends, "links": {"l": {"source": "a", "destination": "b"}}}, where="links file")


def test_a_near_name_is_told() -> None:
    assert list(problems({"sasl.pasword": "x"})) == [
        "`sasl.pasword` is not a property that a cluster may have; did you mean 'sasl.password'?"
    ]


def test_librdkafka_knows_each_that_is_allowed() -> None:
    """One that it does not know would be refused by it only when the link runs."""
    values = {name: _value(name) for name in ALLOWED if not name.startswith(("ssl.", "sasl.", "https."))}
    make_admin(values, Watch("a"))


def _value(name: str) -> str:
    words = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "plaintext",
        "client.id": "x",
        "client.rack": "x",
        "client.dns.lookup": "use_all_dns_ips",
        "broker.address.family": "any",
        "broker.version.fallback": "0.10.0",
        "metadata.recovery.strategy": "rebootstrap",
    }
    if name in words:
        return words[name]
    if name.endswith((".enable", ".disable", ".verification", ".close", "version.request")):
        return "true"
    return (
        "6" if name == "log_level" else "100000" if name.endswith("bytes") else "5000" if name.endswith("ms") else "5"
    )


def test_a_connection_refers_to_files_below_one_folder_only(tmp_path: Path) -> None:
    def of(folder: str, allowed: Path | None = tmp_path / "secrets") -> list[str]:
        return list(file_problems({"sasl.password": f"${{directory:{folder}:name}}"}, allowed))

    assert of(f"{tmp_path}/secrets") == of(f"{tmp_path}/secrets/kafka") == []
    for elsewhere in ("/etc", f"{tmp_path}/secrets/..", f"{tmp_path}/secrets/../other", f"{tmp_path}/secrets-too"):
        (problem,) = of(elsewhere)
        assert "`sasl.password` refers to a file in" in problem
    assert of(f"{tmp_path}/secrets", None) != []
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "link").symlink_to("/etc")
    assert of(f"{tmp_path}/secrets/link") != []
    assert list(file_problems({"sasl.password": "plain"}, None)) == []


def test_a_connection_signs_in_with_no_program_file_or_role_of_its_choice(tmp_path: Path) -> None:
    folder, msk = tmp_path / "secrets", "b-1.a.b.c2.kafka.eu-central-1.amazonaws.com:9098"

    def of(**properties: str) -> list[str]:
        return list(file_problems({key.replace("__", "."): value for key, value in properties.items()}, folder))

    token = "sasl__oauthbearer__token__"
    assert (
        of(**{token + "file": f"{folder}/token"})
        == of(**{token + "command": f"{folder}/bin/sign-in --for kafka"})
        == []
    )
    for path in ("/etc/shadow", f"{folder}/../x", "token", f"{folder}-too/x", ""):
        (problem,) = of(**{token + "file": path})
        assert "token.file` is not below the folder for secrets" in problem
        (problem,) = of(**{token + "command": f"{path} print"})
        assert "token.command` runs a program that is not below the folder for secrets" in problem
    signing = {"sasl__oauthbearer__method": "msk_iam", "bootstrap__servers": f"{msk},{msk}"}
    assert of(**signing) == []
    for unlike in (
        {"bootstrap__servers": f"{msk},mine.example:9098"},
        {"bootstrap__servers": "x.kafka.eu-central-1.amazonaws.com.example:9098"},
        {"ssl__endpoint__identification__algorithm": "none"},
        {"enable__ssl__certificate__verification": "false"},
        {"ssl__ca__pem": "mine"},
    ):
        (problem,) = of(**signing | unlike)
        assert "needs `bootstrap.servers` of Amazon MSK" in problem
    assert of(sasl__oauthbearer__aws__role__arn="arn:aws:iam::1:role/admin") != []


def test_no_secret_is_on_a_command_line() -> None:
    (problem,) = problems({"sasl.oauthbearer.token.command": "sign-in ${directory:/run/secrets:key}"})
    assert "must not refer to a secret" in problem


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "`sasl.mechanism`: 'GSSAPI' is not supported; supported: PLAIN, SCRAM"),
        ({"sasl.mechanisms": "aws_msk_iam"}, "set OAUTHBEARER with `sasl.oauthbearer.method: msk_iam`"),
        (
            {"security.protocol": "tls"},
            "`security.protocol`: 'tls' is not one of plaintext, ssl, sasl_plaintext, sasl_ssl",
        ),
        ({"bootstrap.servers": "x"}, "`bootstrap.servers`: 'x' is not host:port"),
        ({"bootstrap.servers": "a:1, b"}, "`bootstrap.servers`: 'b' is not host:port"),
        ({"bootstrap.servers": "a:70000"}, "`bootstrap.servers`: 'a:70000' is not host:port"),
        (
            {"bootstrap.servers": "${env:KAFKA}"},
            "`bootstrap.servers`: ${env:KAFKA} is not supported; ${directory:DIR:NAME}",
        ),
        ({"bootstrap.servers": ","}, "`bootstrap.servers`: ',' has no host:port"),
        ({"sasl.mechanism": "scram-sha-512"}, "`sasl.mechanism`: 'scram-sha-512' must be in upper case: SCRAM-SHA-512"),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            "`ssl.endpoint.identification.algorithm`: '' is not one of https",
        ),
        ({"ssl.endpoint.identification.algorithm": "htps"}, "'htps' is not one of https, none; did you mean 'https'?"),
        ({"enable.ssl.certificate.verification": "off"}, "'off' is not one of true, false"),
        ({"enable.ssl.certificate.verification": "0"}, "'0' is not one of true, false"),
        ({"metadata.max.age.ms": "0"}, "`metadata.max.age.ms` must be a number of milliseconds, 1 to 86400000"),
        ({"metadata.max.age.ms": "86400001"}, "`metadata.max.age.ms` must be"),
        ({"metadata.max.age.ms": "\u0663"}, "`metadata.max.age.ms` must be"),
        (
            {"sasl.mechanism": "PLAIN", "sasl.mechanisms": "SCRAM-SHA-512"},
            "`sasl.mechanism` and `sasl.mechanisms` are names of one property; set one of them",
        ),
        (
            {f"sasl.oauthbearer.{name}client.id": name for name in ("", "client.credentials.")},
            "`sasl.oauthbearer.client.id` and `sasl.oauthbearer.client.credentials.client.id` are names of one property",
        ),
        ({"sasl.password": "${file:/x:y}"}, "`sasl.password`: ${file:/x:y} is not supported"),
    ],
)
def test_a_value_that_cannot_work_is_refused(properties: dict[str, str], problem: str) -> None:
    (line,) = problems({"bootstrap.servers": "a:1"} | properties)
    assert problem in line


@pytest.mark.parametrize(
    "properties",
    [
        {"bootstrap.servers": "a:1,[::1]:9092, SASL_SSL://b.example:9093"},
        {"bootstrap.servers": "${directory:/etc:servers}", "security.protocol": "${directory:/etc:protocol}"},
        {"security.protocol": "Sasl_Ssl", "sasl.mechanism": "SCRAM-SHA-512", "sasl.password": "a${b}$:{c}"},
        {"ssl.endpoint.identification.algorithm": "None", "enable.ssl.certificate.verification": "False"},
        {"metadata.max.age.ms": "86400000", "bootstrap.servers": "a:1,"},
    ],
)
def test_what_works_is_not_refused(properties: dict[str, str]) -> None:
    assert list(problems(properties)) == []
    assert list(rejected_values("a", properties)) == []


def test_values_that_librdkafka_rejects_are_all_named_and_no_secret_is_shown() -> None:
    wrong = {
        "bootstrap.servers": "a:1",
        "security.protocol": "ssl",
        "ssl.ca.location": "/does/not/exist",
        "ssl.certificate.pem": "not read",
        "sasl.oauthbearer.method": "hunter2",
        "socket.timeout.ms": "abc",
        "socket.keepalive.enable": "perhaps",
        "broker.address.ttl": "-1",
        "retry.backoff.ms": "${directory:/does/not/exist:x}",
    }
    assert sorted(rejected_values("a", wrong)) == [
        '`broker.address.ttl`: librdkafka rejects the value: Configuration property "broker.address.ttl" value -1 is outside '
        "allowed range 0..86400000",
        "`sasl.oauthbearer.method`: librdkafka rejects the value",
        '`socket.keepalive.enable`: librdkafka rejects the value: Expected bool value for "socket.keepalive.enable": true or '
        "false",
        '`socket.timeout.ms`: librdkafka rejects the value: Invalid value for configuration property "socket.timeout.ms"',
    ]


@pytest.mark.parametrize("method", ["oidc", "msk_iam", "command", "file"])
def test_librdkafka_is_not_asked_about_tokens_that_it_does_not_get(method: str) -> None:
    own = {"sasl.oauthbearer.token.file": "/t", "sasl.oauthbearer.aws.region": "eu-central-1", "state.key": "k" * 32}
    assert list(rejected_values("a", own | {"sasl.oauthbearer.method": method})) == []


def test_a_property_of_a_connection_replaces_its_other_name() -> None:
    file = {"sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.oauthbearer.client.id": "x"}
    assert overridden(file, {"sasl.mechanism": "SCRAM-SHA-512"}) == {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.oauthbearer.client.id": "x",
    }
    assert overridden(file, {"sasl.username": "v"}) == file | {"sasl.username": "v"}


LOGIN = {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}


@pytest.mark.parametrize(
    ("properties", "lacks"),
    [
        (LOGIN, []),
        ({}, []),
        ({"security.protocol": "ssl", "ssl.ca.location": "/ca"}, []),
        ({"security.protocol": "${directory:/etc:protocol}", "sasl.password": "p"}, []),
        (LOGIN | {"sasl.password": ""}, ["`sasl.password` is missing"]),
        (
            {**LOGIN, "sasl.mechanism": ""},
            ["`sasl.mechanism` is missing: one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"],
        ),
        (
            LOGIN | {"security.protocol": "plaintext"},
            ["`sasl.mechanism` has no effect without `security.protocol`: sasl_ssl or sasl_plaintext"],
        ),
        ({"ssl.ca.location": "/ca"}, ["`ssl.ca.location` has no effect without `security.protocol`: ssl or sasl_ssl"]),
        (
            {"security.protocol": "ssl", "ssl.key.password": "p"},
            ["`ssl.key.password` has no effect without `ssl.key.location`"],
        ),
        (
            {"security.protocol": "ssl", "ssl.key.location": "/key", "ssl.keystore.password": "p"},
            [
                "`ssl.keystore.password` has no effect without `ssl.keystore.location`",
                "`ssl.key.location` has no effect without `ssl.certificate.location`",
            ],
        ),
        ({"security.protocol": "ssl", "ssl.keystore.location": "/p12", "ssl.keystore.password": "p"}, []),
        (
            {"security.protocol": "ssl"}
            | {"ssl.certificate.pem": "c", "ssl.key.location": "/key", "ssl.key.password": "p"},
            [],
        ),
        ({"security.protocol": "ssl", "ssl.certificate.location": "/both", "ssl.key.password": "p"}, []),
        (
            LOGIN | {"sasl.mechanism": "OAUTHBEARER"},
            [
                "`sasl.oauthbearer.method` must be one of oidc, msk_iam, command, file; unsecured tokens are not supported",
            ],
        ),
    ],
)
def test_what_a_login_lacks_is_named(properties: dict[str, str], lacks: list[str]) -> None:
    assert list(missing(properties)) == lacks
