"""Completion in a shell: links of the links file, their topics, and consumer groups of their sources.

Topics and groups are those that the source lists within a second; of a source that does not, topics are those that the links
file names. Errors are not shown: a shell would insert them into the command line.
"""

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from strait.errors import StraitError

if TYPE_CHECKING:
    from strait.state.link_handle import ConfiguredLink

DEFAULT_FILE = Path("links.yaml")
MOST_SECONDS = 1.0
"""For which a shell waits for a cluster."""
TYPED = f"{__name__}.typed"
"""The words so far after the command's name, in a context's `meta`. Its parameters lack the arguments if the value of an
option is completed."""


def links_that_start_with(context: typer.Context, incomplete: str) -> list[str]:
    """Return links of the links file; none if it cannot be read."""
    from strait.config.outline import link_names

    return _matching(_answered(lambda: link_names(_file(context))), incomplete)


def topics_that_start_with(context: typer.Context, incomplete: str) -> list[str]:
    """Return topics of the link that the command line names."""
    link = _link(context)
    return [] if link is None else _matching(_topics(link), incomplete)


def groups_that_start_with(context: typer.Context, incomplete: str) -> list[str]:
    """Return consumer groups of the source of the link that the command line names."""
    link = _link(context)
    return [] if link is None else _matching(_in_time(lambda: _groups(link)), incomplete)


def link_or_topics_that_start_with(context: typer.Context, incomplete: str) -> list[str]:
    """Return the links, or topics of a link that is named already."""
    return (topics_that_start_with if _words(context) else links_that_start_with)(context, incomplete)


def link_or_groups_that_start_with(context: typer.Context, incomplete: str) -> list[str]:
    """Return the links, or consumer groups of a link that is named already."""
    return (groups_that_start_with if _words(context) else links_that_start_with)(context, incomplete)


def _topics(link: "ConfiguredLink") -> Iterable[str]:
    from strait.config.selecting import selects

    topics = link.settings.topics

    def of_source() -> Iterable[str]:
        return [name for name in link.admin("source").partition_counts() if selects(topics, name)]

    return {*topics.include, *_in_time(of_source)}


def _groups(link: "ConfiguredLink") -> Iterable[str]:
    from strait.net.consumer_groups import ConsumerGroups

    with ConsumerGroups(link.source.properties, link.source.name) as groups:
        return groups.listed()


def _link(context: typer.Context) -> "ConfiguredLink | None":
    """Return the link that the command line names so far, or the only one of the links file."""
    from strait.config.outline import link_names
    from strait.state.link_handle import ConfiguredLink

    file = _file(context)
    names = tuple(_answered(lambda: link_names(file)))
    words = [context.params.get("link"), *context.meta.get(TYPED, ())]
    named = next((word for word in words if word in names), names[0] if len(names) == 1 else None)
    if named is None:
        return None
    with suppress(StraitError):
        return ConfiguredLink.load(file, named)
    return None


def _words(context: typer.Context) -> list[str]:
    """Return the arguments of the command line so far. The first one is a link."""
    found: list[Any] = [context.params.get("first"), *(context.params.get("words") or ())]
    return [word for word in found if word]


def _file(context: typer.Context) -> Path:
    return Path(context.params.get("config") or os.environ.get("STRAIT_LINKS_FILE") or DEFAULT_FILE)


def _in_time(asked: Callable[[], Iterable[str]]) -> Iterable[str]:
    """Return the answer of a cluster; nothing if there is none in time. The thread may wait until the process exits."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(_answered(asked)), daemon=True)
    thread.start()
    thread.join(MOST_SECONDS)
    return found


def _answered(asked: Callable[[], Iterable[str]]) -> Iterable[str]:
    try:
        return asked()
    except StraitError:
        return ()


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
