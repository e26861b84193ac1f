"""Registers a link's producer ID in its destination, before the first plan permits any write with it (I5).

Links in the opposite direction rely on this order: the topic exists, every broker knows it, the registration is
acknowledged by all in-sync replicas, and only then the plan is published. The registration is not part of the plan's
transaction: a transaction's end reaches its partitions one after the other, so the plan could be visible before the
registration.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from strait.config import naming
from strait.errors import StateError
from strait.kafka.admin import Admin
from strait.kafka.transactions import TRANSACTION_MS, TransactionalWriter, transactional_writer
from strait.kafka.writing import write_record
from strait.net.cluster_facts import await_topic_everywhere
from strait.net.producer_id import allocate_producer_id, transactional_producer_id
from strait.state.codec import encode
from strait.state.moved_copies import MovedCopies
from strait.state.producer_registry import Registrations
from strait.state.reader import StateReader
from strait.state.registrations import registrations, require_readable
from strait.state.schema import Plan, Registration
from strait.state.topics import ensure_producers_topic
from strait.state.writer import QUARANTINED_BYTES


def register(admin: Admin, registration: Registration, replication_factor: int | None) -> None:
    """Register a producer ID; return once every reader of the destination's `strait.producers` finds it there.
    Repeating it changes nothing.

    Raises:
        ClusterUnavailable, NotAuthorized, StateError: it may be there or not; try again before anything is written.
    """
    doing = f"registering producer id {registration.producer_id} of link {registration.link}"
    _write(admin, registration, replication_factor, doing)


def register_moved_in(admin: Admin, copies: Collection[MovedCopies], replication_factor: int | None) -> None:
    """Record which records of destination topics another tool has replicated, so that no link takes them for the
    cluster's own; as `register`. Entries of earlier imports are kept."""
    known = readable_registrations(*admin.at).moved_in()
    for one in copies:
        merged = one.merged(known)
        if merged not in known:
            doing = f"recording that another tool has replicated {one.moved_in} for link {one.link}"
            _write(admin, merged, replication_factor, doing)


def _write(
    admin: Admin,
    entry: Registration | MovedCopies,
    replication_factor: int | None,
    doing: str,
) -> None:
    ensure_producers_topic(admin, entry.link, replication_factor)
    await_topic_everywhere(*admin.at, naming.PRODUCERS_TOPIC)
    write_record(*admin.at, naming.PRODUCERS_TOPIC, *encode(entry), doing)


def is_registered(plans: Iterable[Plan], source_id: str) -> bool:
    """Return whether the current plans record the registration, with this source cluster: under the ID of an earlier
    source, links in the opposite direction would not recognize the link's records."""
    return any(plan.registered and plan.source_cluster == source_id for plan in plans)


@contextmanager
def repair_writer(
    admin: Admin, link: str, transactional_id: str, *, doing: str, taken_over: str, hint: str
) -> Iterator[TransactionalWriter]:
    """Become the only process that writes for an operator's command on the link, such as a replay. It is registered
    first, so that a link in the opposite direction skips its records, too.

    Args:
        doing, taken_over, hint: as `transactional_writer` takes them.

    Raises:
        PlanConflict: another process takes over at the same moment.
        ClusterUnavailable, NotAuthorized, StateError: nothing is written.
    """
    register_repair(admin, link, transactional_id)
    with transactional_writer(
        *admin.at,
        transactional_id,
        doing=doing,
        taken_over=taken_over,
        hint=hint,
        message_max_bytes=QUARANTINED_BYTES,
    ) as writer:
        yield writer


def register_repair(admin: Admin, link: str, transactional_id: str) -> None:
    """Register the writer of repairs under a transactional ID, if the link is registered: a link that is not has
    replicated nothing yet."""
    known = writing_links(*admin.at)
    of_link = [one for one in known if one.link == link and one.purpose == "link"]
    if not of_link:
        return
    producer_id = transactional_producer_id(*admin.at, transactional_id, TRANSACTION_MS)
    repair = of_link[-1].model_copy(update={"producer_id": producer_id, "purpose": "repair"})
    if repair not in known:
        register(admin, repair, None)


def producer_id_of(link: str, state: StateReader, properties: Mapping[str, str], cluster: str) -> int:
    """Return the link's producer ID from its plans; before the first plan, a new one from the destination.

    Raises:
        StateError: the link has copied before, and no plan has its ID.
        ClusterUnavailable, NotAuthorized: the destination allocates none.
    """
    for plan in state.plans.values():
        return plan.producer_id
    if state.runs:
        raise StateError(
            f"link {link}: publishing its first plan: the map has runs, so the link has copied before, but topic "
            f"{naming.plan_topic(link)} has no plan, so its producer id is lost",
            hint="restore the plan topic, or use a new link name with new destination topics",
        )
    return allocate_producer_id(properties, cluster)


def writing_links(properties: Mapping[str, str], cluster: str) -> Collection[Registration]:
    """Return all links into a cluster, in the order in which they were registered.

    Raises:
        StateError: a record cannot be read, which might name any link.
        ClusterUnavailable, NotAuthorized
    """
    return readable_registrations(properties, cluster).all()


def moved_in(properties: Mapping[str, str], cluster: str, link: str) -> Collection[MovedCopies]:
    """Return which records of a cluster other tools have replicated, according to imports. ``link``: the link that reads
    from there. Raises as `writing_links`."""
    return readable_registrations(properties, cluster, link).moved_in()


def readable_registrations(properties: Mapping[str, str], cluster: str, link: str = "") -> Registrations:
    """Return all that a cluster's `strait.producers` records. Raises as `writing_links`."""
    known = registrations(properties, cluster, link)
    require_readable(known, cluster)
    return known
