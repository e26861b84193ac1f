"""The one line that says why a query failed, out of the pages that Spark and Python print about it."""

import re

_PACKAGE_ERROR = re.compile(r"^\s*(?:strait\.[\w.]+): (.+)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+(?:Error|Exception|Interrupt|Exit)): (.+)$", re.MULTILINE)


def root_cause(text: str) -> str:
    """The error that this package raised, else the innermost Python error, else the first line."""
    for pattern in (_PACKAGE_ERROR, _PYTHON_ERROR):
        if found := pattern.findall(text):
            return str(found[-1]).strip()
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
