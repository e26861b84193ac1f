"""``python -m endurance.reports_read LINKS_FILE LINK page|failover``: read what a link's slots have reported within a day,
as the page does for its charts, or as a failover does that looks for the last words of a slot that is gone. Prints how
much was found."""

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))

from strait.config.links import load_link
from strait.control.failover.observation import Observation
from strait.state.link_handle import ConfiguredLink
from strait_airflow.page.watches.history import HistoryWatch
from support.fixtures.waiting import eventually

_PATIENCE_SECONDS = 800.0


def _page(file: Path, link: str) -> int:
    watch = HistoryWatch(partial(load_link, file, link), link, lambda: None, {})
    watch.start()
    seen = eventually(
        lambda: watch.newest if watch.newest is not None and watch.newest.whole else None,
        what="all of the past",
        within_seconds=_PATIENCE_SECONDS,
    )
    if seen.error:
        sys.exit(seen.error)
    return len(seen.samples)


def _failover(file: Path, link: str) -> int:
    words, _ = Observation(ConfiguredLink.load(file, link)).last_words()
    return sum(word.known for word in words.values())


if __name__ == "__main__":
    found = {"page": _page, "failover": _failover}[sys.argv[3]](Path(sys.argv[1]), sys.argv[2])
    sys.stdout.write(f"{found}\n")
