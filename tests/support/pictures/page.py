"""Pictures of the page: `make pictures`, `make pictures ARGS=DIRECTORY`.

Without a directory, the pictures of the documentation are written. With one, every view is, in each scene (busy, empty,
outage and others), light, dark and on a phone: to be looked at after a change. The figures are made up; views, scripts and
styles are the page's own, without Airflow around them. Needs Chromium.
"""

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, Response
from playwright.sync_api import Browser, sync_playwright

from strait.config.home import project_root
from strait.embedded.ports import free_ports
from strait.exporter.observation import Observation
from strait_airflow.page.bundle import bundled
from strait_airflow.page.views.details import (
    applications_view,
    link_details,
    partition_details,
    partition_runs,
    quarantine_page,
)
from strait_airflow.page.views.groups import Sync, group_details, groups_page
from strait_airflow.page.views.links import LinksQuestion, Now, Question, link_row, links_page, partition_page
from strait_airflow.page.views.map import map_of
from strait_airflow.page.views.recovery import recovery_page, report
from strait_airflow.page.views.topics import topic_page
from strait_airflow.page.watches.polled import Seen
from support.pictures.scenes import SCENES, Links, Scene, events

STATIC = Path(project_root(), "plugins/strait_airflow/page/static")
SCRIPT = bundled("page.js", {path.name: path.read_text(encoding="utf-8") for path in STATIC.glob("*.js")})
IMAGES = Path(project_root(), "docs/images")
OLD_SECONDS = 254

LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 400), "phone-dark": ("dark", 400)}
DOCUMENTED = {
    "page-links": ("busy", "links", "light", 760),
    "page-link": ("busy", "link", "light", 1060),
    "page-phone": ("busy", "links", "phone", 800),
}
"""Picture of the documentation -> its scene, view, look and height."""


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
            f"{one}/runs": lambda link, topic, partition: partition_runs(self._read(Seen({})), topic, int(partition)),
            f"{one}/history": lambda link: self._history(),
            f"{one}/applications": self._applications,
            f"{one}/groups": self._groups,
            f"{one}/group": self._group,
            f"{one}/recovery": lambda link: recovery_page(self._read(self._made.failovers), offset=0, limit=20),
            f"{one}/quarantine": self._quarantine,
            f"{one}/failover": lambda link, id: report(self._read(self._made.failovers), id),
            "/strait/": lambda: FileResponse(STATIC / "index.html"),
            "/strait/page.js": lambda: Response(SCRIPT, media_type="text/javascript"),
            "/strait/{name}": lambda name: FileResponse(STATIC / name),
        }.items():
            self.app.get(path)(answer)

    @property
    def _made(self) -> Scene:
        return SCENES[self.scene]

    def _links(self) -> Links:
        return self._made.links()

    def _one(self, link: str) -> Observation | None:
        if link not in self._links():
            raise HTTPException(404, f"link {link}: there is none that you may see; ask for read access to its DAG")
        return self._links()[link]

    def _read(self, made: Any) -> Any:
        """What was just read, or could not be read any more."""
        if made is None:
            return None
        age = OLD_SECONDS if self._made.trouble else 0
        return replace(made, at=time.monotonic() - age, error=self._made.trouble, every_seconds=5.0)

    def _rates(self) -> list[list[float | None]]:
        return [[one.at_ms, one.records_per_second] for one in self._made.samples[-36:]]

    def _history(self) -> dict[str, Any]:
        samples = [one._asdict() for one in self._made.samples]
        looking = self._made.applications is None
        return {
            "now_ms": _now().ms,
            "events": events() if samples else [],
            "looking": looking,
            "error": "",
            "samples": samples,
        }

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
        return partition_details(self._one(link), topic, partition) or self._missing(f"partition {topic}-{partition}")

    def _missing(self, what: str) -> Any:
        raise HTTPException(404, f"there is no {what}")

    def _applications(self, link: str) -> Any:
        return applications_view(self._read(self._made.applications), self._one(link), logs=True)

    def _quarantine(self, link: str) -> Any:
        return quarantine_page(self._read(self._made.quarantine), search="", offset=0, limit=20)

    def _sync(self, link: str) -> Sync:
        found = self._one(link)
        if found is None or not found.plans:
            return Sync(None, None, _now().ms)
        return Sync(wanted=True, report=found.group_sync, now_ms=_now().ms)

    def _groups(self, link: str) -> Any:
        return groups_page(self._read(self._made.groups), self._sync(link), search="", state="", offset=0, limit=20)

    def _group(self, link: str, group: str) -> Any:
        found = group_details(self._read(self._made.groups), self._sync(link), group, offset=0, limit=20)
        return found or self._missing(f"group {group}")


def _now() -> Now:
    return Now(time.monotonic(), time.time_ns() // 1_000_000)


DRAWN = "document.querySelector('main h2') || document.querySelector('main [role=alert]')"
"""Whether the view has its first answer."""


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
    page.wait_for_function(DRAWN)
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
                picture(browser, f"{url}#/{SCENES[scene].views[view]}", look, IMAGES / f"{name}.png", height)
        for directory in map(Path, arguments):
            directory.mkdir(parents=True, exist_ok=True)
            for made.scene in SCENES:
                for view, address in SCENES[made.scene].views.items():
                    for look in LOOKS:
                        picture(browser, f"{url}#/{address}", look, directory / f"{made.scene}-{view}-{look}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
