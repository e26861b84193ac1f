"""The expressions of Spark SQL that may transform records: those whose result depends on the record alone, always, and
that do not fail for any record. Pure.

Spark's own `deterministic` is true of many expressions that are not: the time, the user, some encryption. So this is an
allow-list, by the classes of a resolved expression. It also excludes expressions that fail for some values, since Spark
then ends the task without naming the record.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MOST_DEPTH = 100
"""Levels of an expression: Spark and this module go through them by recursion, and all topics of a link share one query."""
COLUMNS = frozenset({"key", "value", "topic", "partition", "offset", "timestamp", "v", "secret"})
"""The columns that an expression may use."""

_FORM = "Alias AttributeReference Literal TypedNullLiteral Cast GetStructField CreateNamedStruct CreateArray"
_BOUND = "With CommonExpressionDef CommonExpressionRef LambdaFunction NamedLambdaVariable"
_CONDITIONS = (
    "And Or Not EqualTo EqualNullSafe GreaterThan GreaterThanOrEqual LessThan LessThanOrEqual In Between IsNull IsNotNull "
    "IsNaN If CaseWhen Coalesce Nvl Nvl2 NullIf NaNvl Greatest Least"
)
_NUMBERS = (
    "Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus UnaryPositive Abs Round BRound Floor Ceil Signum "
    "Sqrt Pow Exp Log Log10 BitwiseAnd BitwiseOr BitwiseXor BitwiseNot ShiftLeft ShiftRight ShiftRightUnsigned"
)
_HASHES = "Sha2 Sha1 Md5 Crc32 XxHash64 Murmur3Hash"
_TEXT = (
    "Mask RegExpReplace RLike Like ILike Substring Left Right StringSplit Concat ConcatWs Upper Lower StringTrim "
    "StringTrimLeft StringTrimRight StringTrimBoth InitCap Length OctetLength StringLPad StringRPad StringReplace "
    "StringTranslate Overlay Reverse StringInstr StringLocate StartsWith EndsWith Contains Base64 Hex Unhex Ascii "
    "SubstringIndex"
)
_TIMES = (
    "Year Month DayOfMonth DayOfYear DayOfWeek WeekDay WeekOfYear Quarter Hour Minute Second DateAdd DateSub DateDiff "
    "MicrosToTimestamp UnixMillis UnixSeconds UnixMicros"
)
_JSON = "StructsToJson GetJsonObject LengthOfJsonArray"
_COLLECTIONS = (
    "GetArrayItem Get GetMapValue GetArrayStructFields Size ArraySize ArrayContains ArrayJoin ArrayDistinct SortArray "
    "ArrayTransform ArrayFilter ArrayExists ArrayForAll MapKeys MapValues MapFilter TransformValues"
)
ALLOWED = frozenset(
    " ".join((_FORM, _BOUND, _CONDITIONS, _NUMBERS, _HASHES, _TEXT, _TIMES, _JSON, _COLLECTIONS)).split()
)

PATTERNS: Mapping[str, int] = {"RLike": 1, "RegExpReplace": 1, "StringSplit": 1}
"""Classes with a regular expression -> which child it is."""
_LIKE = frozenset({"Like", "ILike"})
_REPLACEMENT = 2
_TIME_TYPES = ("date", "timestamp")
_TEXT_TYPES = ("string", "char", "varchar")
_FAILING_TYPES = ("interval", "variant")
_OF_DAY = "a text may be a time of day, which is that of the day on which it is read"
_INSTEAD: Mapping[str, str] = {
    "MillisToTimestamp": "timestamp_micros(1000 * …)",
    "SecondsToTimestamp": "timestamp_micros(1000000 * …)",
    "TruncDate": "year(…), month(…)",
    "TruncTimestamp": "year(…), month(…), hour(…)",
}
"""Classes that fail for times far away -> a replacement."""
_LITERALS: Mapping[str, tuple[int, str]] = {
    "RegExpReplace": (_REPLACEMENT, "replacement"),
    "StringReplace": (2, "replacement"),
    "StringLPad": (1, "length"),
    "StringRPad": (1, "length"),
    "ConcatWs": (0, "separator"),
    "ArrayJoin": (1, "separator"),
    "SubstringIndex": (2, "count"),
    "GetJsonObject": (1, "path"),
}
"""Classes -> the child that must be a literal, since a small record could make an immense one, or one that fails."""
_MOST_PADDED = 10_000
_MOST_REPEATED = 100
_MOST_LEVELS = 2 * _MOST_REPEATED
"""Of Java's recursion in a regular expression: a stack of 512 KiB has room for some 900."""
ROUNDING = frozenset({"UnaryMinus", "Abs", "Round", "BRound"})
"""Classes whose result has to fit into its type, which a decimal number of more than 34 digits may not."""
_ROUNDED_DIGITS = 34
_RELATIVE = re.compile(r"""['"]\s*(now|today|yesterday|tomorrow)\b""", re.IGNORECASE)
_REGEX = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|$))|(?P<escaped>\\.)|(?P<open>\((?:\?(?:<?[=!]|[:>]|<\w+>|[a-zA-Z-]+:?))?)|(?P<close>\))"
    r"|(?P<wide>\.)|(?P<class>\[\^?\]?(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\[\]\\])*\])|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?)|(?P<or>\|)|.",
    re.DOTALL,
)
_FLAGS = re.compile(r"\(\?[a-zA-Z]*[xU]")
_WIDE = re.compile(r"\\[DSWPpRXHVNk1-9]")
_WIDE_CLASS = re.compile(r"\[\^|&&|\\[DSWPpHVxu]|[^\u0000-\uffff]")
"""Parts of a regular expression that match one or two characters of Java's: it keeps those beyond U+FFFF as two."""
_GROUP = re.compile(r"\\.|\$(\d)|[\\$]", re.DOTALL)


class Node(NamedTuple):
    """One node of a resolved expression."""

    kind: str
    fields: Mapping[str, Any]
    children: "tuple[Node, ...]"

    def walk(self) -> "Iterator[Node]":
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def text(self) -> str | None:
        """The value of a literal; None for any other node."""
        value = self.fields.get("value")
        return value if self.kind == "Literal" and isinstance(value, str) else None


def depth(nodes: Sequence[Mapping[str, Any]]) -> int:
    """Return how deep an expression is nested. ``nodes``: as for `tree`."""
    deepest = 0
    missing: list[int] = []  # children that follow, of each node around the next one
    for node in nodes:
        while missing and not missing[-1]:
            missing.pop()
        if missing:
            missing[-1] -= 1
        missing.append(node["num-children"])
        deepest = max(deepest, len(missing))
    return deepest


def tree(nodes: Sequence[Mapping[str, Any]]) -> Node:
    """Return an expression as a tree. ``nodes``: as Spark's `toJSON` lists them, each before its children."""
    node, behind = _tree(nodes, 0)
    if behind != len(nodes):
        raise ValueError(f"{len(nodes) - behind} nodes are left behind an expression")
    return node


def _tree(nodes: Sequence[Mapping[str, Any]], at: int) -> tuple[Node, int]:
    fields, behind = nodes[at], at + 1
    children = []
    for _ in range(fields["num-children"]):
        child, behind = _tree(nodes, behind)
        children.append(child)
    return Node(str(fields["class"]).rpartition(".")[2], fields, tuple(children)), behind


def refusals(expression: str, root: Node, columns: frozenset[str] = COLUMNS) -> list[str]:
    """Return the reasons why a resolved expression may not be used, each once; empty: it may.

    Args:
        expression: its text.
    """
    found = list(_of_text(expression))
    for node in root.walk():
        found += _of_node(node, columns)
    return list(dict.fromkeys(found))


def _of_text(expression: str) -> Iterator[str]:
    relative = _RELATIVE.search(expression)
    if relative is not None:
        yield f"{relative[1]!r} means another time whenever Spark starts"


def _of_node(node: Node, columns: frozenset[str]) -> Iterator[str]:
    if node.kind not in ALLOWED:
        instead = f"; use {_INSTEAD[node.kind]}" if node.kind in _INSTEAD else ""
        yield f"{node.kind} is not among the expressions that depend on the record alone and never fail{instead}"
    elif node.kind == "AttributeReference" and str(node.fields.get("name")).lower() not in columns:
        yield f"there is no column {node.fields.get('name')}"
    elif node.kind == "Cast":
        yield from _of_cast(node)
    elif node.kind in ROUNDING and _digits(node.fields.get("of")) > _ROUNDED_DIGITS:
        yield f"{node.kind} of a DECIMAL with more than {_ROUNDED_DIGITS} digits may not fit into it: cast it to one with fewer"
    elif node.kind in _LIKE:
        if node.fields.get("escape", "\\") != "\\":
            yield f"{node.kind} may have no ESCAPE"
        elif not _is_like(node.children[1].text):
            yield f"the pattern of {node.kind} must be a literal, with no backslash but before %, _ or a backslash"
    elif node.kind in PATTERNS and (problem := _pattern_problem(node.children[PATTERNS[node.kind]].text)):
        yield f"the regular expression of {node.kind} {problem}"
    elif node.kind in _LITERALS:
        yield from _of_literal(node)


def _of_literal(node: Node) -> Iterator[str]:
    at, name = _LITERALS[node.kind]
    text = node.children[at].text
    if text is None:
        yield f"the {name} of {node.kind} must be a literal"
    elif name in ("length", "count") and not (re.fullmatch(r"-?[0-9]+", text) and abs(int(text)) <= _MOST_PADDED):
        yield f"the {name} of {node.kind} may be at most {_MOST_PADDED}"
    elif name == "path" and text.count("*") > 1:
        yield f"the path of {node.kind} may have one * at most: Java calls itself for each bracket of the record"


def _of_cast(node: Node) -> Iterator[str]:
    to, given = (tuple(_leaves(node.fields.get(name))) for name in ("dataType", "from"))
    of_text = any(one.startswith(_TEXT_TYPES) for one in given)
    if any(one.startswith(_TIME_TYPES) for one in to) and _is_constant(node):
        yield "a constant text as a date or time may mean another one whenever Spark starts"
    elif any(one.startswith("timestamp") for one in to) and "date" in given:
        yield "a date far away is no timestamp, so it cannot be cast to one: compare dates, as with CAST(timestamp AS DATE)"
    elif "timestamp" in to and of_text:
        yield f"{_OF_DAY}: use CAST(… AS TIMESTAMP_NTZ), which ignores a zone in the text"
    elif any(one.startswith("decimal") for one in to) and of_text:
        yield "a short text may be an immense number: use CAST(CAST(… AS DOUBLE) AS DECIMAL(…))"
    elif any(one.startswith(_FAILING_TYPES) for one in (*to, *given)):
        yield "a text may be no interval, and an interval or a VARIANT may not fit into another type"


def schema_problem(kind: Any) -> str:
    """Return the reason why the fields of JSON values may not have such a type; "" if there is none.

    Args:
        kind: a type as Spark writes it in JSON.
    """
    for one in _leaves(kind):
        if one == "timestamp":
            return f"TIMESTAMP: {_OF_DAY}: use STRING, and CAST(… AS TIMESTAMP_NTZ) in expressions"
        if one.startswith(_FAILING_TYPES):
            return f"{one.upper()}: some values end the task: use STRING"
    return ""


def _leaves(kind: Any) -> Iterator[str]:
    """Yield the simple types in a type, as Spark writes it in JSON."""
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, Mapping):
        for name in ("elementType", "keyType", "valueType"):
            yield from _leaves(kind.get(name))
        for field in kind.get("fields", ()):
            yield from _leaves(field["type"])


def _digits(kind: Any) -> int:
    """Return the number of digits of a decimal type; 0: it is another one."""
    found = re.fullmatch(r"decimal\((\d+),-?\d+\)", str(kind))
    return int(found[1]) if found else 0


def _pattern_problem(pattern: str | None) -> str:
    if pattern is None:
        return "must be a literal"
    if any(_FLAGS.match(token[0]) for token in _REGEX.finditer(pattern) if token.lastgroup == "open"):
        return "may not have the flag x or U"
    group = repeated_group(pattern)
    if not group:
        return ""
    return (
        f"repeats {group}, for which Java calls itself each time, so that a long text ends the task: use a class of characters, "
        f"such as [ab]+, or {{0,{_MOST_REPEATED}}}"
    )


class _Sequence(NamedTuple):
    """A part of a regular expression.

    Attributes:
        varies: whether its matches have several lengths, or it matches the same text in several ways.
        levels: how deep Java calls itself for its groups.
    """

    start: int
    varies: bool = False
    levels: int = 0


def repeated_group(pattern: str) -> str:
    """Return the group of a regular expression that is repeated too often and whose content can match in several ways; "" if
    there is none. Java matches each repetition of such a group one level deeper, and the rest deeper still."""
    around: list[_Sequence] = []
    now, last = _Sequence(0), None  # last: the group that has just ended
    for token in _REGEX.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        if kind == "open":
            around.append(now)
            now, last = _Sequence(token.start()), None
        elif kind == "close" and around:
            before, last = around.pop(), now
            now = _Sequence(before.start, now.varies or before.varies, before.levels + now.levels)
        elif kind == "repeat":
            exact = re.fullmatch(r"\{(\d+)\}[+?]?", text)
            most = re.fullmatch(r"\{(?:\d+,)?(\d+)\}[+?]?|(\?)[+?]?", text)
            times = int(most[1] or 1) if most is not None else None
            if last is not None and last.varies:
                group = pattern[last.start : token.start()]
                if times is None or times > _MOST_REPEATED:
                    return group
                now = now._replace(levels=now.levels - last.levels + times * (1 + last.levels))
                if now.levels + sum(one.levels for one in around) > _MOST_LEVELS:
                    return group
            now, last = now._replace(varies=now.varies or exact is None), None
        else:
            wide = {"wide": True, "escaped": _WIDE.match(text), "class": _WIDE_CLASS.search(text), "or": True}.get(
                str(kind)
            )
            now, last = now._replace(varies=now.varies or bool(wide)), None
    return ""


def _is_constant(node: Node) -> bool:
    return not any(each.kind in ("AttributeReference", "NamedLambdaVariable") for each in node.walk())


def _is_like(pattern: str | None) -> bool:
    return pattern is not None and re.fullmatch(r"(?:[^\\]|\\[%_\\])*", pattern, re.DOTALL) is not None


class Regex(NamedTuple):
    """A regular expression, and its replacement if it has one; only Java can check whether they are valid."""

    pattern: str
    replacement: str | None


def regexes(root: Node) -> list[Regex]:
    """Return the regular expressions of an expression for which there are no `refusals`."""
    found = []
    for node in root.walk():
        if node.kind in PATTERNS:
            replaces = node.kind == "RegExpReplace"
            pattern = node.children[PATTERNS[node.kind]].text or ""
            found.append(Regex(pattern, node.children[_REPLACEMENT].text if replaces else None))
    return found


def replacement_problem(replacement: str, groups: int) -> str:
    """Return the error in the replacement of a regular expression with this number of groups; "" if there is none."""
    for found in _GROUP.finditer(replacement):
        if found[1] is not None and int(found[1]) > groups:
            return f"the replacement {replacement!r} names group {found[1]}, and the regular expression has {groups}"
        if found[0] in ("\\", "$"):
            return f"the replacement {replacement!r} has a {found[0]} that is neither a group nor escaped"
    return ""
