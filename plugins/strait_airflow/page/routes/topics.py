"""The page's routes about a link's topics: what they are, whether others would be right, and what those would do.

None of them changes anything: the page saves the Variable through Airflow's own interface.
"""

import json
import threading
from typing import Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict

from strait.errors import ConfigError, StraitError
from strait_airflow.page.security import EditableLink
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.preview import preview_of
from strait_airflow.settings import clusters_of, topics_text, variable_name

MOST_PREVIEWS = 2
"""At once. Each asks both clusters, on one of the threads that Airflow answers all its requests with."""

api = APIRouter(prefix="/api/v1/links/{link}/topics")
_previews = threading.BoundedSemaphore(MOST_PREVIEWS)


class Asked(BaseModel):
    """A `topics` block as the Variable holds it."""

    model_config = ConfigDict(extra="forbid")

    topics: dict[str, Any]


@api.get("")
def current(name: EditableLink) -> Data:
    """The topics that are in force.

    Returns: `topics`, the block; `value`, the Variable's text (null: there is none, the links file counts); `problem`,
        why that text cannot be used; the block is the links file's then.
    """
    from strait.config.links import parse_topics

    text = topics_text(name)
    try:
        in_file = clusters_of(name).links[name].topics
    except ConfigError as error:
        raise HTTPException(409, str(error)) from error
    found, problem = in_file, ""
    if text is not None:
        try:
            found = parse_topics(text, where=f"Airflow Variable {variable_name(name)}")
        except ConfigError as error:
            problem = str(error)
    block = found.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {"topics": block, "value": text, "problem": problem}


@api.post("/check")
def check(name: EditableLink, asked: Asked) -> Data:
    """Whether these topics are right. Returns: `problems`, one line each; none where all is well."""
    try:
        _with(name, asked)
    except ConfigError as error:
        return {"problems": list(error.problems)}
    return {"problems": []}


@api.post("/preview")
def preview(name: EditableLink, asked: Asked) -> Data:
    """What these topics would do: see `preview_of`. Asks both clusters, and plans as the link's DAG does."""
    from strait.control.plane import Control

    if not _previews.acquire(blocking=False):
        raise HTTPException(429, "other previews are being made; try again in some seconds")
    try:
        with Control(_with(name, asked), name) as control:
            proposal = control.propose()
            return preview_of(control.link, proposal, control.forecast(proposal))
    except StraitError as error:
        raise HTTPException(409, str(error)) from error
    finally:
        _previews.release()


def _with(name: str, asked: Asked) -> Any:
    """The links file, as it would be. Raises ConfigError."""
    from strait.config.links import parse_topics, with_topics

    where = "these topics"
    file = clusters_of(name)
    topics = parse_topics(json.dumps(asked.topics), where=where)
    link = with_topics(file.links[name], topics, where=where)
    return file.model_copy(update={"links": {**file.links, name: link}})
