"""Common parts of answers, and how a route declares its answer."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class Answer(BaseModel):
    """Base of all answers. Later versions of Strait may add fields; clients ignore those that they do not know."""


class Problem(Answer):
    """Why a request was not answered."""

    detail: str = Field(description="Who, what happened and what to do, as one line.")


class Badge(Answer):
    """A state as operators see it."""

    word: str = Field(description="For people; it may change. Programs use the codes of states.")
    level: Literal["good", "quiet", "passing", "person"] = Field(
        description="`good`: as it should be; `quiet`: on purpose, or not known yet; `passing`: a problem that is expected to end "
        "automatically; `person`: needs an operator."
    )
    sign: str


class CountedBadge(Badge):
    count: int


class Looked(Answer):
    """How an answer that is read in the background was read last."""

    looking: bool = Field(description="The first read is not over: ask again.")
    error: str = Field(description='Why the last read failed; "": it did not. The rest is then from the read before.')
    age_seconds: float | None = Field(description="Time since the last successful read; null: there was none.")
    every_seconds: float | None = Field(description="Time between two reads.")


class Listed(Answer):
    total: int = Field(description="Number of rows that match, on all pages.")


_PROBLEMS: dict[int, str] = {
    401: "Not logged in to Airflow.",
    403: "A permission in Airflow is missing; `detail` names it.",
    404: "There is none of that name that the user may see.",
    409: "A setting is invalid, or a cluster did not answer.",
    429: "Too many such requests at the same time; try again in some seconds.",
}


def answers(model: Any, *problems: int) -> dict[str, Any]:
    """Return the arguments of a route that declare its answer, and its problems besides a missing login."""
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": _PROBLEMS[status]} for status in (401, *problems)
    }
    return {"response_model": None, "responses": {200: {"model": model}, **found}}
