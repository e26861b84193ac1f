"""How far an audit is: a small JSON file that its application replaces every few seconds. Pure."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class AuditProgress(BaseModel):
    """State of an audit.

    Attributes:
        chunks: number to compare; ``done``: compared so far; ``failed``: of these, without a result.
        bytes: read from both clusters so far, by all attempts.
        unexplained: differences so far that nothing on record explains.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    state: Literal["planning", "comparing", "done", "stopped"]
    chunks: int = Field(0, ge=0)
    done: int = Field(0, ge=0)
    failed: int = Field(0, ge=0)
    records: int = Field(0, ge=0)
    bytes: int = Field(0, ge=0)
    unexplained: int = Field(0, ge=0)
    began_at_ms: int = Field(0, ge=0)
    at_ms: int = Field(0, ge=0)

    @property
    def share(self) -> float:
        return self.done / self.chunks if self.chunks else 0.0

    def seconds_left(self) -> float | None:
        """Return the expected time to the end, by the rate so far; None: unknown."""
        seconds = (self.at_ms - self.began_at_ms) / 1000
        if not self.done or seconds <= 0:
            return None
        return seconds / self.done * (self.chunks - self.done)

    def bytes_per_second(self) -> float | None:
        seconds = (self.at_ms - self.began_at_ms) / 1000
        return self.bytes / seconds if seconds > 0 else None


def read_progress(data: bytes) -> AuditProgress | None:
    """Return the progress in a file; None if it cannot be read."""
    try:
        return AuditProgress.model_validate_json(data)
    except ValidationError:
        return None
