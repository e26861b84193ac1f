"""How far an audit is: a small JSON file that its application replaces every few seconds. Pure."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class AuditProgress(BaseModel):
    """State of an audit.

    Attributes:
        chunks: number to compare; ``done``: compared so far, of which earlier starts of the audit have compared ``earlier``;
            ``failed``: could not be compared, and are tried again.
        bytes: read from both clusters for the compared chunks until ``read_at_ms``, ``earlier_bytes`` by earlier starts. The
            bytes of some chunks arrive together, so the rate is that until then.
        unexplained: differences so far that nothing on record explains.
        problem: the cause of a wait, or of a chunk that could not be compared; empty: there is none.
        began_at_ms: the time at which this start of the audit began to compare.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    state: Literal["starting", "running", "planning", "comparing", "done", "stopped"]
    chunks: int = Field(0, ge=0)
    done: int = Field(0, ge=0)
    earlier: int = Field(0, ge=0)
    failed: int = Field(0, ge=0)
    records: int = Field(0, ge=0)
    bytes: int = Field(0, ge=0)
    earlier_bytes: int = Field(0, ge=0)
    read_at_ms: int = Field(0, ge=0)
    unexplained: int = Field(0, ge=0)
    problem: str = ""
    began_at_ms: int = Field(0, ge=0)
    at_ms: int = Field(0, ge=0)

    @property
    def share(self) -> float:
        return self.done / self.chunks if self.chunks else 0.0

    def seconds_left(self) -> float | None:
        """Return the expected time to the end, by the rate since this start; None: unknown."""
        seconds, compared = (self.at_ms - self.began_at_ms) / 1000, self.done - self.earlier
        if compared <= 0 or seconds <= 0:
            return None
        return seconds / compared * max(0, self.chunks - self.done)

    def bytes_per_second(self) -> float | None:
        """Return the rate since this start; None: unknown, since it has compared nothing yet."""
        seconds, read = (self.read_at_ms - self.began_at_ms) / 1000, self.bytes - self.earlier_bytes
        return read / seconds if seconds > 0 and read > 0 else None


def read_progress(data: bytes) -> AuditProgress | None:
    """Return the progress in a file; None if it cannot be read."""
    try:
        return AuditProgress.model_validate_json(data)
    except ValidationError:
        return None
