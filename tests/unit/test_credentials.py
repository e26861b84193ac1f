"""References to files with secrets."""

from pathlib import Path

import pytest

from strait.config import credentials
from strait.errors import ConfigError


def test_references_are_replaced_by_what_their_files_hold_now(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("first\n")
    properties = {"sasl.username": "me", "sasl.password": f"${{directory:{tmp_path}:password}}"}
    assert credentials.resolve("a", properties) == {"sasl.username": "me", "sasl.password": "first"}
    (tmp_path / "password").write_text(" sec ond\r\n")
    assert credentials.resolve("a", properties)["sasl.password"] == " sec ond"


def test_a_reference_may_be_a_part_of_a_value_and_other_dollars_stay(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    value = f"<${{directory:{tmp_path}:one}}|${{directory:{tmp_path}:two}}|${{env:HOME}}|$x${{y}}>"
    assert credentials.resolve("a", {"k": value}) == {"k": "<1|2|${env:HOME}|$x${y}>"}


def test_every_file_that_cannot_be_read_is_named_and_none_of_their_contents(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"a-secret\xff")
    properties = {
        "sasl.password": f"${{directory:{tmp_path}:nothing}}",
        "ssl.key.password": f"${{directory:{tmp_path}:binary}}",
    }
    with pytest.raises(ConfigError) as caught:
        credentials.resolve("a", properties)
    first, second = caught.value.problems
    assert "`sasl.password`" in first
    assert "No such file" in first
    assert "`ssl.key.password`" in second
    assert "not UTF-8" in second
    assert "a-secret" not in str(caught.value)


def test_a_secret_of_expressions_is_never_empty(tmp_path: Path) -> None:
    """As a file is while an editor writes it: a hash without it could be guessed."""
    references = {name: f"${{directory:{tmp_path}:{name}}}" for name in ("first", "second")}
    (tmp_path / "first").write_text("a secret\n")
    (tmp_path / "second").write_text("\n")
    with pytest.raises(ConfigError) as refused:
        credentials.secrets_of("transform of topic t", references)
    assert str(refused.value) == f"transform of topic t: `second`: {references['second']} is empty"
    (tmp_path / "second").write_text("another")
    assert credentials.secrets_of("transform of topic t", references) == ("a secret", "another")


def test_the_stamp_changes_with_any_file_that_is_named(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("password", "ca.pem", "client.pem")]
    properties = {
        "sasl.password": f"${{directory:{tmp_path}:password}}",
        "ssl.ca.location": str(files[1]),
        "ssl.certificate.location": str(files[2]),
        "ssl.key.password": "in place",
    }
    seen = {credentials.stamp(properties)}
    for count, file in enumerate(files, start=1):
        file.write_text("something")
        seen.add(credentials.stamp(properties))
        assert len(seen) == count + 1
    assert credentials.stamp(properties) in seen
    assert credentials.stamp({"ssl.key.password": "in place"}) == ()
