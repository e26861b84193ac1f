"""ACLs on destination topics, derived from the ACLs of their source topics. Pure.

Two rewrites, as in MirrorMaker 2, reserve writing for the link. ALLOW WRITE is dropped, so that permission to write a
source topic does not extend to its destination topic. ALLOW ALL becomes ALLOW READ.

A prefixed ACL stays prefixed only if every existing topic under the new prefix is the destination topic of a topic
under the old one. Otherwise it becomes a literal ACL for each of these destination topics, so that it grants nothing on
any other topic. An ACL for all topics (`*`) concerns the source cluster as a whole and is skipped.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence

from strait.config.route_names import topic_of
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
    """Return the ACLs that the destination lacks, then those to remove; each part is sorted.

    Args:
        destinations: source topic -> destination topic, of topics whose ACLs are synchronized; both topics exist.
        given: ACLs that the link has added. Only these are removed, and only while the source reports any ACL: a source
            without any has lost its authorizer rather than each of its ACLs.
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
    """Return the ACLs that the link has added and that the destination still has after the actions in ``done``."""
    there = {*before} if destination.acls is None else {*before} & destination.acls
    return tuple(sorted((there | {*allowed(done)}) - {*withdrawn(done)}))


def _is_about(acl: TopicAcl, destinations: Mapping[str, str]) -> bool:
    """Return whether an ACL concerns a topic whose ACLs are synchronized. Others stay unchanged."""
    if acl.pattern == "LITERAL":
        return acl.name in destinations.values()
    return any(copy.startswith(acl.name) for copy in destinations.values())


def _translated(acls: Collection[TopicAcl], destinations: Mapping[str, str], there: Collection[str]) -> set[TopicAcl]:
    topics, existing = sorted(destinations), sorted(there)
    copies: dict[str, list[str]] = {}
    for topic, copy in destinations.items():
        copies.setdefault(topic_of(topic), []).append(copy)
    found: set[TopicAcl] = set()
    for acl in acls:
        given = _rewritten(acl)
        if given is None:
            continue
        if given.pattern == "PREFIXED":
            found.update(_prefixed(given, topics, destinations, existing))
        elif given.pattern == "LITERAL":
            found.update(given._replace(name=copy) for copy in copies.get(given.name, ()))
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
    prefixes = {_prefix_of(destinations[topic], topic_of(topic).removeprefix(acl.name)) for topic in covered}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    if prefix and copies.issuperset(_under(prefix, existing)):
        yield acl._replace(name=prefix)
    else:
        yield from (acl._replace(name=copy, pattern="LITERAL") for copy in copies)


def _prefix_of(copy: str, rest: str) -> str:
    """Return the destination name without ``rest``, the part of the source name after the ACL's prefix; "" if the
    destination name does not end with it."""
    return copy.removesuffix(rest) if copy.endswith(rest) else ""


def _under(prefix: str, names: Sequence[str]) -> Iterator[str]:
    for place in range(bisect_left(names, prefix), len(names)):
        if not names[place].startswith(prefix):
            return
        yield names[place]
