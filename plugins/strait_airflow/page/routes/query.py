"""Query parameters of lists."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import HTTPException, Query

from strait.errors import StraitError
from strait_airflow.page.views.answers import MOST_ROWS

Search = Annotated[str, Query(max_length=249)]
"""Part of a name. The limit is the maximum length of a topic name."""

Offset = Annotated[int, Query(ge=0)]
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS)]


@contextmanager
def asking_clusters(turns: threading.Semaphore, busy: str) -> Iterator[None]:
    """Run a block that queries clusters, on one of the threads that handle all requests to Airflow. Its StraitError is
    answered with 409; if all ``turns`` are taken, the request is answered with 429 and ``busy``."""
    if not turns.acquire(blocking=False):
        raise HTTPException(429, busy)
    try:
        yield
    except StraitError as error:
        raise HTTPException(409, str(error)) from error
    finally:
        turns.release()
