"""The source topics that a link replicates, their destination names, and why other topics are skipped. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from strait.config import naming
from strait.config.links import Link
from strait.config.route_names import is_route, topic_of
from strait.config.routes import routes_of
from strait.config.selecting import selects, why_not
from strait.config.topic_names import is_never_copied, why_illegal
from strait.errors import ConfigError
from strait.model import TopicFacts
from strait.planning.topics.unapproved import NOTHING, Unapproved
from strait.reasons import Reason


@dataclass(frozen=True, slots=True)
class Skip:
    """A source topic that is not replicated, and why."""

    topic: str
    reason: Reason
    detail: str


class CameBack(NamedTuple):
    """Source topics that links from the destination have created.

    Attributes:
        renamed: those of them that have another name than their source topic, so they hold records of no other producer.
        unknown: why this is unknown; "" if it is known. No new topic is then selected: each of them may be one.
    """

    topics: Collection[str] = ()
    renamed: Collection[str] = ()
    unknown: str = ""

    def why(self, topic: str, destination: str, *, new: bool) -> str:
        """Return why a topic may be one of them; "" if it is not. ``new``: the link has not replicated it."""
        if topic in self.topics:
            return f"a link from {destination} has made it"
        return (
            f"whether a link from {destination} has made it is unknown: {self.unknown}" if new and self.unknown else ""
        )


NONE_CAME_BACK = CameBack()


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of the `topics` block. All fields are in order of names.

    Attributes:
        names: topics to replicate -> name of the destination topic; all of them exist on the source.
        missing: selected topics that the source does not have.
        skipped: every other topic of the source.
    """

    names: Mapping[str, str]
    missing: tuple[str, ...]
    skipped: tuple[Skip, ...]

    @property
    def selected(self) -> tuple[str, ...]:
        """Topics to replicate."""
        return tuple(self.names)


def select(
    link_name: str,
    link: Link,
    source: Mapping[str, TopicFacts],
    *,
    copied_before: Iterable[str] = (),
    came_back: CameBack = NONE_CAME_BACK,
    shared_cluster_id: str | None = None,
    unapproved: Unapproved = NOTHING,
) -> Selection:
    """Apply the `topics` block: a topic is selected by name or by a regular expression for the whole name; `exclude`
    takes precedence.

    Args:
        source: every topic of the source.
        copied_before: topics that the link has replicated. One that the source no longer has is reported as missing,
            and one keeps its destination name if another topic would get the same name.
        came_back: topics that links from the destination have created; if names change on either way, a regular
            expression does not select them.
        shared_cluster_id: Kafka's ID of the cluster, if source and destination are the same one; the link's own
            destination topics are then skipped, or they would be replicated again and again.
        unapproved: of these changes, topics that are not started are neither in ``names`` nor skipped.

    Raises:
        ConfigError: two topics that the link has replicated would get one name, or topics would be replicated to
            themselves or one another; or a regular expression takes too long.
    """
    if shared_cluster_id is not None and link.keeps_names:
        raise _onto_itself(link_name, link, shared_cluster_id)
    copied_before = frozenset(copied_before)
    names: dict[str, str] = {}
    skipped = []
    found: str | Skip | None
    divided = _divided(link, source) - unapproved.names.keys()
    for name in sorted(source.keys() - unapproved.starts.keys() - divided):
        found = unapproved.names.get(name)
        found = found or _skip(link, name, source[name].internal)
        found = found or _named(link, name, came_back, new=name not in copied_before)
        if isinstance(found, Skip):
            skipped.append(found)
        else:
            names[name] = found
    collisions = _collisions(link_name, names, copied_before)
    for skip in collisions:
        del names[skip.topic]
    skipped += collisions
    if shared_cluster_id is not None:
        _refuse_cycles(link_name, names)
        originals = naming.Names(link).sources(name for name in source if not is_never_copied(name))
        origins = {name: originals.get(topic_of(name), name) for name in names}
        copies = [name for name, origin in origins.items() if topic_of(origin) != topic_of(name)]
        onto_itself = [name for name, target in names.items() if target == topic_of(name) and is_route(name)]
        for name in {*copies, *onto_itself}:
            del names[name]
        skipped += [
            Skip(name, Reason.EXCLUDED, f"is this link's destination topic of {origins[name]}") for name in copies
        ]
        skipped += [Skip(name, Reason.NO_NAME, "the topic would be copied onto itself") for name in onto_itself]
    skipped.sort(key=lambda skip: skip.topic)
    expected = {*link.topics.include, *copied_before} - divided
    kept = unapproved.names.keys()
    missing = sorted(name for name in expected - source.keys() if name in kept or selects(link.topics, name))
    return Selection(names, tuple(missing), tuple(skipped))


def _divided(link: Link, source: Iterable[str]) -> set[str]:
    """Return the topics that are replicated by their routes alone."""
    ruled = any(rule.transform is not None and rule.transform.route for rule in link.topics.rules)
    return {name for name in source if not is_route(name) and routes_of(link.topics, name)} if ruled else set()


def _skip(link: Link, topic: str, internal: bool) -> Skip | None:
    why = why_not(link.topics, topic, internal=internal)
    return None if why is None else Skip(topic, *why)


def _named(link: Link, topic: str, came_back: CameBack, *, new: bool) -> str | Skip:
    names = naming.Names(link)
    if names.came_from_destination(topic):
        return Skip(
            topic, Reason.CAME_FROM_DESTINATION, f"its name shows that it was replicated from {link.destination}"
        )
    name = names.destination(topic)
    there = topic_of(topic)
    back = came_back.why(there, link.destination, new=new)
    if back and (name != there or there in came_back.renamed) and there not in link.topics.include:
        return Skip(topic, Reason.CAME_FROM_DESTINATION, f"{back}; name it in `topics.include` to copy it all the same")
    if sum(one.name == topic for one in routes_of(link.topics, topic)) > 1:
        return Skip(topic, Reason.NO_NAME, f"two routes of topic {there} go to {name}")
    if name is None:
        return Skip(topic, Reason.NO_NAME, "no `naming.rules` entry matches, and `otherwise` is `refuse`")
    why = why_illegal(name)
    if why is not None:
        return Skip(topic, Reason.NO_NAME, f"its destination topic {name!r} would be invalid: {why}")
    return name


def _onto_itself(link_name: str, link: Link, cluster_id: str) -> ConfigError:
    return ConfigError(
        f"links.{link_name}",
        [
            f"source {link.source} and destination {link.destination} are the same Kafka cluster ({cluster_id}) "
            "and names stay the same, so each topic would be copied onto itself"
        ],
        hint="correct one cluster's `bootstrap.servers`, or give `naming` a prefix or suffix",
    )


def _collisions(link_name: str, names: Mapping[str, str], copied_before: Collection[str]) -> list[Skip]:
    """Return the topics that would get the destination name of another topic. A topic newly created on the source must
    not stop the others, so it waits alone; a configuration change that gives two replicated topics one name is
    rejected."""
    wanting: dict[str, list[str]] = {}
    for topic, name in names.items():
        wanting.setdefault(name, []).append(topic)
    skipped, problems = [], []
    for name, topics in wanting.items():
        having = [topic for topic in topics if topic in copied_before]
        if len(having) > 1:
            problems.append(f"topics {having[0]} and {having[1]} would both become {name}")
        elif len(topics) > 1:
            for topic in (topic for topic in topics if topic not in having):
                other = next(one for one in having or topics if one != topic)
                skipped.append(
                    Skip(topic, Reason.NO_NAME, f"its destination topic {name} is that of topic {other}, too")
                )
    if problems:
        raise ConfigError(f"links.{link_name}.naming", problems)
    return skipped


def _refuse_cycles(link_name: str, names: Mapping[str, str]) -> None:
    """Raise ConfigError for topics that would be replicated in a circle within one cluster. Names are distinct here, so
    a chain of names ends or returns to its start."""
    problems = []
    seen: set[str] = set()
    for topic in names:
        way = [topic]
        while way[-1] not in seen and way[-1] in names:
            seen.add(way[-1])
            way.append(names[way[-1]])
        if len(way) > 1 and way[-1] == topic:
            problems.append(
                f"topic {topic} would be copied onto itself"
                if len(way) == 2
                else f"topics would be copied in a circle: {' -> '.join(way)}"
            )
    if problems:
        raise ConfigError(
            f"links.{link_name}.naming", problems, hint="source and destination are one cluster; change the names"
        )
