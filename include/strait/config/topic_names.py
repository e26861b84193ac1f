"""Names that a topic can have, and those that are reserved. Pure."""

import regex

STATE_PREFIX = "strait."
_KAFKAS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
_LONGEST = 249
_LEGAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_GROUP = regex.compile(r"\\(?:[1-9]\d?|g<\w+>)")
"""A reference to a capturing group in a replacement."""


def is_never_copied(topic: str) -> bool:
    """Return whether the topic is Kafka's own or Strait's own."""
    return topic.startswith(("__", STATE_PREFIX))


def why_illegal(topic: str) -> str | None:
    """Return why no destination topic may have this name; None if one may."""
    if topic in ("", ".", ".."):
        return "it is not an allowed name"
    if len(topic) > _LONGEST:
        return f"it has {len(topic)} characters, more than {_LONGEST}"
    if strange := _strange(topic):
        return strange
    return _why_reserved(topic)


def check_replacement(pattern: str, replacement: str) -> None:
    r"""Raise ValueError if the replacement does not fit the expression, such as `\2` for one with a single group."""
    try:
        regex.sub(f"(?:{pattern})|", replacement, "")  # the empty alternative always matches, so the template is parsed
    except (regex.error, IndexError) as error:
        raise ValueError(f"{replacement!r} does not fit {pattern!r}: {error}") from None


def check_name(pattern: str, replacement: str) -> None:
    """Raise ValueError if the replacement does not fit the expression, or if no match of it makes a name that a topic can
    have."""
    check_replacement(pattern, replacement)
    literal = _GROUP.sub("", replacement)
    why = why_illegal(replacement) if literal == replacement else _strange(literal)
    if why := why or _why_reserved(replacement):
        raise ValueError(f"{replacement!r} makes no valid topic name: {why}")


def _why_reserved(name: str) -> str | None:
    if name.startswith(STATE_PREFIX):
        return f"names that begin with {STATE_PREFIX} are those of Strait's state topics"
    return "it is a topic of Kafka's own" if name in _KAFKAS_OWN else None


def _strange(text: str) -> str | None:
    strange = "".join(sorted(set(text) - _LEGAL))
    return f"it has characters other than letters, digits, `.`, `_` and `-`: {strange!r}" if strange else None
