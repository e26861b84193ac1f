"""How fluid is the page with many links and partitions? Opens its views in Chromium, over made-up links: the page's own
views, scripts and styles, without an Airflow around them and without clusters.

    python benchmarks/page_in_browser.py [--links 100] [--partitions 10000] [--rounds 5] [--no-record]

For each view: milliseconds from the navigation, with an empty cache, until its rows are drawn, and of these until the page's
files had arrived and until the server's answers had; the longest time in which the browser's thread was busy while the page
drew itself anew five times; and kilobytes of the answers to one look. Links are observed anew before each navigation.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import Browser, sync_playwright

from measuring import append_table
from strait.exporter.observation import Observation
from support.pictures import page as made
from support.pictures import scenes
from support.reaper import leave_nothing

RESULTS = Path(__file__).with_name("results-page.md")
HEAD = (
    *("view", "first view, ms", "slowest of the rounds", "files there, ms", "answers there, ms"),
    *("longest task of 5 redraws, ms", "answers to a look, kB"),
)
VIEWS = {
    "all links": ("", "Links"),
    "a link": ("link/large", ""),
    "its topics": ("link/large/topics", "Topics"),
    "its partitions": ("link/large/partitions", "Partitions"),
    "a partition": ("link/large/partition/topic-007/3", "Losses"),
}
"""Name -> address, and the table that is waited for; "": the charts."""
PER_TOPIC = 25
REDRAWS_MS = 11_000
_ARRIVED = """() => {
  const ends = (part) => Math.max(0, ...performance.getEntriesByType("resource")
    .filter((one) => one.name.includes("/api/") === part && one.responseEnd <= drawn).map((one) => one.responseEnd));
  return [drawn, ends(false), ends(true)];
}"""
_MEASURE = """(wanted) => {
  Object.assign(globalThis, { longest: 0, drawn: null });
  new MutationObserver((_, all) => {
    if (!document.querySelector(wanted)) return;
    globalThis.drawn = performance.now();
    all.disconnect();
  }).observe(document, { childList: true, subtree: true });
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, one.duration);
  }).observe({ type: "longtask" });
}"""


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=10_000, help="of one link; the others have 20 each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    many = links(asked.links, asked.partitions)

    def observe() -> None:
        again = {name: replace(seen) for name, seen in many.items()}
        scenes.SCENES["many"] = scenes.Scene(lambda: again, {})

    with made.served() as (page, url), sync_playwright() as playwright:
        page.scene = "many"
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        rows = [measured(browser, url, name, asked.rounds, observe) for name in VIEWS]
        browser.close()
    size = sum(path.stat().st_size for path in made.STATIC.iterdir())
    what = (
        f"{asked.links} links, one of {asked.partitions:,} partitions; median of {asked.rounds}; files of the page: "
        f"{size / 1000:.0f} kB; load average before: {os.getloadavg()[0]:.1f}"
    )
    if asked.no_record:
        print(what, *rows, sep="\n")
    else:
        append_table(RESULTS, what, HEAD, rows)


def links(count: int, partitions: int) -> Mapping[str, Observation]:
    """One large link, of which every hundredth partition waits, and small ones from many clusters into two."""
    large = [scenes.done(f"topic-{number // PER_TOPIC:03}", number % PER_TOPIC) for number in range(partitions)]
    for number in range(0, partitions, 100):
        one = large[number]
        large[number] = scenes.row(one.topic, one.partition or 0, "waiting", "source_leaderless", lag_records=9)
    small = [scenes.done("events", number) for number in range(20)]
    found = {"large": scenes.seen("large", large, *(scenes.slot(slot=n) for n in range(20)))}
    for number in range(count - 1):
        ends = (f"store-{number:02}", f"hub-{number % 2}")
        found[f"link-{number:02}"] = scenes.seen(f"link-{number:02}", small, scenes.slot(), ends=ends, pool="main")
    return found


def measured(browser: Browser, url: str, view: str, rounds: int, observe: Callable[[], None]) -> str:
    """A row of the table.

    Args:
        observe: makes the links' observations new.
    """
    address, table = VIEWS[view]
    wanted = f"[role=region][aria-label='{table}'] tbody tr" if table else "svg.chart"
    times: list[list[float]] = []
    longest, sizes = 0.0, 0
    for number in range(rounds):
        observe()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(f"({_MEASURE})({json.dumps(wanted)})")
        answers: list[int] = []
        page.on(
            "response",
            lambda reply, to=answers: to.append(int(reply.headers["content-length"])) if "/api/" in reply.url else None,
        )
        page.goto(f"{url}#/{address}")
        page.wait_for_function("globalThis.drawn !== null")
        times.append(page.evaluate(_ARRIVED))
        sizes = sum(answers)
        if number == 0:
            page.evaluate("globalThis.longest = 0")
            page.wait_for_timeout(REDRAWS_MS)
            longest = page.evaluate("globalThis.longest")
        page.close()
    task = f"{longest:.0f}" if longest else "< 50"  # the browser tells of no shorter one
    drawn, files, answers = (statistics.median(each) for each in zip(*times, strict=True))
    slowest = max(one[0] for one in times)
    return f"| {view} | {drawn:.0f} | {slowest:.0f} | {files:.0f} | {answers:.0f} | {task} | {sizes / 1000:.0f} |"


if __name__ == "__main__":
    main()
