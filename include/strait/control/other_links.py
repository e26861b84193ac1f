"""The plans of other links into the same cluster. A link may delete, alter or replay into a topic only if no other link
replicates to it."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from strait.errors import NotAuthorized, StateError
from strait.planning.risks.sharing import OtherLinks
from strait.state.reader import StateReader
from strait.state.registrations import registrations
from strait.state.schema import Plan
from strait.text import plural


class Claim(NamedTuple):
    """Why another link may replicate to a destination topic. ``known``: by its plan; else that is unknown."""

    why: str
    known: bool


def claims(properties: Mapping[str, str], cluster: str, link: str, topics: Collection[str]) -> dict[str, Claim]:
    """Return the claims of other links on these destination topics, as far as there are any. Raises
    ClusterUnavailable."""
    try:
        others = other_links(properties, cluster, link)
    except NotAuthorized as error:
        return dict.fromkeys(topics, Claim(f"whether other links replicate to it is unknown: {error}", known=False))
    found: dict[str, Claim] = {}
    for other, why in others.unread.items():
        text = f"whether {other} replicates to it, too, is unknown: {why}"
        found |= dict.fromkeys(topics, Claim(text, known=False))
    writing = others.writing()
    found |= {
        topic: Claim(f"link {writing[topic][0][0]} replicates to it, too", known=True)
        for topic in topics
        if topic in writing
    }
    return found


def other_links(
    properties: Mapping[str, str], cluster: str, link: str, *, source_id: str = "", most: int | None = None
) -> OtherLinks:
    """Return the plans of the other links into a cluster, as far as they can be read. Links that were removed still have
    theirs.

    Args:
        most: number of links whose plans are read; None: all. Then those from the same source are read first, whose
            ``source_id`` is Kafka's, and of each the newest.

    Raises:
        ClusterUnavailable, NotAuthorized: the producer registry cannot be read.
    """
    known = registrations(properties, cluster)
    sources = {one.link: one.source for one in known.all() if one.link != link}
    newest = list(reversed(sources))
    names = sorted(newest, key=lambda name: sources[name] != source_id)
    plans: dict[str, tuple[Plan, ...]] = {}
    read = names if most is None else names[:most]
    unread = {f"link {name}": f"only the plans of {plural(len(read), 'link')} are read" for name in names[len(read) :]}
    if known.trouble:
        unread["another link"] = known.trouble
    for name in read:
        try:
            with StateReader(properties, cluster, name, follow=("plan",)) as state:
                state.catch_up()
                plans[name] = tuple(state.plans.values())
        except (NotAuthorized, StateError) as error:
            unread[f"link {name}"] = str(error)
    return OtherLinks(plans, unread)
