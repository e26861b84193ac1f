"""Docstrings and comments of Python files."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

_DIRECTIVE = re.compile(r"#\s*(?:type:|noqa|fmt:|pragma).*")


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, of attributes too, and of each comment that is no directive."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        for statement in body if isinstance(body := getattr(node, "body", None), list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], _DIRECTIVE.sub("", token.string)
