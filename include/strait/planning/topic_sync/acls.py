"""Rights on copies that follow from rights on their sources. Pure.

MirrorMaker 2's two rewrites keep copies the link's own: nobody is allowed to write one because he may write its source
(ALLOW WRITE is left out), and whoever may do all with the source may read the copy (ALLOW ALL becomes ALLOW READ).

A rule for a prefix stays one only where every destination topic under the new prefix is a copy of a topic under the old
one; else it becomes a rule for each of these copies, so that nobody gets a right on a topic that is no copy. A rule for
all topics (`*`) is about the source cluster as a whole and is left out.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence

from strait.model import ClusterFacts, TopicAcl
from strait.planning.topic_sync.actions import Action, AllowAcl, WithdrawAcl, allowed, withdrawn

_ALL_TOPICS = "*"


def acl_changes(
    destinations: Mapping[str, str],
    source: ClusterFacts,
    destination: ClusterFacts,
    given: Collection[TopicAcl],
    *,
    remove: bool,
) -> list[AllowAcl]:
    """What the destination's rules lack, and then those that are withdrawn; each in order.

    Args:
        destinations: source topic -> its copy, of topics whose rights are to follow; all of both exist.
        given: rules that the link has added in its life. Only they are ever removed, and only while the source tells of
            other rules: a source that has none at all has lost its authorizer rather than each of its rules.
    """
    if source.acls is None or destination.acls is None:
        return []
    wanted = _translated(source.acls, destinations, destination.topics.keys())
    gone: set[TopicAcl] = set()
    if remove and source.acls:
        gone = {acl for acl in given if acl in destination.acls and acl not in wanted and _is_about(acl, destinations)}
    return [*map(AllowAcl, sorted(wanted - destination.acls)), *map(WithdrawAcl, sorted(gone))]


def still_given(
    before: Collection[TopicAcl], done: Collection[Action], destination: ClusterFacts
) -> tuple[TopicAcl, ...]:
    """What the link has given and the destination still has, after that was done."""
    there = {*before} if destination.acls is None else {*before} & destination.acls
    return tuple(sorted((there | {*allowed(done)}) - {*withdrawn(done)}))


def _is_about(acl: TopicAcl, destinations: Mapping[str, str]) -> bool:
    """A right on a copy that is not followed any more stays as it is, as the copy does."""
    if acl.pattern == "LITERAL":
        return acl.name in destinations.values()
    return any(copy.startswith(acl.name) for copy in destinations.values())


def _translated(acls: Collection[TopicAcl], destinations: Mapping[str, str], there: Collection[str]) -> set[TopicAcl]:
    topics, existing = sorted(destinations), sorted(there)
    found: set[TopicAcl] = set()
    for acl in acls:
        given = _rewritten(acl)
        if given is None:
            continue
        if given.pattern == "PREFIXED":
            found.update(_prefixed(given, topics, destinations, existing))
        elif given.pattern == "LITERAL" and given.name in destinations:
            found.add(given._replace(name=destinations[given.name]))
    return found


def _rewritten(acl: TopicAcl) -> TopicAcl | None:
    if acl.name == _ALL_TOPICS or (acl.permission, acl.operation) == ("ALLOW", "WRITE"):
        return None
    return acl._replace(operation="READ") if (acl.permission, acl.operation) == ("ALLOW", "ALL") else acl


def _prefixed(
    acl: TopicAcl, topics: Sequence[str], destinations: Mapping[str, str], existing: Sequence[str]
) -> Iterator[TopicAcl]:
    covered = list(_under(acl.name, topics))
    copies = {destinations[topic] for topic in covered}
    prefixes = {_prefix_of(destinations[topic], topic.removeprefix(acl.name)) for topic in covered}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    if prefix and copies.issuperset(_under(prefix, existing)):
        yield acl._replace(name=prefix)
    else:
        yield from (acl._replace(name=copy, pattern="LITERAL") for copy in copies)


def _prefix_of(copy: str, rest: str) -> str:
    """What stands before the part of the name behind the source's prefix; "" where the copy has lost that part."""
    return copy.removesuffix(rest) if copy.endswith(rest) else ""


def _under(prefix: str, names: Sequence[str]) -> Iterator[str]:
    for place in range(bisect_left(names, prefix), len(names)):
        if not names[place].startswith(prefix):
            return
        yield names[place]
