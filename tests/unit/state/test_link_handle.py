"""A link's handle is passed everywhere, so that it may stand in any message."""

from strait.config.links import parse
from strait.state.link_handle import ConfiguredLink


def test_a_handle_and_its_file_show_no_password() -> None:
    source = {"bootstrap.servers": "a:9092", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    source |= {"sasl.username": "ann", "sasl.password": "a secret word"}
    link = {"source": "a", "destination": "b", "topics": {"include": ["orders"]}}
    file = parse(
        {"clusters": {"a": source, "b": {"bootstrap.servers": "b:9092"}}, "links": {"here": link}}, where="links file"
    )
    handle = ConfiguredLink.of(file, "here")
    assert handle.source.properties["sasl.password"] == "a secret word"
    assert "'here'" in repr(handle)
    assert "secret" not in f"{handle!r} {handle} {file!r} {file}"
