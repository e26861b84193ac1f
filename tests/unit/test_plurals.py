"""Numbers agree with their nouns: `1 topic is`, `2 topics are`, on terminals, in notes of runs, on the page and in logs. One function
writes them in Python, and one on the page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.home import project_root
from strait.text import plural

NOUNS = (
    "ACLs|applications|batches|brokers|changes|clusters|cores|differences|entries|events|failovers|files|groups|hours|keys|lines|"
    "links|losses|members|messages|minutes|offsets|partitions|plans|producers|processes|records|replicas|rows|rules|runs|settings|"
    "slots|steps|tasks|times|topics|transactions|versions"
)
QUALITIES = "consumer|destination|missing|more|new|older|other|source|Spark"
COUNTED = re.compile(rf" (?:(?:{QUALITIES}) )?(?:{NOUNS})\b(?!/)")
FILES = [
    path
    for folder in ("include/strait", "plugins", "dags")
    for path in sorted((project_root() / folder).rglob("*.py"))
    if not {"wire", "embedded"} & set(path.parts)  # of malformed bytes, and of brokers for tests
]  # fmt: skip
TEXTS = re.compile(
    r"plural\(|duration\(|_made\(|self\._proofs|place$|partition$|figures\.|count\(known\)|minutes$|_SECONDS|UNKNOWN|_BATCHES"
)
"""Values that are texts already, or end another noun."""


def counted(path: Path) -> Iterator[str]:
    """Texts with a value followed by a noun in its plural."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        for one, other in zip(node.values, node.values[1:], strict=False):
            noun = other.value if isinstance(other, ast.Constant) else ""
            if isinstance(one, ast.FormattedValue) and COUNTED.match(str(noun)) and not is_text(one.value):
                yield f"{path.relative_to(project_root())}:{one.lineno}: {ast.unparse(node)}"


def is_text(value: ast.expr) -> bool:
    return TEXTS.search(ast.unparse(value)) is not None


def test_no_text_writes_a_plural_beside_a_number_by_hand() -> None:
    assert len(FILES) > 300
    found = [text for path in FILES for text in counted(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("count", "arguments", "text"),
    [
        (1, ("topic",), "1 topic"),
        (0, ("topic",), "0 topics"),
        (1000, ("new record",), "1,000 new records"),
        (2, ("batch",), "2 batches"),
        (2, ("loss",), "2 losses"),
        (2, ("process",), "2 processes"),
        (2, ("entry",), "2 entries"),
        (2, ("key",), "2 keys"),
        (1, ("topic is", "topics are"), "1 topic is"),
        (2, ("topic is", "topics are"), "2 topics are"),
    ],
)
def test_a_noun_is_in_its_number(count: int, arguments: tuple[str, ...], text: str) -> None:
    assert plural(count, *arguments) == text


@given(st.integers(), st.sampled_from(NOUNS.split("|")))
def test_every_noun_that_is_counted_has_its_plural_by_rule(count: int, many: str) -> None:
    one = re.sub("(?<=ch|ss)es$|s$", "", many.removesuffix("ies") + ("y" if many.endswith("ies") else ""))
    assert plural(count, one) == f"{count:,} {one if count == 1 else many}"


def test_the_page_writes_no_plural_beside_a_number_by_hand() -> None:
    written = re.compile(rf"\}} (?:(?:{QUALITIES}) )?(?:{NOUNS})\b(?!/)")
    found = [
        f"{path.name}: {line.strip()}"
        for path in (project_root() / "plugins/strait_airflow/page/static").glob("*.js")
        for line in path.read_text(encoding="utf-8").splitlines()
        if written.search(line) and "=== 1" not in line and "toFixed" not in line
    ]
    assert not found
