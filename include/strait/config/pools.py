"""The `pools:` block: Spark applications that several links share."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from strait.config.groups import MOST_SLOTS
from strait.config.settings import Settings
from strait.config.spark import Spark
from strait.config.validation import did_you_mean


class Pool(Settings):
    """One Spark application for all links that name the pool. Each of its slots is a Spark task, and hosts slots of any of
    these links."""

    slots: int | Literal["auto"] = Field(
        "auto",
        description="Number of Spark tasks; each needs one core. `auto`: from 1 to `max_slots`, by the measured load.",
        json_schema_extra={"x-shown": f"integer, 1 to {MOST_SLOTS}, or `auto`"},
    )
    max_slots: int = Field(2, ge=1, le=MOST_SLOTS, description="Maximum number of Spark tasks with `slots: auto`.")
    slot_bytes_per_second: int = Field(
        50_000_000,
        ge=1,
        description="Throughput up to which one Spark task hosts several slots. More tasks are used, and slots are moved, "
        "above it.",
    )
    slot_memory_mib: int = Field(
        256,
        ge=16,
        le=65536,
        description="Maximum memory for fetched batches per Spark task, in MiB. It replaces the `slot_memory_mib` of the links.",
    )
    spark: Spark = Field(
        default_factory=Spark, description="Settings of the Spark application. Links of the pool have no `spark` block."
    )

    @property
    def most_slots(self) -> int:
        """Return the maximum number of Spark tasks."""
        return self.max_slots if self.slots == "auto" else self.slots

    @model_validator(mode="after")
    def _slots_in_bounds(self) -> "Pool":
        if self.slots != "auto" and not 1 <= self.slots <= MOST_SLOTS:
            raise ValueError(f"slots: {self.slots} is not between 1 and {MOST_SLOTS}")
        return self


def with_spark_of_pools(given: Any) -> Any:
    """Return the content of a links file in which each link of a pool has the pool's `spark` block."""
    pools, links = (given.get(key) if isinstance(given, dict) else None for key in ("pools", "links"))
    if not isinstance(pools, dict) or not isinstance(links, dict):
        return given

    def completed(link: Any) -> Any:
        pool = pools.get(link["pool"]) if isinstance(link, dict) and isinstance(link.get("pool"), str) else None
        return link if not isinstance(pool, dict) or "spark" not in pool else {"spark": pool["spark"]} | link

    return given | {"links": {name: completed(link) for name, link in links.items()}}


def pool_problems(links: Mapping[str, Any], pools: Mapping[str, Pool]) -> Iterator[str]:
    """Yield a line for each link that cannot run in the pool that it names. ``links``: name -> `Link`."""
    for name, link in links.items():
        if link.pool is None:
            continue
        if link.pool not in pools:
            yield f"links.{name}.pool: `pools` has no pool {link.pool!r}{did_you_mean(link.pool, pools)}"
        elif link.spark != pools[link.pool].spark:
            yield f"links.{name}.spark: the pool's `spark` applies to all of its links; leave it out"
        for group, settings in link.groups.items():
            if settings.standby:
                yield f"links.{name}.groups.{group}.standby: a pool has no standby; leave out `pool` or `standby`"
    for name in pools:
        for link, settings in links.items():
            if link == "pool" and name in settings.groups:
                yield f"pools.{name}: link pool has an application of the same name; rename the pool"
