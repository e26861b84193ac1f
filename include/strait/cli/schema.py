"""`strait schema`: what editors need to help with a links file."""

import sys


def schema() -> None:
    """Print the JSON schema of the links file, for editors: they complete keys, explain them and mark mistakes."""
    from strait.config.json_schema import schema_text

    sys.stdout.write(schema_text())
