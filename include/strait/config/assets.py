"""The block of a link for the assets of Airflow that get an event for each hour of a topic. Only Airflow uses it."""

from datetime import datetime

from pydantic import Field, field_validator

from strait.config.settings import Settings, TopicName


class Assets(Settings):
    """Assets of Airflow, `strait://LINK/TOPIC`, that get an event for each hour of a topic once it is replicated."""

    hourly: tuple[TopicName, ...] = Field((), max_length=500, description="Source topics. Each has an asset.")
    lateness_seconds: int = Field(
        60,
        ge=0,
        le=86400,
        description="How much later than its timestamp a record may reach the source, in seconds. Later ones belong to the hour in "
        "which they arrive.",
    )
    since: datetime | None = Field(
        None,
        description="Start of the first hour that gets an event, such as `2026-11-01T00:00Z`. Default: the hour in which the topic "
        "is added here.",
    )

    @field_validator("hourly")
    @classmethod
    def _each_once(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(topics)) != len(topics):
            raise ValueError("a topic is listed twice")
        return topics

    @field_validator("since")
    @classmethod
    def _has_a_zone(cls, since: datetime | None) -> datetime | None:
        if since is not None and since.tzinfo is None:
            raise ValueError("needs a time zone, such as `2026-11-01T00:00Z`")
        return since
