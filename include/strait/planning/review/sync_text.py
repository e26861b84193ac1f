"""What is to be done to copies, in words and as plain data. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from strait.planning.topic_sync.configs import AlterTopic
from strait.planning.topic_sync.sync import Upkeep


class Told(NamedTuple):
    """One thing to be done: ``grows orders: from 3 to 6 partitions``."""

    verb: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.verb:<9} {self.subject}: {self.detail}"


def told(upkeep: Upkeep) -> Iterator[Told]:
    """Each thing, in the order in which it is done."""
    for growing in upkeep.grow:
        yield Told("grows", growing.topic, f"from {growing.partitions_now} to {growing.partitions} partitions")
    for altering in upkeep.alter:
        yield Told("alters", altering.topic, ", ".join(_alterations(altering)))
    for acl in upkeep.acls.add:
        yield Told("allows", acl.name, str(acl))
    for acl in upkeep.acls.remove:
        yield Told("withdraws", acl.name, str(acl))
    for deleting in upkeep.delete:
        yield Told("deletes", deleting.topic, f"the source has no {deleting.source} any more")


def upkeep_lines(upkeep: Upkeep) -> Iterator[str]:
    """For people, with what cannot be done."""
    yield from map(str, told(upkeep))
    if upkeep.acls_denied:
        yield f"refused   ACLs: {upkeep.acls_denied}"


def upkeep_data(upkeep: Upkeep) -> dict[str, Any]:
    """For programs."""
    return {
        "grow": [
            {"topic": item.topic, "partitions_now": item.partitions_now, "partitions": item.partitions}
            for item in upkeep.grow
        ],
        "alter": [
            {"topic": item.topic, "put": dict(item.put), "reset": list(item.reset), "before": dict(item.before)}
            for item in upkeep.alter
        ],
        "acls": {
            "add": [acl._asdict() for acl in upkeep.acls.add],
            "remove": [acl._asdict() for acl in upkeep.acls.remove],
            "denied": upkeep.acls_denied,
        },
        "delete": [
            {"topic": item.topic, "source": item.source, "missing_since_ms": item.missing_since_ms}
            for item in upkeep.delete
        ],
    }


def _alterations(item: AlterTopic) -> Iterator[str]:
    before = dict(item.before)
    for name, value in item.put:
        yield f"{name} {before.get(name, 'by default')} -> {value}"
    for name in item.reset:
        yield f"{name} {before[name]} -> by default"
