"""Strait's errors as Airflow understands them: what trying again may help is retried, the rest fails at once."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Every StraitError raised inside becomes one of Airflow's, with the one line of its message."""
    from strait.errors import StraitError

    try:
        yield
    except StraitError as error:
        raise_for(one_line(str(error)), retriable=error.retriable)


def one_line(text: str) -> str:
    """Several problems, which stand one below the other, side by side."""
    return re.sub(r"\s*\n\s*", "; ", re.sub(r":\s*\n\s*", ": ", text))


def raise_for(message: str, *, retriable: bool) -> NoReturn:
    """Fail the task with one line, for good unless ``retriable``."""
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    raise (AirflowException if retriable else AirflowFailException)(message) from None
