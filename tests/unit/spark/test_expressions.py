"""Which analysed expressions may transform records. The trees are as Spark 4.2 lists them; tests/spark/test_evaluating.py asks
Spark itself."""

from typing import Any

import pytest

from strait.spark.expressions import (
    Node,
    Regex,
    depth,
    refusals,
    regexes,
    repeated_group,
    replacement_problem,
    schema_problem,
    tree,
)

ARRAY = {"type": "array", "elementType": "string", "containsNull": True}


def node(kind: str, *children: Node, **fields: Any) -> Node:
    return Node(kind, fields, children)


def column(name: str) -> Node:
    return node("AttributeReference", name=name)


def text(value: str) -> Node:
    return node("Literal", value=value, dataType="string")


def test_a_tree_is_made_of_the_list_of_its_nodes() -> None:
    listed = [
        {"class": "a.b.And", "num-children": 2},
        {"class": "a.b.Not", "num-children": 1},
        {"class": "a.b.AttributeReference", "num-children": 0, "name": "key"},
        {"class": "a.b.Literal", "num-children": 0, "value": "x"},
    ]
    root = tree(listed)
    assert [one.kind for one in root.walk()] == ["And", "Not", "AttributeReference", "Literal"]
    assert [len(one.children) for one in root.walk()] == [2, 1, 0, 0]
    assert depth(listed) == 3, "of the attribute below Not"
    assert depth([{"num-children": 1}] * 5_000 + [{"num-children": 0}]) == 5_001, "without recursion"
    with pytest.raises(ValueError, match="left behind"):
        tree([*listed, listed[-1]])


@pytest.mark.parametrize(
    ("expression", "root", "problem"),
    [
        ("rand()", node("Rand"), "Rand is not among"),
        ("now()", node("Now"), "Now is not among"),
        ("upper(now())", node("Upper", node("Now")), "Now is not among"),
        ("aes_encrypt(key, 'k')", node("AesEncrypt", column("key")), "AesEncrypt"),
        ("__kind = 1", node("EqualTo", column("__kind"), text("1")), "no column __kind"),
        ("timestamp 'Now '", text("2024"), "'Now' means another time"),
        ('date"today"', text("2024"), "'today' means another time"),
        ("cast(concat('no', 'w') as date)", node("Cast", text("now"), dataType="date"), "constant text"),
        ("key rlike value", node("RLike", column("key"), column("value")), "must be a literal"),
        ("key like value", node("Like", column("key"), column("value")), "must be a literal"),
        ("key like 'a\\\\b'", node("Like", column("key"), text("a\\b")), "no backslash"),
        ("...", node("RegExpReplace", column("key"), text("a"), column("value")), "replacement"),
        ("...", node("RLike", column("key"), text("(a|b)+")), "repeats (a|b)"),
        ("...", node("Like", column("key"), text("a/b"), escape="/"), "no ESCAPE"),
        ("...", node("Cast", column("v"), **{"dataType": "timestamp", "from": "date"}), "no timestamp"),
        ("...", node("Cast", column("v"), dataType="interval day to second"), "no interval"),
        ("...", node("StringReplace", column("key"), text("a"), column("value")), "must be a literal"),
        ("...", node("StringLPad", column("key"), text("2000000000"), text("x")), "at most 10000"),
        ("...", node("ConcatWs", column("key"), column("v")), "must be a literal"),
        ("...", node("Cast", column("v"), **{"dataType": "timestamp", "from": "string"}), "TIMESTAMP_NTZ"),
        (
            "...",
            node("Cast", column("v"), **{"dataType": ARRAY | {"elementType": "timestamp"}, "from": ARRAY}),
            "TIMESTAMP_NTZ",
        ),
        ("...", node("Cast", column("v"), **{"dataType": "decimal(10,2)", "from": "string"}), "AS DOUBLE"),
        ("...", node("Cast", column("v"), **{"dataType": "integer", "from": "variant"}), "VARIANT may not fit"),
        ("...", node("Cast", column("v"), **{"dataType": "integer", "from": "interval day"}), "an interval"),
        ("...", node("UnaryMinus", column("v"), of="decimal(38,18)"), "more than 34 digits"),
        ("...", node("Round", column("v"), of="decimal(35,0)"), "more than 34 digits"),
        ("...", node("SubstringIndex", column("v"), text(","), column("offset")), "must be a literal"),
        ("...", node("SubstringIndex", column("v"), text(","), text("-2147483648")), "at most 10000"),
        ("...", node("GetJsonObject", column("v"), column("key")), "must be a literal"),
        ("...", node("GetJsonObject", column("v"), text("$.a[*][*]")), "one * at most"),
        ("...", node("RLike", column("key"), text("(?x)(a|b) +")), "flag x or U"),
        ("...", node("MillisToTimestamp", column("v")), "use timestamp_micros"),
    ],
)
def test_what_is_no_function_of_the_record_is_refused(expression: str, root: Node, problem: str) -> None:
    (found,) = refusals(expression, root)
    assert problem in found


@pytest.mark.parametrize(
    "root",
    [
        node("Cast", column("value"), dataType="timestamp"),
        node("Cast", column("v"), **{"dataType": "timestamp_ntz", "from": "string"}),
        node("Cast", column("v"), **{"dataType": "decimal(10,2)", "from": "double"}),
        node("Cast", column("v"), **{"dataType": ARRAY | {"elementType": "integer"}, "from": ARRAY}),
        node("Abs", column("v"), of="decimal(34,2)"),
        node("UnaryMinus", column("v"), of="long"),
        node("SubstringIndex", column("v"), text(","), text("-1")),
        node("GetJsonObject", column("v"), text("$.a[*].b")),
        node("RLike", column("key"), text(r"\(?x+")),
        node("Like", column("key"), text("100\\%_")),
        node("RegExpReplace", column("key"), text("a"), text("b")),
    ],
)
def test_functions_of_the_record_are_allowed(root: Node) -> None:
    assert refusals("...", root) == []


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("string", ""),
        ("timestamp_ntz", ""),
        ("decimal(38,18)", ""),
        ("timestamp", "TIMESTAMP: a text may be a time of day"),
        ("variant", "VARIANT: some values"),
        (ARRAY | {"elementType": "interval day to second"}, "INTERVAL DAY TO SECOND: some values"),
        ({"type": "map", "keyType": "string", "valueType": "timestamp", "valueContainsNull": True}, "TIMESTAMP: "),
        (
            {"type": "struct", "fields": [{"name": "a", "type": "variant", "nullable": True, "metadata": {}}]},
            "VARIANT: ",
        ),
    ],
)
def test_a_schema_has_no_type_whose_values_fail_or_depend_on_the_day(kind: Any, problem: str) -> None:
    assert schema_problem(kind).startswith(problem) and bool(schema_problem(kind)) is bool(problem)


@pytest.mark.parametrize(
    ("pattern", "group"),
    [
        ("(a|b)+", "(a|b)"),
        (r"(\w|\s)*x", r"(\w|\s)"),
        ("([^@]|@a)+x", "([^@]|@a)"),
        ("x(?:ab?)+", "(?:ab?)"),
        ("((a|b)c)*", "((a|b)c)"),
        ("(a+ ){2,}", "(a+ )"),
        ("(?<name>a|b){101}", "(?<name>a|b)"),
        ("(a|b)++", "(a|b)"),
        ("(a|b)+?", "(a|b)"),
        ("(.)+", "(.)"),
        ("(?:[^,],)*", "(?:[^,],)"),
        (r"(\W\d)+", r"(\W\d)"),
        (r"(?:\R)+", r"(?:\R)"),
        (r"(a)(\1)+", r"(\1)"),
        ("(?:[\U0001f600a])*", "(?:[\U0001f600a])"),
        ("((a|b){0,100}){0,100}", "((a|b){0,100})"),
        ("(a|b){0,100}(a|b){0,100}(a|b)?", "(a|b)"),
        ("((a|b){0,9}c){0,9}(d|e){0,99}(f|g){0,50}", "(f|g)"),
        ("((a|b){0,9}c){0,9}(d|e){0,99}", ""),
        (r"([\w.]+)@(.*)\.(\d\s)+", ""),
        ("[^@]+", ""),
        ("^([^@]+)@(a|b)", ""),
        ("(a|b)?(ab)+(a{3})*", ""),
        ("(a|b){100}(a|b){0,100}", ""),
        (r"\(a|b\)+", ""),
        ("[(a|b)]+[)]*", ""),
        (r"\Q(a|b)+\E", ""),
        (r"[a-z[(|)]&&[^)]]+(x)", ""),
    ],
)
def test_a_group_that_java_matches_by_recursion_is_not_repeated(pattern: str, group: str) -> None:
    assert repeated_group(pattern) == group


def test_java_is_asked_about_the_patterns() -> None:
    root = node(
        "And", node("RLike", column("key"), text("a+")), node("RegExpReplace", column("key"), text("b"), text("$1"))
    )
    assert regexes(root) == [Regex("a+", None), Regex("b", "$1")]


@pytest.mark.parametrize(
    ("replacement", "groups", "fits"),
    [
        ("x", 0, True),
        ("$0", 0, True),
        ("$1", 1, True),
        ("$1", 0, False),
        ("$", 3, False),
        (r"\$", 0, True),
        ("a\\", 0, False),
        (r"\\", 0, True),
        ("${a}", 3, False),
    ],
)
def test_a_replacement_names_only_groups_that_there_are(replacement: str, groups: int, fits: bool) -> None:
    assert (replacement_problem(replacement, groups) == "") is fits
