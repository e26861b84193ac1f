"""Checks for loops, duplicates and records that no link replicates, given the other links into a link's clusters. Pure.

The result only warns; each batch is filtered when it is replicated (strait.engine.loop_filter).
"""

from collections.abc import Collection, Iterator, Mapping

from strait.config.links import Link
from strait.config.route_names import topic_of
from strait.config.rules import rule_of
from strait.config.settings import Copies
from strait.model import TopicPartition
from strait.planning.risks.risks import Risk
from strait.planning.topics.policies import start_of
from strait.state.schema import Registration
from strait.text import listed, plural

_SEPARATORS = "._-"


def loops_of(
    link: Link,
    names: Mapping[str, str],
    destination_id: str,
    into_source: Collection[Registration],
    into_destination: Collection[Registration],
) -> tuple[Risk, ...]:
    """Return the risks of a link by the producer registries of both clusters.

    There are none if the link renames topics: under other names no record can come back.

    Args:
        names: source topic -> destination topic, for every topic of the link.
        destination_id: Kafka's ID of the destination cluster.
        into_source, into_destination: registrations in `strait.producers` of each cluster; may include the link's own.
    """
    if link.naming.policy != "identity":
        return ()
    return tuple(
        sorted(
            {
                *_back(link, names, destination_id, into_source),
                *_on(link, destination_id, into_source, into_destination),
            }
        )
    )


def growing_names(names: Mapping[str, str]) -> tuple[Risk, ...]:
    """Return a risk if selected topics already have the prefix or suffix that the link adds: records that it replicated
    return over other links, and get a longer name in every round.

    Args:
        names: source topic -> destination topic, for every topic of the link.
    """
    found = sorted(source for source, name in names.items() if _has_affix(name, source))
    if not found:
        return ()
    detail = f"{plural(len(found), 'topic already has', 'topics already have')} the prefix or suffix that this link adds: {listed(found)}"
    effect = "their records came by this link before, and get a longer name in every round"
    return (Risk("names_grow", "", f"{detail}; {effect}: exclude them, or set `copies: skip` on one link of the ring"),)


def moved_in(link: Link, ends: Mapping[TopicPartition, int]) -> tuple[Risk, ...]:
    """Return a risk for each topic that holds copies of another tool, which the link skips: records that others
    wrote among them are skipped, too.

    Args:
        ends: source partition that starts -> the offset before which its records are such copies.
    """
    return tuple(_moved_in(link, topic, ends) for topic in sorted({place.topic for place in ends}))


def _moved_in(link: Link, topic: str, ends: Mapping[TopicPartition, int]) -> Risk:
    where = listed([f"{place} before offset {ends[place]:,}" for place in sorted(ends) if place.topic == topic])
    detail = f"another tool replicated the records of {where} (`strait offsets import`)"
    if isinstance(start_of(link, topic), Mapping):
        effect = f"those from the offsets that `start` names on return to {link.destination}"
    else:
        effect = (
            "replication starts after them; to replicate records of other producers among them, name offsets in `start`"
        )
    return Risk("moved_in", topic, f"{detail}; {effect}")


def _has_affix(name: str, source: str) -> bool:
    """Return whether the name already has the affix that the link adds, as a whole component."""
    if name == source:
        return False
    if name.endswith(source):
        prefix = name.removesuffix(source)
        return prefix[-1] in _SEPARATORS and any(f"{edge}{prefix}" in f".{source}" for edge in _SEPARATORS)
    if name.startswith(source):
        suffix = name.removeprefix(source)
        return suffix[0] in _SEPARATORS and any(f"{suffix}{edge}" in f"{source}." for edge in _SEPARATORS)
    return False


def _back(
    link: Link, names: Mapping[str, str], destination_id: str, into_source: Collection[Registration]
) -> Iterator[Risk]:
    """Yield the risks if another link replicates the destination into the source."""
    same = sorted(source for source, name in names.items() if name == topic_of(source))
    halting = [topic for topic in same if rule_of(link.topics, topic).on_foreign == "halt"]
    for other in into_source:
        if other.source != destination_id:
            continue
        if _copies(link) == "all":
            yield Risk(
                "loop",
                "",
                f"link {other.link} is registered to copy from {link.destination} into {link.source}; with `copies: "
                f"all` records go back and forth forever",
            )
        if halting:
            yield Risk(
                "both_write",
                "",
                f"link {other.link} is registered to copy from {link.destination}, where others write then; give "
                "topics that both links copy a rule with `on_foreign: expect`, or they halt; "
                f"{plural(len(halting), 'topic has', 'topics have')} none: {listed(halting)}",
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
