"""The published document of the HTTP API is what the page's routes declare."""

import json
from typing import Any

import pytest

from support.doc_tables import OPENAPI, ROOT, openapi_text

pytestmark = [pytest.mark.airflow, pytest.mark.core]


def document() -> Any:
    return json.loads((ROOT / OPENAPI).read_text(encoding="utf-8"))


def test_the_published_document_is_up_to_date():
    published = (ROOT / OPENAPI).read_text(encoding="utf-8")
    assert published == openapi_text(), "run: .venv/bin/python tests/support/doc_tables.py"


def test_every_route_needs_a_login_and_has_its_answer_and_a_description():
    wrong = []
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
            if not (
                answer and operation["security"] and operation.get("description") and "401" in operation["responses"]
            ):
                wrong.append(f"{method} {path}")
    assert wrong == [], "declare the answer with `answers` and describe the route in its docstring"


def test_it_only_reads():
    posts = {path.rpartition("/")[2] for path, methods in document()["paths"].items() if "post" in methods}
    assert posts == {"check", "preview"}, "neither changes anything"
    assert {method for methods in document()["paths"].values() for method in methods} == {"get", "post"}
