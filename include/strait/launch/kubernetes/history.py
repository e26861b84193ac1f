"""Records of submissions whose pod was deleted: one config map per application, so that the next host that manages it
knows how often it ended and why. Pure."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from strait.launch.base import State
from strait.launch.kubernetes import names
from strait.launch.submission import KEPT

KEPT_LOG_CHARACTERS = 4000
"""Length of the end of the log that is kept for each submission."""

_KEY = "submissions"


class Ended(BaseModel):
    """One submission that has ended."""

    model_config = ConfigDict(frozen=True)

    id: str
    state: State
    exit_code: int | None
    cause: str
    log: str

    @property
    def submitted_at_ms(self) -> int:
        """When it was submitted, in ms since 1970; its id is this number."""
        return int(self.id)


def name_of(name: str) -> str:
    """Return the name of an application's config map."""
    return f"{names.resource_name(name)}-history"


def parse(config_map: dict[str, Any] | None) -> tuple[Ended, ...]:
    """Return the submissions, newest first; none if another version wrote them in a form that this one cannot read."""
    try:
        written = json.loads((config_map or {}).get("data", {}).get(_KEY, "[]"))
        return tuple(Ended.model_validate(one) for one in written)
    except (ValueError, ValidationError):
        return ()


def together(known: Iterable[Ended], more: Ended) -> tuple[Ended, ...]:
    """Add a submission and return each once: the newest `KEPT`, newest first."""
    by_id = {one.id: one for one in known} | {more.id: more}
    return tuple(sorted(by_id.values(), key=lambda one: one.submitted_at_ms, reverse=True)[:KEPT])


def config_map(name: str, known: Sequence[Ended]) -> dict[str, Any]:
    """Return the config map to store."""
    labels = {names.MANAGED_BY: names.MANAGER, names.APPLICATION: names.resource_name(name)}
    return {
        "metadata": {"name": name_of(name), "labels": labels, "annotations": {names.APPLICATION: name}},
        "data": {_KEY: json.dumps([one.model_dump(mode="json") for one in known])},
    }
