"""Lists that a DAG gives to an operator or a sensor. They are template fields, so their values are known only in the task."""

from collections.abc import Iterable


def texts(argument: str, value: object) -> list[str]:
    """Return the value of an argument as a list; a text is a list of one.

    An empty text fails the task without a retry: a template of a missing value renders to it, and an empty list would mean
    the whole link.
    """
    from strait_airflow.errors import raise_for

    found = []
    for one in [value] if isinstance(value, str) or not isinstance(value, Iterable) else value:
        if not isinstance(one, str) or not one.strip():
            raise_for(f"{argument}: {one!r} is not a name; omit the argument for its default", retriable=False)
        found.append(one)
    return found
