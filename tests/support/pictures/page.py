"""Pictures of the page: `make pictures`, `make pictures ARGS=DIRECTORY`.

Without a directory, the pictures of the documentation are written. With one, every view is, in each scene (busy, empty,
outage), light, dark and on a phone: to be looked at after a change. The figures are made up; views, scripts and styles are
the page's own, without Airflow around them. Needs Chromium.
"""

import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import sin
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse
from playwright.sync_api import Browser, sync_playwright

from strait.config.home import project_root
from strait.embedded.ports import free_ports
from strait.exporter.observation import Observation
from strait.planning.consumer_groups import GroupOffset, GroupOnCluster, GroupStatus, OffsetState
from strait.planning.history.sample import Sample
from strait.planning.status.needs import Circumstances, needs_of
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.state.failover_records import Failover, FailoverStep, FailoverTopic
from strait.state.group_sync_records import GroupSyncReport
from strait.state.quarantine_log import Entry
from strait.state.schema import Loss, LossAcknowledgement, Plan
from strait_airflow.page.views.details import (
    applications_view,
    link_details,
    partition_details,
    partition_runs,
    quarantine_page,
)
from strait_airflow.page.views.events import Event
from strait_airflow.page.views.groups import Sync, groups_page
from strait_airflow.page.views.links import LinksQuestion, Now, Question, link_row, links_page, partition_page
from strait_airflow.page.views.map import map_of
from strait_airflow.page.views.recovery import recovery_page, report
from strait_airflow.page.views.topics import topic_page
from strait_airflow.page.watches.polled import Seen

STATIC = Path(project_root(), "plugins/strait_airflow/page/static")
IMAGES = Path(project_root(), "docs/images")
NOW_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000
Links = Mapping[str, Observation | None]

VIEWS = {
    "links": "",
    "link": "link/shop",
    "topics": "link/shop/topics",
    "partitions": "link/shop/partitions",
    "applications": "link/shop/applications",
    "plan": "link/shop/plan",
    "partition": "link/shop/partition/payments/0",
    "groups": "link/shop/groups",
    "recovery": "link/shop/recovery",
    "report": "link/shop/recovery/moved",
    "nothing": "link/nothing",
}
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 400), "phone-dark": ("dark", 400)}
DOCUMENTED = {
    "page-links": ("busy", "links", "light", 760),
    "page-link": ("busy", "link", "light", 1060),
    "page-phone": ("busy", "links", "phone", 800),
}
"""Picture of the documentation -> its scene, view, look and height."""


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
    status = Status(link, "default", 12, facts.pop("stopped", False), slots, tuple(rows))
    plan = Plan(
        link=link, group="default", version=12, producer_id=1, slots=1, topics=(), waiting=(), published_at_ms=NOW_MS
    )
    at = time.monotonic() - age
    found = Observation(link, source, destination, at, plans={"default": plan}, statuses=(status,))
    return replace(found, needs=needs_of([status], Circumstances()), **facts)


def groups_report(age_ms: int, in_sync: int) -> GroupSyncReport:
    given = {"link": "shop", "application": "app", "seconds": 0.1, "interval_seconds": 3, "groups": 9}
    return GroupSyncReport(at_ms=_now().ms - age_ms, in_sync=in_sync, offsets={}, committed=0, rereads=4, **given)


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
        "shop": seen("shop", shop, slot(), group_sync=groups_report(1_000, 8), **LOST, quarantined={"payments": 2}),
        "audit": seen("audit", [leaderless, *calm], slot()),
        "backup": seen("backup", [row("events", 0, "waiting", "link_stopped")], slot(silent=True), stopped=True),
        "new": None,
    }
    return found | {
        f"tenant-{n:02}": seen(f"tenant-{n:02}", calm, slot(), ends=(f"dc{n % 4}", "hub"), pool="main")
        for n in range(33)
    }


def outage() -> Links:
    silent = slot(silent=True, age_ms=600_000)
    never = slot(silent=True, age_ms=None, slot=1)
    rows = [
        row("orders", number, "waiting", "slot_silent", detail=silent.silence, position=5 * 10**6)
        for number in range(9)
    ]
    rows[0] = replace(rows[0], seconds_to_loss=5_400.0)
    rows += [row("payments", number, "waiting", "slot_silent", detail=never.silence) for number in range(2)]
    error = "cluster us-east: reading strait.broken.reports: brokers do not respond"
    return {
        "shop": seen("shop", rows, silent, never, group_sync=groups_report(208_000, 0)),
        "broken": seen("broken", [done("events", 0)], slot(), age=254, error=error),
        "away": Observation(
            "away", "eu-west", "nowhere", time.monotonic(), error="cluster nowhere: connecting: refused"
        ),
    }


SCENES: dict[str, Any] = {"busy": busy, "empty": dict, "outage": outage}


def group(name: str, state: OffsetState, *, selected: bool = True) -> GroupStatus:
    offsets = tuple(GroupOffset("orders", n, 1_000, "orders", 900, "exact", 890, state, 10) for n in range(3))
    return GroupStatus(
        name,
        GroupOnCluster("classic", "Stable", "consumer"),
        GroupOnCluster("classic", "Empty", ""),
        offsets,
        selected=selected,
    )


GROUPS = Seen(
    (
        group("billing", OffsetState.AHEAD_OF_COPY),
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


def history() -> list[Sample]:
    return [
        Sample(
            NOW_MS - (144 - step) * HOUR_MS // 6,
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


class Made:
    """The page's interface over a scene. ``scene`` may be changed."""

    def __init__(self) -> None:
        self.scene = "busy"
        self.app = FastAPI()
        api = "/strait/api/v1"
        one = f"{api}/links/{{link}}"
        for path, answer in {
            f"{api}/airflow": lambda: {"components": []},
            f"{api}/history": lambda: {"links": {name: self._rates() for name in self._links()}},
            f"{api}/links": self._all,
            f"{api}/map": lambda: map_of(self._rows()),
            one: self._link,
            f"{one}/partitions": lambda link: partition_page(self._one(link), Question(sort="state")),
            f"{one}/by_topic": lambda link: topic_page(self._one(link), search="", offset=0, limit=20),
            f"{one}/partition": self._partition,
            f"{one}/runs": lambda link, topic, partition: partition_runs(Seen({}), topic, int(partition)),
            f"{one}/history": lambda link: self._history(),
            f"{one}/applications": lambda link: applications_view(fresh(APPLICATIONS), self._one(link), logs=True),
            f"{one}/groups": self._groups,
            f"{one}/recovery": lambda link: recovery_page(fresh(FAILOVERS), offset=0, limit=20),
            f"{one}/quarantine": lambda link: quarantine_page(fresh(QUARANTINED), search="", offset=0, limit=20),
            f"{one}/failover": lambda link, id: report(fresh(FAILOVERS), id),
            "/strait/": lambda: FileResponse(STATIC / "index.html"),
            "/strait/{name}": lambda name: FileResponse(STATIC / name),
        }.items():
            self.app.get(path)(answer)

    def _links(self) -> Links:
        found: Links = SCENES[self.scene]()
        return found

    def _one(self, link: str) -> Observation | None:
        if link not in self._links():
            raise HTTPException(404, f"link {link}: there is none that you may see; ask for read access to its DAG")
        return self._links()[link]

    def _rates(self) -> list[list[float | None]]:
        return [[one.at_ms, one.records_per_second] for one in history()[-36:]]

    def _history(self) -> dict[str, Any]:
        known = {"now_ms": _now().ms, "events": events()}
        return known | {"looking": False, "error": "", "samples": [one._asdict() for one in history()]}

    def _rows(self) -> list[dict[str, Any]]:
        return [link_row(name, found, _now()) for name, found in self._links().items()]

    def _all(self, limit: int = 50) -> Any:
        return links_page(self._rows(), LinksQuestion(limit=limit))

    def _link(self, link: str) -> Any:
        changes = {"pause": "strait-pause", "restart": f"strait_{link}", "quarantine": "strait-quarantine"}
        dags = changes | {"failover": "strait-failover"}
        may = dict.fromkeys((*dags, "edit"), True)
        asked = {"dags": dags, "may": may, "variable": f"strait_topics_{link}", "own_dags": [f"strait_{link}"]}
        return link_details(link, self._one(link), _now()) | asked

    def _partition(self, link: str, topic: str, partition: int) -> Any:
        return partition_details(self._one(link), topic, partition)

    def _groups(self, link: str) -> Any:
        found = self._one(link)
        sync = Sync(wanted=True, report=None if found is None else found.group_sync, now_ms=_now().ms)
        return groups_page(fresh(GROUPS), sync, search="", state="", offset=0, limit=20)


def fresh(made: Any) -> Any:
    """What was just looked at."""
    return replace(made, at=time.monotonic())


def _now() -> Now:
    return Now(time.monotonic(), time.time_ns() // 1_000_000)


@contextmanager
def served() -> Iterator[tuple[Made, str]]:
    """The page, and its address."""
    made, (port,) = Made(), free_ports(1)
    server = uvicorn.Server(uvicorn.Config(made.app, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield made, f"http://127.0.0.1:{port}/strait/"
    finally:
        server.should_exit = True
        thread.join()


def picture(browser: Browser, url: str, look: str, path: Path, height: int = 0) -> None:
    """``height`` 0: all of it."""
    scheme, width = LOOKS[look]
    page = browser.new_page(viewport={"width": width, "height": height or 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(url)
    page.wait_for_function("document.querySelector('main').children.length > 0")
    page.screenshot(path=path, full_page=not height)
    page.close()


def main(arguments: list[str]) -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("there is no chromium (Debian: apt-get install chromium)")
    with served() as (made, url), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if not arguments:
            for name, (scene, view, look, height) in DOCUMENTED.items():
                made.scene = scene
                picture(browser, f"{url}#/{VIEWS[view]}", look, IMAGES / f"{name}.png", height)
        for directory in map(Path, arguments):
            directory.mkdir(parents=True, exist_ok=True)
            for made.scene in SCENES:
                for view, address in VIEWS.items():
                    for look in LOOKS:
                        picture(browser, f"{url}#/{address}", look, directory / f"{made.scene}-{view}-{look}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
