"""The page's routes for a link's topics: read the current `topics` block, validate a new one, preview its effects.

None of them changes anything: the page saves the Variable through Airflow's own API.
"""

import json
import threading
from typing import Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict

from strait.errors import ConfigError
from strait_airflow.page.routes.query import asking_clusters
from strait_airflow.page.schemas.common import answers
from strait_airflow.page.schemas.details import Checked, Preview, TopicSettings
from strait_airflow.page.security import EditableLink
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.preview import preview_of
from strait_airflow.settings import clusters_of, topics_text, variable_name

MOST_PREVIEWS = 2
"""Most previews at a time. Each queries both clusters, on one of the threads that handle all requests to Airflow."""

api = APIRouter(prefix="/api/v1/links/{link}/topics")
_previews = threading.BoundedSemaphore(MOST_PREVIEWS)


class Asked(BaseModel):
    """A `topics` block, as stored in the Variable."""

    model_config = ConfigDict(extra="forbid")

    topics: dict[str, Any]


@api.get("", **answers(TopicSettings, 403, 404, 409))
def current(name: EditableLink) -> Data:
    """Return the current `topics` block of the link, to users with the permission to change it."""
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


@api.post("/check", **answers(Checked, 403, 404))
def check(name: EditableLink, asked: Asked) -> Data:
    """Validate a `topics` block. Changes nothing."""
    try:
        _with(name, asked)
    except ConfigError as error:
        return {"problems": list(error.problems)}
    return {"problems": []}


@api.post("/preview", **answers(Preview, 403, 404, 409, 429))
def preview(name: EditableLink, asked: Asked) -> Data:
    """Preview the effects of a `topics` block. Changes nothing: queries both clusters and plans like the link's DAG."""
    from strait.control.plane import Control

    with (
        asking_clusters(_previews, "other previews are being made; try again in some seconds"),
        Control(_with(name, asked), name) as control,
    ):
        proposal = control.propose()
        return preview_of(control.link, proposal, control.forecast(proposal))


def _with(name: str, asked: Asked) -> Any:
    """Return the links file with these topics. Raises ConfigError."""
    from strait.config.links import parse_topics, with_topics

    where = "these topics"
    file = clusters_of(name)
    topics = parse_topics(json.dumps(asked.topics), where=where)
    link = with_topics(file.links[name], topics, where=where)
    return file.model_copy(update={"links": {**file.links, name: link}})
