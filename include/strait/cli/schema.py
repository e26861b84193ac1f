"""`strait schema`: the JSON Schema with which editors complete and validate a links file."""

import json
import sys

from strait.cli.options import Output, OutputOption
from strait.config.json_schema import schema_text


def schema(output: OutputOption = Output.JSON) -> None:
    """Print the JSON Schema of the links file."""
    text = schema_text()
    if output is Output.YAML:
        import yaml

        text = yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=True)
    sys.stdout.write(text)
