"""The JSON Schema of the links file, with which editors complete keys, explain them and mark errors."""

import json
from typing import Any

from strait.config.links import LinksFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text() -> str:
    """Return the schema. It constrains single keys; `strait plan` also checks keys against each other."""
    schema = {"$schema": _DIALECT, "title": "Strait links file"} | _finished(LinksFile.model_json_schema())
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _finished(node: Any) -> Any:
    """Return the schema without pydantic's titles, and with names that do not match their pattern forbidden."""
    if isinstance(node, list):
        return [_finished(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {"additionalProperties": False} if "patternProperties" in node else {}
    # A key called `title` in a block is an object here; pydantic's own titles are strings.
    kept = {
        key: value for key, value in node.items() if key != "x-shown" and (key != "title" or isinstance(value, dict))
    }
    return closed | {key: _finished(value) for key, value in kept.items()}
