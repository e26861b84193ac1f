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
    standby: bool = Field(
        False,
        description="Run a second application of the pool, which takes over within seconds whichever slots stop reporting. It "
        "needs as many cores and as much memory.",
    )
    default: bool = Field(
        False,
        description="Run the links without a `pool` key, too, except those with another `spark` block or a `standby` of their "
        "own. One pool of the file may be the default.",
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


def pool_named(link: Any, pools: Any) -> str | None:
    """Return the pool of a link, by its content and that of `pools` in a links file, valid or not; None: each of
    its task groups has a separate application."""
    if not isinstance(link, dict):
        return None
    if "pool" in link:
        return link["pool"] if isinstance(link["pool"], str) else None
    for name, pool in _each(pools):
        if pool.get("default") is True:
            return None if why_separate(link, pool) else name
    return None


def why_separate(link: Mapping[str, Any], pool: Mapping[str, Any]) -> str:
    """Return why the default pool does not run a link, by the content of both in a links file; "" if it does."""
    if "pool" in link:
        return "it has a `pool` key"
    if "spark" in link and link["spark"] != pool.get("spark"):
        return "it has another `spark` block"
    if any(group.get("standby") for _, group in _each(link.get("groups"))):
        return "a task group has a `standby`"
    return ""


def with_pools(given: Any) -> Any:
    """Return the content of a links file in which each link of a pool names it and has the pool's `spark` block."""
    pools, links = (given.get(key) if isinstance(given, dict) else None for key in ("pools", "links"))
    if not isinstance(pools, dict) or not isinstance(links, dict):
        return given

    def completed(link: Any) -> Any:
        name = pool_named(link, pools)
        if name is None:
            return link
        pool = pools.get(name)
        return {"pool": name} | ({"spark": pool["spark"]} if isinstance(pool, dict) and "spark" in pool else {}) | link

    return given | {"links": {name: completed(link) for name, link in links.items()}}


def _each(blocks: Any) -> list[tuple[str, dict[str, Any]]]:
    found = blocks.items() if isinstance(blocks, dict) else ()
    return [(str(name), block) for name, block in found if isinstance(block, dict)]


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
                yield f"links.{name}.groups.{group}.standby: `standby` of the pool applies to all of its links; leave it out"
    defaults = [name for name, pool in pools.items() if pool.default]
    for name in defaults[1:]:
        yield f"pools.{name}.default: pool {defaults[0]} is the default already"
    for name in pools:
        for link, settings in links.items():
            if link == "pool" and name in settings.groups:
                yield f"pools.{name}: link pool has an application of the same name; rename the pool"
