"""Maps Strait's errors to Airflow's: tasks with a retriable error are retried, all others fail immediately."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Convert every StraitError raised inside to an Airflow exception with its message in one line."""
    from strait.errors import StraitError

    try:
        yield
    except StraitError as error:
        raise_for(one_line(str(error)), retriable=error.retriable)


def one_line(text: str) -> str:
    """Return the text with its lines joined into one; a message lists problems one per line."""
    return re.sub(r"\s*\n\s*", "; ", re.sub(r":\s*\n\s*", ": ", text))


def raise_for(message: str, *, retriable: bool) -> NoReturn:
    """Fail the task with one line, without a retry unless ``retriable``."""
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    raise (AirflowException if retriable else AirflowFailException)(message) from None
