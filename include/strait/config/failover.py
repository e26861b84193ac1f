"""The block of a link for additional actions when its clients move."""

import shlex
from typing import Annotated, Literal

from pydantic import Field, model_validator

from strait.config.settings import Settings

HookStep = Literal["fence", "stop", "verify", "take_back"]
When = Literal["before", "after"]


class Hook(Settings):
    """A command or DAG run before or after a step of a failover: to switch a gateway, DNS or a service registry."""

    before: HookStep | None = Field(None, description="Step that it runs before.")
    after: HookStep | None = Field(None, description="Step that it runs after.")
    command: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        (), description="Program and arguments, run on the host that runs the failover, without a shell."
    )
    dag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,250}$")] | None = Field(
        None, description="Airflow DAG to run instead; requires a failover that Airflow runs."
    )
    timeout_seconds: int = Field(60, ge=1, le=3600, description="Time after which it has failed, in seconds.")

    @model_validator(mode="after")
    def _one_place_and_one_thing(self) -> "Hook":
        if (self.before is None) == (self.after is None):
            raise ValueError("needs either `before` or `after`")
        if bool(self.command) == (self.dag is not None):
            raise ValueError("needs either `command` or `dag`")
        return self

    def runs(self, when: When, step: str) -> bool:
        """Return whether the hook runs at this point: before or after (``when``) the step."""
        return (self.before if when == "before" else self.after) == step

    def __str__(self) -> str:
        return f"DAG {self.dag}" if self.dag else shlex.join(self.command)


class Failover(Settings):
    """Additional actions in a failover of the link."""

    hooks: tuple[Hook, ...] = Field(
        (), description="Commands or DAGs run before or after steps of a failover, in this order."
    )
