"""`strait schema`: the JSON Schema with which editors complete and validate a links file."""

import sys

from strait.config.json_schema import schema_text


def schema() -> None:
    """Print the JSON Schema of the links file."""
    sys.stdout.write(schema_text())
