"""The JSON schema of the links file, for editors: they complete keys, show what each means, and mark what is wrong."""

import json
from typing import Any

from strait.config.links import LinksFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text() -> str:
    """The schema. It says all that can be said of single keys; `strait plan` also checks what they mean together."""
    schema = {"$schema": _DIALECT, "title": "Strait links file"} | _finished(LinksFile.model_json_schema())
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _finished(node: Any) -> Any:
    """Names that do not fit their pattern are wrong, and what pydantic made of our own names is left out."""
    if isinstance(node, list):
        return [_finished(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {"additionalProperties": False} if "patternProperties" in node else {}
    # A key called `title` in a block is an object here, pydantic's own titles are texts.
    kept = {
        key: value for key, value in node.items() if key != "x-shown" and (key != "title" or isinstance(value, dict))
    }
    return closed | {key: _finished(value) for key, value in kept.items()}
