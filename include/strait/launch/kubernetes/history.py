"""What is remembered of submissions whose pod is gone: a config map for each application, so that whichever host steers
next knows how often it ended and why. Pure."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from strait.launch.base import State
from strait.launch.kubernetes import names

KEPT = 5
KEPT_LOG_CHARACTERS = 4000
"""Of the end of its log, for each."""

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
        """A submission is called by it."""
        return int(self.id)


def name_of(name: str) -> str:
    """Of the config map of an application."""
    return f"{names.resource_name(name)}-history"


def parse(config_map: dict[str, Any] | None) -> tuple[Ended, ...]:
    """The newest first. What another version wrote and this one cannot read is not remembered."""
    try:
        written = json.loads((config_map or {}).get("data", {}).get(_KEY, "[]"))
        return tuple(Ended.model_validate(one) for one in written)
    except (ValueError, ValidationError):
        return ()


def together(known: Iterable[Ended], more: Ended) -> tuple[Ended, ...]:
    """With another one, each once, the newest few, the newest first."""
    by_id = {one.id: one for one in known} | {more.id: more}
    return tuple(sorted(by_id.values(), key=lambda one: one.submitted_at_ms, reverse=True)[:KEPT])


def config_map(name: str, known: Sequence[Ended]) -> dict[str, Any]:
    """What is to be stored."""
    labels = {names.MANAGED_BY: names.MANAGER, names.APPLICATION: names.resource_name(name)}
    return {
        "metadata": {"name": name_of(name), "labels": labels, "annotations": {names.APPLICATION: name}},
        "data": {_KEY: json.dumps([one.model_dump(mode="json") for one in known])},
    }
