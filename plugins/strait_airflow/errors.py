"""Maps Strait's errors to Airflow's: tasks with a retriable error are retried, all others fail immediately."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from strait_airflow.verdict import Failure

if TYPE_CHECKING:
    from strait.errors import StraitError


@contextmanager
def airflow_errors(link: str = "") -> Iterator[None]:
    """Convert every StraitError raised inside to an Airflow exception with its message in one line.

    ``link``: see `described`.
    """
    from strait.errors import StraitError

    try:
        yield
    except StraitError as error:
        raise_for(described(error, link), retriable=error.retriable)


def described(error: "StraitError", link: str = "") -> str:
    """Return the message in one line. If it concerns a cluster whose properties the link has from an Airflow Connection,
    that is added: the hint of the error only knows the links file."""
    from strait.errors import ClusterError, StraitError
    from strait_airflow.settings import clusters_of

    text = one_line(str(error))
    if not link or not isinstance(error, ClusterError):
        return text
    try:
        origin = clusters_of(link).links[link].origins.get(error.cluster)
    except StraitError:
        return text
    return f"{text}; its properties come from {origin}" if origin else text


def failure_of(error: "StraitError", link: str) -> Failure:
    """Return the failure of a step. See `described`."""
    return Failure(cause_of(error), described(error, link))


def cause_of(error: "StraitError") -> str:
    """Return the cause of an error, the same for every operation that fails for it, whenever that is."""
    from strait.errors import ClusterUnavailable, ConfigError, LoginRejected, OtherCluster
    from strait.text import without_numbers

    text = one_line(str(error))
    if isinstance(error, ConfigError):
        return text  # after each edit, a number is another mistake
    if isinstance(error, ClusterUnavailable) and not isinstance(error, OtherCluster):
        return f"cluster {error.cluster}: does not respond"
    if isinstance(error, LoginRejected):
        return f"cluster {error.cluster}: rejects the credentials"
    return without_numbers(text)


def one_line(text: str) -> str:
    """Return the text, printable, with its lines joined into one; a message lists problems one per line."""
    from strait.text import printable

    return printable(re.sub(r"\s*\n\s*", "; ", re.sub(r":\s*\n\s*", ": ", text)))


def raise_for(message: str, *, retriable: bool) -> NoReturn:
    """Fail the task with one line, without a retry unless ``retriable``."""
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    from strait.text import printable

    message = printable(message)
    raise (AirflowException if retriable else AirflowFailException)(message) from None
