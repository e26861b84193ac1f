"""Extract the one line that explains why Spark failed from the pages that it and Python print about it. Pure."""

import re

_OURS = re.compile(r"^\s*strait\.[\w.]+: (?P<message>.+)$", re.MULTILINE)
_PYTHON = re.compile(
    r"^(?!py4j|pyspark\.)(?:[\w.]+\.)?(?P<name>\w+(?:Error|Exception|Exit)): (?P<message>.+)$", re.MULTILINE
)
_JAVA = re.compile(r"^(?:Caused by|): (?:[\w.$]+\.)?(?P<name>\w+(?:Error|Exception)): (?P<message>.+)$", re.MULTILINE)


_CLASS = re.compile(r"\[([A-Z][A-Z0-9_.]*)\]")
_OF_DATA = re.compile(r"\[([A-Z][A-Z0-9_.]*)\][^\[]*SQLSTATE: 22")
"""Spark's name of an error whose cause is a value: its text quotes the value, which only the link may read."""

_NO_WORKER = "Python worker failed to connect back"


def is_failure_to_start(text: str) -> bool:
    """Return whether a Python process that Spark started did not connect back in time. Its task is not the cause."""
    return _NO_WORKER in text


def cause_of(text: str) -> str:
    """Return `root_cause`, with the possible remedies if Spark's message has none."""
    if is_failure_to_start(text):
        return (
            "Spark started a Python process, which did not connect back within 10 s (the host is overloaded: free CPU or "
            "memory on it, or move the application; it is started again)"
        )
    return root_cause(text)


def root_cause(text: str) -> str:
    """Return the error that this package raised, else the innermost one of Python, else of Java, else the first line.

    Spark's and Py4J's own Python errors only wrap the others, and Java's only wrap Python's if they quote a traceback,
    so these are skipped.
    """
    if ours := _OURS.findall(text):
        return str(ours[-1]).strip()
    quoting = set(_OF_DATA.findall(text))
    for pattern in (_PYTHON, _JAVA):
        found = [match for match in pattern.finditer(text) if not match["message"].startswith("Traceback ")]
        if found:
            name, message = found[-1]["name"], found[-1]["message"].strip()
            error_class = _CLASS.match(message)
            if error_class and error_class[1] in quoting:
                return f"{name}: [{error_class[1]}] for a value, which is left out here"
            return f"{name}: {message}"
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
