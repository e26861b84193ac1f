"""Parts of a link that the page reads in the background: errors are shown beside the last values, and an edit of the link's
settings is followed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strait.config.links import LinksFile, parse
from strait.errors import StateError
from strait.state.link_handle import ConfiguredLink
from strait_airflow.page.watches.polled import Part, PolledWatch, Seen
from support.fixtures.waiting import eventually


def links_file(topic: str = "orders") -> LinksFile:
    clusters = {name: {"bootstrap.servers": f"{name}:1"} for name in "ab"}
    link = {"source": "a", "destination": "b", "topics": {"include": [topic]}}
    return parse({"clusters": clusters, "links": {"l": link}}, where="test")


class Source:
    """Reads the link's only topic, or fails."""

    def __init__(self) -> None:
        self.file = links_file()
        self.trouble = ""
        self.connected = 0

    @contextmanager
    def connect(self, link: ConfiguredLink) -> Iterator[Callable[[], str]]:
        self.connected += 1

        def read() -> str:
            if self.trouble:
                raise StateError(self.trouble)
            return link.settings.topics.include[0]

        yield read


def watched(source: Source) -> PolledWatch[str]:
    watch = PolledWatch(Part(source.connect, "nothing", 0.01), lambda: source.file, "l")
    watch.start()
    return watch


def newest(watch: PolledWatch[str], wanted: tuple[str, str]) -> Seen[str]:
    def look() -> Seen[str] | None:
        seen = watch.newest
        return seen if seen is not None and (seen.found, seen.error) == wanted else None

    found = eventually(look, what=f"{wanted} is shown")
    assert found is not None
    return found


def test_what_was_read_stays_beside_an_error_and_an_edit_is_followed() -> None:
    source = Source()
    watch = watched(source)
    try:
        assert newest(watch, ("orders", "")).every_seconds == 0.01
        assert source.connected == 1, "one connection serves many reads"
        source.file = links_file("payments")
        newest(watch, ("payments", ""))
        assert source.connected == 2
        source.trouble = "cluster b: gone"
        before = newest(watch, ("payments", "cluster b: gone"))
        assert before.at == newest(watch, ("payments", "cluster b: gone")).at, "its age is that of the last read"
    finally:
        watch.stop()
    assert watch.ended(30)


def test_without_any_read_the_error_comes_with_nothing() -> None:
    source = Source()
    source.trouble = "cluster b: gone"
    watch = watched(source)
    try:
        assert newest(watch, ("nothing", "cluster b: gone")).every_seconds == 0.01
    finally:
        watch.stop()
    assert watch.ended(30)
