"""Rights on secured clusters: those that docs/reference/permissions.md lists, granted, withdrawn, and read from the authorizer's
log."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from strait.embedded.kafka import Cluster
from support.doc_tables import ROOT

_KINDS = {
    "Topic": ResourceType.TOPIC,
    "TransactionalId": ResourceType.TRANSACTIONAL_ID,
    "Group": ResourceType.GROUP,
    "Cluster": ResourceType.BROKER,
}
_CLUSTER = "kafka-cluster"
_DECISION = re.compile(
    r"Principal = User:(?P<user>\S+) is (?P<verdict>Allowed|Denied) operation = (?P<operation>\w+) .*"
    r" on resource = (?P<kind>\w+):LITERAL:(?P<name>\S+) for request"
)
LOG_SETTINGS = """
name = with-decisions
appender.decisions.type = File
appender.decisions.name = decisions
appender.decisions.fileName = ${sys:strait.log}.decisions
appender.decisions.layout.type = PatternLayout
appender.decisions.layout.pattern = %m%n
logger.decisions.name = kafka.authorizer.logger
logger.decisions.level = debug
logger.decisions.additivity = false
logger.decisions.appenderRef.decisions.ref = decisions
"""
"""Added to a broker's own settings of Log4j, it notes every decision about every request."""


class Right(NamedTuple):
    """An operation on one resource."""

    kind: ResourceType
    name: str
    operation: str


def documented(end: str, link: str, topic: str, words: str = "On the") -> list[Right]:
    """The rows of the table behind `On the **end**`; ``words`` `Also on the`: of what only some links need."""
    text = (ROOT / "docs/reference/permissions.md").read_text(encoding="utf-8")
    table = text.partition(f"{words} **{end}**")[2].partition("\n\n|")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
    rights = []
    for resource, operations, _ in rows:
        names = [name.replace("<link>", link) for name in re.findall(r"`([^`]+)`", resource)] or [topic]
        kind = ResourceType.TRANSACTIONAL_ID if resource.startswith("transactional id") else ResourceType.TOPIC
        if resource == "the cluster":
            kind, names = ResourceType.BROKER, [_CLUSTER]
        rights += [Right(kind, name, operation) for name in names for operation in operations.split(", ")]
    assert rights
    return rights


def grant(cluster: Cluster, user: str, rights: Iterable[Right]) -> None:
    bindings = [AclBinding(*_binding(user, right), AclPermissionType.ALLOW) for right in rights]
    client = AdminClient(cluster.client_properties)
    for future in client.create_acls(bindings, request_timeout=30).values():
        future.result()


def withdraw(cluster: Cluster, user: str, rights: Iterable[Right]) -> None:
    filters = [AclBindingFilter(*_binding(user, right), AclPermissionType.ALLOW) for right in rights]
    client = AdminClient(cluster.client_properties)
    for future in client.delete_acls(filters, request_timeout=30).values():
        assert future.result(), "there was no such right"


def decided(cluster: Cluster, user: str) -> tuple[set[Right], set[Right]]:
    """What the authorizer has allowed the user to do, and what it has denied."""
    log = Path(f"{cluster.log(1)}.decisions")
    found: dict[str, set[Right]] = {"Allowed": set(), "Denied": set()}
    for match in map(_DECISION.match, log.read_text(encoding="utf-8").splitlines()):
        if match is not None and match["user"] == user:
            found[match["verdict"]].add(Right(_KINDS[match["kind"]], match["name"], match["operation"]))
    return found["Allowed"], found["Denied"]


def _binding(user: str, right: Right) -> tuple[ResourceType, str, ResourcePatternType, str, str, AclOperation]:
    pattern, operation = ResourcePatternType.LITERAL, AclOperation[right.operation]
    return right.kind, right.name, pattern, f"User:{user}", "*", operation
