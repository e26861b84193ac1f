"""What a cluster's properties may say, and which files those of a Connection may refer to."""

from pathlib import Path

import pytest

from strait.config.client_properties import ALLOWED, file_problems, problems
from strait.config.links import parse
from strait.errors import ConfigError
from strait.kafka.clients import Watch, make_admin


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
