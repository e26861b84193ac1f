"""The one line that says why Spark failed, out of the pages that it and Python print about it. Pure."""

import re

_OURS = re.compile(r"^\s*strait\.[\w.]+: (?P<message>.+)$", re.MULTILINE)
_PYTHON = re.compile(
    r"^(?!py4j|pyspark\.)(?:[\w.]+\.)?(?P<name>\w+(?:Error|Exception|Exit)): (?P<message>.+)$", re.MULTILINE
)
_JAVA = re.compile(r"^(?:Caused by|): (?:[\w.$]+\.)?(?P<name>\w+(?:Error|Exception)): (?P<message>.+)$", re.MULTILINE)


_NO_WORKER = "Python worker failed to connect back"


def is_failure_to_start(text: str) -> bool:
    """A Python process that Spark has started did not report to it in time. Nothing is wrong with what it was to do."""
    return _NO_WORKER in text


def cause_of(text: str) -> str:
    """`root_cause`, with what can be done about it where Spark does not say so."""
    if is_failure_to_start(text):
        return (
            "Spark started a Python process, which did not connect back within 10 s (the host is overloaded: free CPU or "
            "memory on it, or move the application; it is started again)"
        )
    return root_cause(text)


def root_cause(text: str) -> str:
    """The error that this package raised, else the innermost one of Python, else of Java, else the first line.

    Spark's and Py4J's own Python errors only carry the others, and Java's only carry Python's where they quote a
    traceback, so these are passed over.
    """
    if ours := _OURS.findall(text):
        return str(ours[-1]).strip()
    for pattern in (_PYTHON, _JAVA):
        found = [match for match in pattern.finditer(text) if not match["message"].startswith("Traceback ")]
        if found:
            return f"{found[-1]['name']}: {found[-1]['message']}".strip()
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
