"""Checks for loops, duplicates and records that no link replicates, given the other links into a link's clusters. Pure.

The result only warns; each batch is filtered when it is replicated (strait.engine.loop_filter).
"""

from collections.abc import Collection, Iterator

from strait.config.links import Link
from strait.config.settings import Copies
from strait.planning.risks.risks import Risk
from strait.state.schema import Registration


def loops_of(
    link: Link,
    destination_id: str,
    into_source: Collection[Registration],
    into_destination: Collection[Registration],
) -> tuple[Risk, ...]:
    """Return the risks of a link by the producer registries of both clusters.

    There are none if the link renames topics: under other names no record can come back.

    Args:
        destination_id: Kafka's ID of the destination cluster.
        into_source, into_destination: registrations in `strait.producers` of each cluster; may include the link's own.
    """
    if link.naming.policy != "identity":
        return ()
    return tuple(
        sorted({*_back(link, destination_id, into_source), *_on(link, destination_id, into_source, into_destination)})
    )


def _back(link: Link, destination_id: str, into_source: Collection[Registration]) -> Iterator[Risk]:
    """Yield the risks if another link replicates the destination into the source."""
    for other in into_source:
        if other.source != destination_id:
            continue
        if _copies(link) == "all":
            yield Risk(
                "loop",
                "",
                f"link {other.link} is registered to copy from {link.destination} into {link.source}; with `copies: "
                f"all` records go "
                "to and fro for ever",
            )
        same_names = (rule for rule in link.topics.rules if (rule.naming or link.naming).policy == "identity")
        if all(rule.on_foreign == "halt" for rule in same_names):
            yield Risk(
                "both_write",
                "",
                f"link {other.link} is registered to copy from {link.destination}, where others write then; give "
                f"topics that both links copy a "
                "rule with `on_foreign: expect`, or they halt",
            )


def _on(
    link: Link, destination_id: str, into_source: Collection[Registration], into_destination: Collection[Registration]
) -> Iterator[Risk]:
    """Yield the risks if another link replicates a third cluster into the source."""
    direct = {other.source: other.link for other in into_destination}
    for other in into_source:
        if other.source == destination_id:
            continue
        known = other.source in direct
        if _copies(link) == "skip" and not known:
            yield Risk(
                "copies_stay",
                "",
                f"what link {other.link} writes into {link.source} is not copied on to {link.destination}, and no "
                f"other link "
                "brings it there; `copies: forward` would",
            )
        elif _copies(link) != "skip" and known:
            yield Risk(
                "copied_twice",
                "",
                f"link {direct[other.source]} copies into {link.destination} what link {other.link} brings to "
                f"{link.source} too; "
                "topics that all three copy come twice: `copies: skip`",
            )


def _copies(link: Link) -> Copies:
    return link.copies or "skip"
