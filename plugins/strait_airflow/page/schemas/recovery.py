"""Answers about failovers and rehearsals."""

from pydantic import Field

from strait.state.failover_records import Failover, FailoverStep
from strait_airflow.page.schemas.common import Answer, Badge, Listed, Looked


class Step(FailoverStep):
    badge: Badge


class Readiness(Answer):
    """The newest rehearsal."""

    id: str
    at_ms: int
    score: int | None = Field(description="Percentage of its steps that held.")
    steps: int
    missing: list[Step] = Field(description="Those that did not hold.")


class Audited(Answer):
    """The step `audited` of a failover, as it would be now."""

    verdict: str
    badge: Badge
    detail: str = Field(description="How many topics audits have verified, until when, and which not.")


class FailoverRow(Answer):
    id: str
    kind: str
    outcome: str
    badge: Badge
    by: str
    reason: str
    began_at_ms: int
    ended_at_ms: int | None
    groups: int | None
    groups_exact: int | None
    rpo_records: int | None
    rpo_seconds: float | None
    rto_seconds: float | None
    score: int | None
    wave_topics: list[str]
    wave_groups: list[str]


class Point(Answer):
    kind: str
    began_at_ms: int
    rto_seconds: float | None
    rpo_seconds: float | None
    score: int | None


class Recovery(Listed, Looked):
    """Failovers and rehearsals, newest first."""

    readiness: Readiness | None = Field(description="null: there was no rehearsal.")
    audited: Audited | None = Field(description="null: not known yet.")
    running: bool
    fenced: bool = Field(description="Producers are denied writing to the source.")
    newest_failover: FailoverRow | None
    trend: list[Point] = Field(description="Oldest first.")
    rows: list[FailoverRow]


class FailoverReport(Looked, Failover):
    """One failover or rehearsal: the record of the state topic, and the same for operators. While `looking`, and if the
    reports cannot be read, only the common fields are there."""

    summary: str
    screen: dict[str, list[str]] = Field(description="Subject -> lines; empty unless it is a failover that is done.")
    steps: tuple[Step, ...]  # with badges
