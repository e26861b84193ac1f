"""Query parameters of lists."""

from typing import Annotated

from fastapi import Query

from strait_airflow.page.views.answers import MOST_ROWS

Search = Annotated[str, Query(max_length=249)]
"""Part of a name. The limit is the maximum length of a topic name."""

Offset = Annotated[int, Query(ge=0)]
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS)]
