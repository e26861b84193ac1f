"""An audit as an operator requests it: its topics, its method, its limits."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

NICENESS = 10
"""Priority of an audit's processes for CPU: while a link's slot or a broker of the same host needs it, an audit waits."""

Relation = Literal["map", "offset", "order", "ledger"]
"""How records of both sides are paired.

map: by the link's offset map. offset: by equal offsets, as Cluster Linking and KIP-1279 keep them. order: by their order
alone, for MirrorMaker 2 and Replicator. ledger: not at all; the destination is checked by the digests in the replication
ledger.
"""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AuditRequest(_Model):
    """Which records an audit compares, and how."""

    relation: Relation = "map"
    topics: tuple[str, ...] = Field((), description="Source topics; none: all of the link.")
    strong: bool = Field(False, description="Compare by SHA-256, too.")
    replicas: bool = Field(False, description="Check the followers of each partition, too.")
    sample: float = Field(1.0, gt=0, le=1, description="Share of the chunks that is compared.")
    seed: str = Field("1", max_length=100, description="Determines which chunks are in a sample.")
    since_ms: int | None = None
    until_ms: int | None = None
    bytes_per_second: int = Field(0, ge=0, description="Limit for reading each cluster; 0: none.")
    chunk_bytes: int = Field(64 << 20, ge=1)


class AuditJob(_Model):
    """An audit that a Spark application runs instead of replicating a task group."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")
    directory: str = Field(description="Directory or Hadoop URI that the results are written to, below the audit's ID.")
    request: AuditRequest
    ledger: str = Field("", description="Directory or Hadoop URI of the replication ledger.")
    copies: Mapping[str, str] = Field(
        default_factory=dict, description="Source topic -> its name on the destination, for copies that no link made."
    )
