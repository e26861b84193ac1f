"""Response of the page about which clusters the links connect. Pure."""

from collections import defaultdict
from collections.abc import Sequence

from strait.planning.status.status import known_total
from strait.planning.status.words import Level
from strait_airflow.page.views.answers import Data

_NAMED = 10
_URGENCY = [str(level) for level in Level]


def map_of(rows: Sequence[Data]) -> Data:
    """Return the edges between clusters and the pools of these links, as `link_row` returns them:
    see `schemas.links.ClusterMap`."""
    edges: dict[tuple[str, str], list[Data]] = defaultdict(list)
    pools: dict[str, list[Data]] = defaultdict(list)
    for row in rows:
        if row.get("source"):
            edges[row["source"], row["destination"]].append(row)
        if row.get("pool"):
            pools[row["pool"]].append(row)
    return {
        "edges": [_edge(*ends, some) for ends, some in sorted(edges.items())],
        "pools": [
            {"name": name, "links": len(some), "badge": _most_urgent(some)} for name, some in sorted(pools.items())
        ],
        "unknown": len(rows) - sum(map(len, edges.values())),
    }


def _edge(source: str, destination: str, rows: Sequence[Data]) -> Data:
    rates = [None if row["error"] else row["records_per_second"] for row in rows]  # after an error it is an old one
    lags = [row["lag_seconds"] for row in rows if row["lag_seconds"] is not None]
    losses = [row["seconds_to_loss"] for row in rows if row["seconds_to_loss"] is not None]
    return {
        "source": source,
        "destination": destination,
        "links": len(rows),
        "names": sorted(row["link"] for row in rows)[:_NAMED],
        "badge": _most_urgent(rows),
        "records_per_second": known_total(rates),
        "rate_unknown": sum(rate is None for rate in rates),
        "lag_seconds": max(lags, default=None),
        "seconds_to_loss": min(losses, default=None),
        "pools": sorted({row["pool"] for row in rows if row["pool"]}),
        "pooled": sum(bool(row["pool"]) for row in rows),
    }


def _most_urgent(rows: Sequence[Data]) -> Data:
    found: Data = max((row["badge"] for row in rows), key=lambda badge: _URGENCY.index(badge["level"]))
    return found
