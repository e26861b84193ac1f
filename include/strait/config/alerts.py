"""The block of a link for Airflow's notifications about its DAGs. Only Airflow uses it."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, JsonValue, model_validator

from strait.config.settings import Settings


class Notifier(Settings):
    """One of Airflow's notifiers, which sends mail, a chat message or a page."""

    notifier: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")] = Field(
        description="Import path of the notifier's class, such as `airflow.providers.smtp.notifications.smtp.SmtpNotifier`."
    )
    arguments: Mapping[str, JsonValue] = Field(
        default_factory=dict,
        description="Its arguments. Texts may be Jinja templates. Put credentials into an Airflow Connection and its ID here.",
        json_schema_extra={"x-shown": "argument -> any JSON value"},
    )


class Alerts(Settings):
    """Notifications about the link's DAGs, sent by Airflow."""

    on_failure: tuple[Notifier, ...] = Field(
        (),
        description="Notifiers for an incident: a run that failed because the link needs an operator, once per incident, "
        "and a request for approval.",
    )
    deadline_seconds: int | None = Field(
        None, ge=60, le=86400, description="Time within which a run ends, in seconds. Default: no deadline."
    )
    on_deadline: tuple[Notifier, ...] = Field(
        (), description="Notifiers for a run that misses the deadline. They need an `async_notify` method."
    )

    @model_validator(mode="after")
    def _deadline_has_notifiers(self) -> "Alerts":
        if (self.deadline_seconds is None) != (not self.on_deadline):
            raise ValueError("`deadline_seconds` and `on_deadline` need each other")
        return self
