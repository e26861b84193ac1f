"""Whether a links file has all that a link needs, if no Connection or Variable of Airflow adds to it. Pure."""

from collections.abc import Iterable, Iterator

from strait.config import client_properties
from strait.config.links import LinksFile


def missing(file: LinksFile, links: Iterable[str]) -> Iterator[str]:
    """Yield a line for each property that a login of these links lacks, and for each link that selects no topic."""
    links = list(links)
    used = {end for link in links for end in (file.links[link].source, file.links[link].destination)}
    for cluster in sorted(used):
        yield from (f"clusters.{cluster}: {line}" for line in client_properties.missing(file.clusters[cluster]))
    for link in links:
        topics = file.links[link].topics
        if not (topics.include or topics.regex or topics.allow_empty):
            yield f"links.{link}.topics: selects no topic; list names in `include` or expressions in `regex`"
