"""How fluid is the page with many links and partitions? Opens its views in Chromium, over made-up links: the page's own
views, scripts and styles, without an Airflow around them and without clusters.

    python benchmarks/page_in_browser.py [--links 100] [--partitions 10000] [--rounds 5] [--no-record]

For each view: milliseconds from the navigation, with an empty cache, until its rows are drawn; the longest time in which
the browser's thread was busy while the page drew itself anew five times; and kilobytes of the answers to one look.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import Browser, sync_playwright

from measuring import append_table
from strait.exporter.observation import Observation
from support.pictures import page as made

RESULTS = Path(__file__).with_name("results-page.md")
HEAD = ("view", "first view, ms", "slowest of the rounds", "longest task of 5 redraws, ms", "answers to a look, kB")
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=10_000, help="of one link; the others have 20 each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-record", action="store_true")
    asked = parser.parse_args()
    many = cache(lambda: links(asked.links, asked.partitions))
    made.SCENES["many"] = many
    with made.served() as (page, url), sync_playwright() as playwright:
        page.scene = "many"
        many()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        rows = [measured(browser, url, name, asked.rounds) for name in VIEWS]
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


def links(count: int, partitions: int) -> Mapping[str, Observation | None]:
    """One large link, of which every hundredth partition waits, and small ones from many clusters into two."""
    large = [made.done(f"topic-{number // PER_TOPIC:03}", number % PER_TOPIC) for number in range(partitions)]
    for number in range(0, partitions, 100):
        one = large[number]
        large[number] = made.row(one.topic, one.partition or 0, "waiting", "source_leaderless", lag_records=9)
    small = [made.done("events", number) for number in range(20)]
    found: dict[str, Observation | None] = {"large": made.seen("large", large, *(made.slot(slot=n) for n in range(20)))}
    for number in range(count - 1):
        ends = (f"store-{number:02}", f"hub-{number % 2}")
        found[f"link-{number:02}"] = made.seen(f"link-{number:02}", small, made.slot(), ends=ends, pool="main")
    return found


def measured(browser: Browser, url: str, view: str, rounds: int) -> str:
    """A row of the table."""
    address, table = VIEWS[view]
    wanted = f"[role=region][aria-label='{table}'] tbody tr" if table else "svg.chart"
    times, longest, sizes = [], 0.0, 0
    for number in range(rounds):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(f"({_MEASURE})({json.dumps(wanted)})")
        answers: list[int] = []
        page.on(
            "response",
            lambda reply, to=answers: to.append(int(reply.headers["content-length"])) if "/api/" in reply.url else None,
        )
        page.goto(f"{url}#/{address}")
        page.wait_for_function("globalThis.drawn !== null")
        times.append(page.evaluate("globalThis.drawn"))
        sizes = sum(answers)
        if number == 0:
            page.evaluate("globalThis.longest = 0")
            page.wait_for_timeout(REDRAWS_MS)
            longest = page.evaluate("globalThis.longest")
        page.close()
    task = f"{longest:.0f}" if longest else "< 50"  # the browser tells of no shorter one
    return f"| {view} | {statistics.median(times):.0f} | {max(times):.0f} | {task} | {sizes / 1000:.0f} |"


if __name__ == "__main__":
    main()
