"""The block of a link for its heartbeats."""

from pydantic import Field

from strait.config.settings import Settings, TopicName


class Heartbeats(Settings):
    """Small records in MirrorMaker 2's format, copied like any other, to distinguish an idle link from a broken one."""

    enabled: bool = Field(
        False, description="Write and copy heartbeats. Requires WRITE on the heartbeat topic of the source."
    )
    topic: TopicName = Field(
        "heartbeats", description="Name of the heartbeat topic on the source; created if it is missing."
    )
    interval_seconds: int = Field(1, ge=1, le=3600, description="Time between heartbeats, in seconds.")
    replication_factor: int | None = Field(
        None,
        ge=1,
        le=32767,
        description="Replication factor of the heartbeat topic at creation. Default: the source broker's.",
    )
