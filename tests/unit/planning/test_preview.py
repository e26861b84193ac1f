"""What `strait plan --preview` shows of a transformation."""

import json

from strait.planning.review.preview import Content, Preview, Previewed

SECRET = b'{"email": "person@example.com"}'


def copied(offset: int, partition: int = 0) -> Previewed:
    headers = (("h", b"h-secret"),)
    after = Content(b"masked", b"{}")
    return Previewed(partition, offset, 1_000 + offset, "copied", Content(b"k-secret", SECRET, headers), after)


def left_out(offset: int) -> Previewed:
    return Previewed(0, offset, 1_000 + offset, "left_out", Content(b"left out", None))


def malformed(offset: int) -> Previewed:
    return Previewed(0, offset, 1_000 + offset, "malformed", Content(None, b"\xff{"))


def preview(*records: Previewed) -> Preview:
    return Preview("people", "4f3a (key sha2(key, 256))", "quarantine", records, secrets=["salt"])


def offsets(found: Preview) -> list[int]:
    return [one.offset for one in found.chosen]


def test_ten_records_are_shown_the_newest_and_some_of_each_kind() -> None:
    records = [copied(n) for n in range(100)] + [malformed(100), malformed(1)] + [left_out(n) for n in range(110, 150)]
    assert offsets(preview(*records)) == [94, 95, 96, 97, 98, 99, 100, 147, 148, 149]
    assert offsets(preview(*(left_out(n) for n in range(20)))) == list(range(10, 20))
    assert offsets(preview(copied(1), left_out(2))) == [1, 2]


def test_each_record_is_shown_before_and_after() -> None:
    lines = list(preview(copied(7), left_out(8), malformed(9)).lines(hidden=False))
    text = "\n".join(lines)
    assert "3 recent records, evaluated twice with the same results: 1 copied, 1 left out, 1 malformed" in text
    assert lines[lines.index("  key     k-secret") + 1] == "       -> masked"
    assert lines[lines.index("  headers h") + 1] == "       -> none"
    assert "people-0 offset 8, 1970-01-01 00:00:01 UTC: left out by `where`" in text
    assert "malformed, so `malformed: quarantine`" in text and "0xff7b" in text
    assert "Placeholders stand for secret.salt" in text


def test_hidden_values_are_in_neither_form() -> None:
    found = preview(copied(7), left_out(8), malformed(9))
    for told in ("\n".join(found.lines(hidden=True)), json.dumps(found.as_data(hidden=True))):
        assert not [part for part in ('secret"', "k-secret", "h-secret", "example", "masked", "7b") if part in told]
    assert "31 bytes" in "\n".join(found.lines(hidden=True))
    assert found.as_data(hidden=True)["records"][0]["before"]["value"] == {"bytes": 31}
    assert found.as_data(hidden=False)["records"][0]["after"]["key"] == {
        "bytes": 6,
        "text": "masked",
        "encoding": "utf-8",
    }


def test_each_record_shows_its_route_and_each_route_a_record() -> None:
    records = [copied(n)._replace(to="rest") for n in range(50)] + [copied(60)._replace(to="big")]
    records += [copied(n)._replace(to="rest") for n in range(70, 150)] + [left_out(200)]
    found = Preview("people", "x", "stop", records, routes=["big", "rest", "none"])
    assert found.taken == {"big": 1, "rest": 130, "none": 0}
    assert 60 in offsets(found) and 149 in offsets(found) and len(offsets(found)) == 10
    text = "\n".join(found.lines(hidden=False))
    assert "to big: 1\nto rest: 130\nto none: 0\n" in text
    assert "people-0 offset 60, 1970-01-01 00:00:01 UTC: copied to big" in text
    assert "left out by `where` or by all routes" in text
    data = found.as_data(hidden=True)
    assert data["routes"] == found.taken and {one["to"] for one in data["records"]} == {"big", "rest", ""}


def test_a_refusal_is_shown_instead_of_records() -> None:
    lines = list(
        Preview("people", "x", "stop", refusal="where: Rand is not among ...", waiting=["a: b"]).lines(hidden=False)
    )
    assert lines[1:] == ["waits     a: b", "refused   where: Rand is not among ..."]
