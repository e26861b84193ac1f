"""Made-up states of links, for pictures of the page and tests of it without clusters: each is a scene."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import sin
from typing import Any

from strait.exporter.observation import Observation
from strait.planning.consumer_groups import GroupOffset, GroupOnCluster, GroupStatus, OffsetState
from strait.planning.history.sample import Sample
from strait.planning.status.needs import Circumstances, needs_of
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.state.failover_records import Failover, FailoverStep, FailoverTopic
from strait.state.group_sync_records import GroupSyncReport
from strait.state.quarantine_log import Entry
from strait.state.schema import (
    Budget,
    Loss,
    LossAcknowledgement,
    Pause,
    Plan,
    PlannedGroupSync,
    PlannedSettings,
    Waiting,
)
from strait_airflow.page.views.events import Event
from strait_airflow.page.watches.polled import Seen

NOW_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000
Links = Mapping[str, Observation | None]
LONG = "t" * 249
HOSTILE = "<b>\u202egnp.exe</b> [x](http://y) `z`"


def slot(**how: Any) -> SlotStatus:
    given = {"silent": False, "age_ms": 400, "application": "app-20261126", "host": "spark-3", "pid": 412}
    speed = {"records_per_second": 18_300.0, "bytes_per_second": 9.1e6, "latency_ms_p50": 3.1, "latency_ms_p99": 22.0}
    return SlotStatus(**{"slot": 0} | given | speed | how)


def row(topic: str, partition: int, state: str = "copying", reason: str = "", **figures: Any) -> PartitionStatus:
    detail = figures.pop("detail", "")
    return PartitionStatus(topic, partition, topic, 0, state, reason, detail, **figures)


def done(topic: str, partition: int) -> PartitionStatus:
    end = 18_200_000_000 + 7 * partition
    return row(
        *(topic, partition, "caught_up"),
        position=end,
        end=end,
        lag_records=0,
        lag_seconds=0.0,
        records_per_second=610.0,
    )


def seen(link: str, rows: list[PartitionStatus], *slots: SlotStatus, age: float = 0.4, **facts: Any) -> Observation:
    source, destination = facts.pop("ends", ("eu-west", "us-east"))
    stopped = facts.pop("stopped", False)
    status = Status(link, "default", 12, stopped, slots, tuple(rows))
    plan = Plan(
        link=link,
        group="default",
        version=12,
        producer_id=1,
        slots=1,
        published_at_ms=NOW_MS - HOUR_MS,
        stopped=stopped,
    )
    plan = plan.model_copy(update=facts.pop("plan", {}))
    at = time.monotonic() - age
    found = Observation(link, source, destination, at, plans={"default": plan}, statuses=(status,))
    return replace(found, needs=needs_of([status], Circumstances()), **facts)


def groups_report(age_ms: int, in_sync: int) -> GroupSyncReport:
    given = {"link": "shop", "application": "app", "seconds": 0.1, "interval_seconds": 3, "groups": 9}
    return GroupSyncReport(
        at_ms=time.time_ns() // 1_000_000 - age_ms, in_sync=in_sync, offsets={}, committed=0, rereads=4, **given
    )


def _loss(hours: int, partition: int, from_offset: int) -> Loss:
    said: dict[str, Any] = {"side": "source", "cause": "source_truncated", "action": "continued", "detail": ""}
    place: dict[str, Any] = {"topic": "payments", "partition": partition, "at_ms": NOW_MS - hours * HOUR_MS}
    return Loss(link="shop", from_offset=from_offset, to_offset=from_offset + 12, **said, **place)


LOST: dict[str, Any] = {
    "losses": (_loss(100, 1, 7), _loss(4, 0, 40)),
    "loss_counts": {("source_truncated", "continued"): 2},
    "loss_acknowledgements": (
        LossAcknowledgement(link="shop", count=1, by="alice", at_ms=NOW_MS - 90 * HOUR_MS, reason="test data"),
        None,
    ),
}


PLANNED: dict[str, Any] = {
    "budgets": (
        Budget(bytes_per_second=50_000_000, slot_shares=()),
        Budget(topic_class="bulk", bytes_per_second=5_000_000, slot_shares=()),
    ),
    "consumer_groups": PlannedGroupSync(include=(".*",), interval_seconds=3),
    "settings": PlannedSettings(
        digest="d",
        topics_digest="t",
        origins={"topics": "Airflow Variable strait_topics_shop"},
        topics='{"include": ["orders"]}',
    ),
    "waiting": (Waiting(topic="refunds", reason="source_missing", detail="the source has no such topic"),),
    "pauses": (Pause(topic="payments", partition=1, by="alice", at_ms=NOW_MS - 2 * HOUR_MS, reason="maintenance"),),
}


def busy() -> Links:
    behind = {"lag_records": 412_345, "lag_seconds": 7_100.0, "seconds_to_catch_up": 700.0, "records_per_second": 2e3}
    shop = [
        row(
            *("payments", 0, "waiting", "batch_too_large"),
            detail="a batch of 1,398,101 bytes exceeds `max.message.bytes` of 1,048,588",
            position=77,
            end=30_520,
            lag_records=30_443,
            lag_seconds=263_000.0,
            seconds_to_loss=7_100.0,
        ),
        row(
            "payments", 1, "waiting", "paused", detail="payments-1 was paused by alice", lag_records=9, lag_seconds=61.0
        ),
        *(row("clicks", number, position=10**9, end=10**9 + 412_345, **behind) for number in range(2)),
        *(done("orders", number) for number in range(30)),
    ]
    calm = [done("events", number) for number in range(12)]
    leaderless = row("audit", 0, "waiting", "source_leaderless", detail="no leader", lag_records=9, lag_seconds=40.0)
    found: dict[str, Observation | None] = {
        "shop": seen(
            *("shop", shop, slot()),
            group_sync=groups_report(1_000, 8),
            **LOST,
            quarantined={"payments": 2},
            plan=PLANNED,
        ),
        "audit": seen("audit", [leaderless, *calm], slot()),
        "backup": seen("backup", [row("events", 0, "waiting", "link_stopped")], slot(silent=True), stopped=True),
        "new": None,
    }
    return found | {
        f"tenant-{n:02}": seen(f"tenant-{n:02}", calm, slot(), ends=(f"dc{n % 4}", "hub"), pool="main")
        for n in range(33)
    }


def outage() -> Links:
    """Of `shop` no slot reports, the destination of `broken` does not answer any more, that of `away` never did."""
    silent = slot(silent=True, age_ms=600_000)
    never = slot(silent=True, age_ms=None, slot=1)
    rows = [
        row("orders", number, "waiting", "slot_silent", detail=silent.silence, position=5 * 10**6)
        for number in range(9)
    ]
    rows[0] = replace(rows[0], seconds_to_loss=5_400.0)
    rows += [row("payments", number, "waiting", "slot_silent", detail=never.silence) for number in range(2)]
    broken = [done("events", 0), row("clicks", 0, position=7, end=100, lag_records=93, lag_seconds=9.0)]
    return {
        "shop": seen("shop", rows, silent, never, group_sync=groups_report(208_000, 0)),
        "broken": seen("broken", broken, slot(), age=254, error=NO_ANSWER, group_sync=groups_report(254_000, 9)),
        "away": Observation(
            "away", "eu-west", "nowhere", time.monotonic(), error="cluster nowhere: connecting: refused"
        ),
    }


NO_ANSWER = "cluster us-east: reading strait.broken.reports: brokers do not respond"


def without_a_plan() -> Links:
    return {"shop": Observation("shop", "eu-west", "us-east", time.monotonic()), "idle": seen("idle", [], slot())}


def first_look() -> Links:
    return {"shop": None, "audit": None}


def hostile() -> Links:
    """Names and texts as long, and as misleading, as they can be."""
    said = f"{HOSTILE} {'because ' * 40}"
    rows = [
        row(
            LONG, 0, "waiting", "batch_too_large", detail=said, lag_records=10**18, lag_seconds=1e9, seconds_to_loss=1.0
        ),
        row(HOSTILE, 1, "waiting", "paused", detail=said),
        done("x" * 249, 2),
    ]
    one = slot(host="h" * 200, application="a" * 200)
    pauses = (Pause(topic=HOSTILE, partition=1, by=HOSTILE, at_ms=NOW_MS, reason=said[:200]),)
    return {
        "shop": seen("shop", rows, one, ends=("c" * 100, HOSTILE), pool="p" * 100, plan={"pauses": pauses}, **LOST),
        HOSTILE: seen(HOSTILE, rows, one, age=300, error=said),
        "l" * 200: seen("l" * 200, rows, one, ends=("c" * 100, "d" * 100)),
    }


def connected(*pairs: str) -> Callable[[], Links]:
    """Links between clusters, each as `source destination [halted]`."""
    calm = [done("events", number) for number in range(3)]
    halted = [row("audit", 0, "waiting", "batch_too_large", detail="x", lag_records=9, seconds_to_loss=4e3)]

    def links() -> Links:
        found = {}
        for pair in pairs:
            source, destination, *how = pair.split()
            name = f"{source}-to-{destination}"
            found[name] = seen(name, halted if how else calm, slot(), ends=(source, destination))
        return found

    return links


CHAIN = connected(
    *("edge-1 region-eu", "edge-2 region-eu", "region-eu hub", "region-us hub halted"),
    *("edge-3 region-us", "hub lake", "edge-1 lake", "hub region-eu"),
)
MESH = connected(*(f"dc{one} dc{other}" for one in range(6) for other in range(6) if one != other))
STORES = connected(*(f"store-{number:02} hub{' halted' * (number == 7)}" for number in range(60)))


def group(name: str, *states: OffsetState, selected: bool = True) -> GroupStatus:
    fits = {OffsetState.AHEAD_OF_COPY: "ahead"}
    offsets = tuple(
        GroupOffset("orders", n, 1_000, "orders", 900, fits.get(state, "exact"), 890, state, 10)
        for n, state in enumerate(states)
    )
    return GroupStatus(
        name,
        GroupOnCluster("classic", "Stable", "consumer"),
        GroupOnCluster("classic", "Empty", ""),
        offsets,
        selected=selected,
    )


GROUPS = Seen(
    (
        group("billing", OffsetState.AHEAD_OF_COPY, OffsetState.BEHIND),
        group("search", OffsetState.IN_SYNC),
        group("console", OffsetState.BEHIND, selected=False),
    ),
    at_ms=NOW_MS,
)


def failover(name: str, kind: Any, **facts: Any) -> Failover:
    given = {"link": "shop", "source": "eu-west", "destination": "us-east", "by": "alice", "turn": name}
    times = {"began_at_ms": NOW_MS - 24 * HOUR_MS, "ended_at_ms": NOW_MS - 24 * HOUR_MS + 40_000, "rto_seconds": 40.0}
    return Failover(id=name, kind=kind, outcome="done", strait_version="1", **given | times | facts)


def steps(*found: tuple[str, Any, str]) -> tuple[FailoverStep, ...]:
    return tuple(
        FailoverStep(name=name, verdict=verdict, detail=detail, began_at_ms=NOW_MS, seconds=1.2)
        for name, verdict, detail in found
    )


def moved(*topics: str, **facts: Any) -> dict[str, Any]:
    short = tuple(FailoverTopic(topic=topic, partitions=3, missing=0) for topic in topics)
    return {"topics": short, "rpo_records": 0, "rpo_seconds": 0.0, "groups": 9, "groups_exact": 9} | facts


STEPS = steps(
    ("copying", "done", "35 partitions are copied, 9 records behind"),
    ("producers", "warning", "nothing was written to 35 partitions"),
    ("groups", "failed", "8 of 9 groups continue exactly where they stopped; not exactly: billing (3 behind)"),
)
FAILOVERS = Seen(
    (
        failover("rehearsed", "rehearsal", steps=STEPS, score=83),
        failover("wave", "planned", wave_topics=("orders",), **moved("orders", topics_left=2)),
        failover("moved", "planned", steps=STEPS[:2], still_paused=("orders",), **moved("payments", "clicks")),
    )
)
APPLICATIONS = Seen(
    (
        {
            "name": "strait-pool-main",
            "group": "",
            "pool": "main",
            "links": ["clicks", "shop"],
            "standby": False,
            "not_before_ms": None,
            "log_lines": ["20:31:29 slot 0: 35 partitions"],
            "submissions": [
                {"state": "running", "submitted_at_ms": NOW_MS - HOUR_MS, "cause": "", "log": "/var/strait/shop/2.log"},
                {"state": "dead", "submitted_at_ms": NOW_MS - 9 * HOUR_MS, "cause": "its host was lost", "log": ""},
            ],
        },
    )
)


QUARANTINED = Seen(
    tuple(
        Entry(
            number, "payments", 1, 500 + number, NOW_MS, "payments", "batch_refused", "its key is empty", NOW_MS, 2_300
        )
        for number in range(2)
    )
)


def history(ends_ms: int = NOW_MS) -> list[Sample]:
    return [
        Sample(
            ends_ms - (144 - step) * HOUR_MS // 6,
            *(None,) * 6
            if 60 < step < 70
            else (18_000.0 + 3_700 * sin(step / 9), 9e6 + 1e6 * sin(step / 9), step * step, step, 20.0 + step % 9, 3.0),
        )
        for step in range(144)
    ]


def events() -> list[dict[str, Any]]:
    found = [
        (20, "plan", "plan 12 of task group default published"),
        (9, "restart", "application strait-pool-main submitted"),
    ]
    found += [
        (4, "loss", "payments-0: source_truncated, offsets 40 to 52 of the source"),
        (2, "pause", "payments-1 paused by alice"),
    ]
    return [Event(NOW_MS - hours * HOUR_MS, kind, text)._asdict() for hours, kind, text in found]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Scene:
    """Links, and what the page reads apart from them: applications, consumer groups, failovers, quarantine, the past.

    Attributes:
        views: name -> address.
    """

    links: Callable[[], Links]
    views: Mapping[str, str]
    applications: Seen[Any] | None = APPLICATIONS
    groups: Seen[Any] | None = GROUPS
    failovers: Seen[Any] | None = FAILOVERS
    quarantine: Seen[Any] | None = QUARANTINED
    samples: list[Sample] = field(default_factory=history)
    trouble: str = ""


TABS = ("topics", "partitions", "groups", "recovery", "applications", "plan")


def tabs(link: str, prefix: str = "") -> dict[str, str]:
    return {f"{prefix}link": f"link/{link}", **{prefix + tab: f"link/{link}/{tab}" for tab in TABS}}


_DETAILS = {
    "partition": "link/shop/partition/payments/0",
    "group": "link/shop/groups/billing",
    "report": "link/shop/recovery/moved",
}
_ALL = {"links": "", **tabs("shop")}
_NONE: Any = Seen(())
_NOT_READ: Any = {"applications": None, "groups": None, "failovers": None, "quarantine": None, "samples": []}
SCENES: dict[str, Scene] = {
    "busy": Scene(busy, {**_ALL, **_DETAILS}),
    "empty": Scene(without_a_plan, {**_ALL, **tabs("idle", "idle-")}, _NONE, _NONE, _NONE, _NONE, []),
    "none": Scene(dict, {"links": "", "gone": "link/shop"}),
    "reading": Scene(first_look, {**_ALL, **_DETAILS}, **_NOT_READ),
    "outage": Scene(
        outage,
        {**_ALL, **_DETAILS, **tabs("broken", "broken-"), "away": "link/away", "away-topics": "link/away/topics"},
        samples=history(NOW_MS - HOUR_MS),
        trouble=NO_ANSWER,
    ),
    "hostile": Scene(hostile, {**_ALL, "partition": f"link/shop/partition/{LONG}/0"}),
    "chain": Scene(CHAIN, {"links": ""}),
    "mesh": Scene(MESH, {"links": ""}),
    "stores": Scene(STORES, {"links": ""}),
}
