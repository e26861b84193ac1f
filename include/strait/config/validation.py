"""Parsing and validation of settings: all problems are reported together, each with its place. Pure except for reading
the file."""

import difflib
import json
import re
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from strait.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)

_CHARACTERS = {
    r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$": "up to 64 letters, digits, - and _",
    r"^[A-Za-z0-9._-]{1,249}$": "1 to 249 letters, digits, ., - and _",
    r"^[A-Za-z0-9._-]{0,248}$": "up to 248 letters, digits, ., - and _",
}
"""Pattern of `strait.config.settings` -> its text."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the nearest known word, or an empty text."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def read_yaml(path: Path, where: str, *, manifest: bool = False) -> Any:
    """Return the content of a YAML or JSON file. Raises ConfigError.

    ``manifest``: read numbers as Kubernetes does, for which `0444` is an octal number.
    """
    return parsed(text_of(path, where), where, manifest=manifest)


def text_of(path: Path, where: str, *, hint: str = "set the path of an existing, readable file") -> str:
    """Return the text of a file of settings. Raises ConfigError, with ``hint`` if the file cannot be opened."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(where, [f"cannot be read: {error.strerror}"], hint=hint) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(where, [f"is not UTF-8: line {line}: {error.reason}"], hint="save it as UTF-8") from None


def parsed(text: str, where: str, *, manifest: bool = False) -> Any:
    """Return the content of a YAML or JSON text, as `read_yaml` does. Raises ConfigError."""
    try:
        return _parsed(text, _ManifestLoader if manifest else _Loader)
    except yaml.YAMLError as error:
        raise ConfigError(where, [f"is neither YAML nor JSON: {_place_and_cause(error)}"]) from error
    except RecursionError:
        raise ConfigError(where, ["is neither YAML nor JSON: it is nested too deeply"]) from None


@lru_cache(maxsize=2)
def _parsed(text: str, kind: type["_ManifestLoader"]) -> Any:
    """Return the same objects for the same text; no caller changes them. Airflow reads it every 2 s for each link."""
    loader = kind(text)
    try:
        return loader.get_single_data()
    except _NOT_ITS_OWN as error:  # such as an escape sequence beyond Unicode
        raise yaml.MarkedYAMLError(problem=f"cannot be read: {error}", problem_mark=loader.get_mark()) from error
    finally:
        loader.dispose()


def validated(model: type[Model], raw: Any, where: str) -> Model:
    """Return the block that ``raw`` describes. Raises ConfigError with every problem."""
    if raw is None:
        raise ConfigError(where, ["is empty"], hint=f"keys: {', '.join(sorted(_keys(model)))}")
    if not isinstance(raw, dict):
        raise ConfigError(where, [f"must be an object with the keys {', '.join(sorted(_keys(model)))}"])
    try:
        # Through JSON: strict mode then accepts a file's lists for tuples, and converts nothing else.
        return model.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        raise ConfigError(where, [line for item in error.errors() for line in _explain(model, item)]) from None
    except TypeError as error:  # YAML has types that JSON lacks, such as sets
        raise ConfigError(where, [f"has a value that JSON cannot represent: {error}"], hint="quote the value") from None


def _explain(model: type[BaseModel], item: Any) -> list[str]:
    """Return a line for each problem in one of pydantic's error items, with its path and, if a key is misspelled, the
    nearest one."""
    path = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        *parents, key = item["loc"]
        near = did_you_mean(str(key), _keys_at(model, parents)) or _elsewhere(model, parents, str(key))
        return [f"{path}: unknown key{near}"]
    message = _message(item)
    return [f"{path}: {line}" if path else line for line in message.splitlines()]


_WANTED = {
    "missing": "is required",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a block of keys and values",
    "model_type": "must be a block of keys and values",
    "model_attributes_type": "must be a block of keys and values",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "literal_error": "must be {expected}",
}
"""Type of a pydantic error -> the same in the words of a file's author. Others are shown as pydantic has them."""


def _message(item: Any) -> str:
    given = item["input"]
    if item["type"] == "string_pattern_mismatch":
        also = "; if it is an expression, list it in `regex`" if "include" in item["loc"] else ""
        return f"{given!r} has other characters than {_CHARACTERS.get(item['ctx']['pattern'], item['ctx']['pattern'])}{also}"
    text = _WANTED.get(item["type"])
    message = item["msg"].removeprefix("Value error, ") if text is None else text.format(**item.get("ctx", {}))
    if item["type"] == "literal_error" and isinstance(given, str):
        message += did_you_mean(given, re.findall(r"'([^']*)'", item["ctx"]["expected"]))
    return message


def _elsewhere(model: type[BaseModel], path: list[Any], key: str) -> str:
    """Return ``; it belongs into `x.y` `` if a block below the one at ``path`` accepts the key, or an empty text."""
    block: Any = model
    for part in path:
        block = _step(block, part)
    found = next(_blocks_with(block, key), None) if _is_block(block) else None
    return f"; it belongs into `{found}`" if found else ""


def _blocks_with(block: type[BaseModel], key: str) -> Iterator[str]:
    """Yield the places of blocks below this one that accept the key, the nearest first."""
    level = [("", block)]
    while level:
        below = []
        for place, at in level:
            for name, named in _named(at):
                inner: Any = at.model_fields[name].annotation
                while inner is not None and not _is_block(inner):
                    inner = _innermost(inner)
                if inner is not None:
                    below.append((f"{place}{named}.", inner))
        yield from (place.rstrip(".") for place, at in below if key in _keys(at))
        level = below


def _place_and_cause(error: yaml.YAMLError) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or problem is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _keys_at(model: type[BaseModel], path: list[Any]) -> list[str]:
    """Return the keys that the block at ``path`` accepts. A field, a mapping's key or a list index is one step."""
    current: Any = model
    for part in path:
        current = _step(current, part)
    return _keys(current) if _is_block(current) else []


def _step(current: Any, part: Any) -> Any:
    """Return the type of one part of a block, a mapping or a list."""
    if _is_block(current):
        field = next((name for name, key in _named(current) if key == part), None)
        current = current.model_fields[field].annotation if field else None
    else:
        current = _innermost(current)
    return _innermost(current) if not _is_block(current) and type(None) in get_args(current) else current


def _innermost(kind: Any) -> Any:
    """Return the type of the values in a mapping, a list or an optional type."""
    inner = [each for each in get_args(kind) if each not in (Ellipsis, type(None))]
    return inner[-1] if inner else None


def _is_block(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _keys(model: type[BaseModel]) -> list[str]:
    return [key for _, key in _named(model)]


def _named(model: type[BaseModel]) -> list[tuple[str, str]]:
    """Return each field's name with its key in the file."""
    return [(name, field.alias or name) for name, field in model.model_fields.items()]


_NOT_ITS_OWN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of functions that pyyaml calls with a malformed text and does not translate: of `int` for `0x_`, for instance."""

_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0b[01_]+|0x[0-9a-fA-F_]+)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?"
        r"|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)"
        r"|\.(?:nan|NaN|NAN))$"
    ),
}
"""YAML 1.1's numbers, without those that mean another number than they show: `0100` would be 64, `1:30` would be 90."""


class _ManifestLoader(yaml.SafeLoader):
    """Reject duplicate keys, of which YAML silently keeps the second, and load times as strings, as JSON has them."""

    yaml_implicit_resolvers = {  # noqa: RUF012  yaml's own mechanism
        first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except _NOT_ITS_OWN as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"the value cannot be read as {kind}; quote it if it is a text"  # without it: it may be a secret
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


class _Loader(_ManifestLoader):
    """Also read a number only if it means the number that it shows."""

    yaml_implicit_resolvers = {  # noqa: RUF012  yaml's own mechanism
        first: [(tag, _NUMBERS.get(tag, regexp)) for tag, regexp in resolvers]
        for first, resolvers in _ManifestLoader.yaml_implicit_resolvers.items()
    }


def _mapping(loader: _ManifestLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, value_node in node.value:
        if key_node.tag == _MERGE:
            key = key_node.value
            loader.construct_object(value_node, deep=True)  # merging it below would drop its duplicate keys
        else:
            key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            problem = "a key must be a text; if this is a template such as {{ x }}, render it first"
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_ManifestLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
