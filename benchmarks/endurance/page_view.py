"""``python -m endurance.page_view LINKS_FILE LINK``: what the page in Airflow does for a first view of a link: the watch
that its first question starts, and the answers once that has looked. Prints them as JSON, and a partition's map too."""

import json
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))

from strait.config.links import load_link
from strait.exporter.watch import LinkFollower
from strait.waiting import unix_ms
from strait_airflow.page.views.details import link_details, partition_runs
from strait_airflow.page.views.links import Now, Question, partition_page
from strait_airflow.page.watches.polled import RUNS, PolledWatch
from support.fixtures.waiting import eventually

_PATIENCE_SECONDS = 600.0


def main() -> None:
    file, link, *more = sys.argv[1:]
    load = partial(load_link, Path(file), link)
    watch = LinkFollower(load, link, interval_seconds=2.0)
    watch.start()
    eventually(lambda: watch.newest, what="a first look", within_seconds=_PATIENCE_SECONDS)
    answers = [
        link_details(link, watch.newest, Now(time.monotonic(), unix_ms())),
        partition_page(watch.newest, Question()),
    ]
    if more:
        runs = PolledWatch(RUNS, load, link)
        runs.start()
        eventually(lambda: runs.newest, what="a look at the map", within_seconds=_PATIENCE_SECONDS)
        answers.append(partition_runs(runs.newest, more[0], 0))
    failed = [answer["error"] for answer in answers if answer.get("error")]
    sys.stdout.write(json.dumps(answers))
    if failed:
        sys.exit(str(failed))


if __name__ == "__main__":
    main()
