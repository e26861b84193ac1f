"""Links that conflict with one another in one links file."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def one_name_each(groups: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield a line for each task group whose application would have the name of another link's.

    Applications are found by name, which consists of the link's and the task group's names.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    for link, names in groups.items():
        for group in names:
            owners[f"{link}-{group}"].add(link)
    for link, names in groups.items():
        for group in names:
            if others := sorted(owners[f"{link}-{group}"] - {link}):
                yield f"links.{link}.groups.{group}: link {others[0]} has an application of the same name; rename the group"


def heartbeats_in_one_place(links: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each link whose heartbeats another link already copies to the same destination topic.

    A destination topic has one writer, and the one for heartbeats is named after the source in every link.
    """
    writers: dict[tuple[str, str, str], str] = {}
    for name, link in sorted(links.items()):
        if link.heartbeats.enabled:
            place = link.destination, link.naming.alias or link.source, link.heartbeats.topic
            if (other := writers.setdefault(place, name)) != name:
                yield (
                    f"links.{name}.heartbeats: link {other} already copies the heartbeats of {place[1]} to "
                    f"{link.destination}; enable heartbeats in only one of the two"
                )
