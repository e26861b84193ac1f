"""Names of destination topics: RegexRouter, Kafka Connect's routing by regular expression, as naming rules. Pure."""

import re
from collections.abc import Iterable

from pydantic import TypeAdapter, ValidationError

from strait.config.settings import Regex
from strait.config.topic_names import check_replacement
from strait.importing.draft import PROVIDED, Flow, Given, Weight

HELD = "a provider holds it: write its value"
"""Why a name or an expression cannot be translated that is a reference."""
_ROUTER = "RegexRouter"
_UNTOUCHED = (
    "only RegexRouter is taken over; write the same by Spark SQL as the `transform` of a topic's rule, if it can"
)
_JAVA_ONLY = re.compile(r"\\Q|&&")
_PART = re.compile(r"\\.|\[\^?\]?|\]", re.DOTALL)  # of an expression, as far as it opens or closes a class
_REFERENCE = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}|(\\)")
_regex = TypeAdapter(Regex)


def why_not_regex(pattern: str) -> str | None:
    """Return why a Java regular expression cannot be used unchanged; None if it can."""
    if PROVIDED.search(pattern):
        return HELD
    if _JAVA_ONLY.search(pattern):
        return r"`\Q…\E` and `&&` mean something in Java's regular expressions only"
    if _has_nested_class(pattern):
        return "`[` inside `[…]` opens another class in Java's regular expressions only: write `\\[`, or one class"
    try:
        _regex.validate_python(pattern)
    except ValidationError as error:
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    return None


def _has_nested_class(pattern: str) -> bool:
    """Return whether a character class contains another `[`, a union in Java and a literal or a POSIX class here."""
    is_inside = False
    for part in _PART.findall(pattern):
        if part.startswith("[") and is_inside:
            return True
        if part.startswith("["):  # with a `]` that is the first character of the class, and literal
            is_inside = True
        elif part == "]":
            is_inside = False
    return False


def add_patterns(flow: Flow, given: Given, patterns: Iterable[str], *path: str) -> None:
    """Add expressions to a list of the link; those that cannot be used are recorded as untranslated, each with the
    reason."""
    for pattern in patterns:
        why = why_not_regex(pattern)
        if why is None:
            flow.add([pattern], *path)
        else:
            flow.leave(Given(given.name, f"{given.key}: {pattern}", pattern), why, Weight.FIRST)


def take_transform(flow: Flow, given: Given) -> None:
    """Store the property for `routing_rules`."""
    flow.transforms[given.name] = given


def routing_rules(flow: Flow, *, alone: bool) -> list[dict[str, str]]:
    """Return the link's RegexRouter as a naming rule, if it has one. All other transformations are recorded as
    untranslated.

    Args:
        alone: whether nothing else changes the names; if something does, a router that follows it is left untranslated,
            too.
    """
    listed = flow.transforms.pop("transforms", None)
    routers = [name for name in ([] if listed is None else listed.items) if _is_router(flow, name)]
    rules = []
    if alone and len(routers) == 1 and listed is not None and listed.items == routers:
        rules = _rule(flow, routers[0])
    for given in flow.transforms.values():
        if not rules:
            twice = "names are changed twice; say by `naming` what comes out of both"
            flow.leave(given, _UNTOUCHED if alone else twice, Weight.FIRST)
    if listed is not None and not rules:
        flow.leave(listed, _UNTOUCHED, Weight.FIRST)
    return rules


def _is_router(flow: Flow, name: str) -> bool:
    kind = flow.transforms.get(f"{name}.type")
    return kind is not None and kind.value.endswith(_ROUTER)


def _rule(flow: Flow, name: str) -> list[dict[str, str]]:
    expected = {f"{name}.{part}" for part in ("type", "regex", "replacement")}
    if set(flow.transforms) != expected:  # a predicate, for one
        return []
    pattern, given = flow.transforms[f"{name}.regex"], flow.transforms[f"{name}.replacement"].value
    replacement = _replacement(given)
    why = why_not_regex(pattern.value) or (HELD if PROVIDED.search(given) else None)
    try:
        if why is None:
            check_replacement(pattern.value, replacement)
            return [{"match": pattern.value, "replace": replacement}]
    except ValueError as error:
        why = str(error)
    flow.leave(pattern, why, Weight.FIRST)
    return []


def _replacement(java: str) -> str:
    r"""Return the replacement with `$1` and `${name}` as `\g<1>` and `\g<name>`; an escaped character is literal."""

    def spelt(found: re.Match[str]) -> str:
        literal, number, name, lone = found.groups()
        if number or name:
            return rf"\g<{number or name}>"
        return r"\\" if lone or literal == "\\" else str(literal)

    return _REFERENCE.sub(spelt, java)
