"""Reads another tool's file: Java properties, or the JSON that is sent to Kafka Connect. Pure."""

import json
import re
from collections.abc import Iterator

from strait.errors import ConfigError
from strait.json_text import value_of

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_PAIR = re.compile(r"((?:\\.|[^\\=:\s])+)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def properties_of(text: str, where: str) -> dict[str, str]:
    """Return all properties by name. Raises ConfigError if a text that starts with `{` is not such JSON."""
    return _from_json(text, where) if text.lstrip().startswith("{") else dict(_from_properties(text))


def _from_json(text: str, where: str) -> dict[str, str]:
    try:
        raw = value_of(text)
    except ValueError as error:
        raise ConfigError(where, [f"is not JSON: {error}"]) from None
    named = {"name": raw["name"]} if isinstance(raw.get("name"), str) else {}
    config = raw.get("config", raw)
    if not isinstance(config, dict):
        raise ConfigError(where, ["`config` is not an object"])
    wrong = [f"`{key}` is not a text, number or boolean" for key, value in config.items() if not _is_scalar(value)]
    if wrong:
        raise ConfigError(where, wrong)
    return named | {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _from_properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield the properties as Java reads them: comments, lines continued by a backslash, three ways to separate name
    and value, escapes."""
    lines = iter(re.split(r"\r\n|\r|\n", text))
    for line in lines:
        logical = line.lstrip(" \t\f")
        if not logical or logical[0] in "#!":
            continue
        while _is_continued(logical):
            logical = logical[:-1] + next(lines, "").lstrip(" \t\f")
        pair = _PAIR.match(logical)
        if pair is not None:
            yield _unescaped(pair[1]), _unescaped(pair[2]).strip()


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: chr(int(found[1][1:], 16)) if len(found[1]) == 5 else _ESCAPES.get(found[1], found[1]), text
    )
