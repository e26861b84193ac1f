"""A link copies with exactly the rights that docs/security.md lists, on a broker that grants nothing else."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from strait import config
from strait.control import GROUP, Control
from strait.embedded.kafka import Cluster
from strait.engine.slot import run_epoch
from support.doc_tables import ROOT
from support.records import ends
from support.waiting import eventually

LINK, TOPIC, COPY = "rights", "orders", "copy.orders"
USERS = {"admin": "a-secret", "reader": "r-secret", "writer": "w-secret"}
Grant = tuple[ResourceType, str, str]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",  # brokers trust one another without a login
    }
    with Cluster(tmp_path_factory.mktemp("guarded"), properties=properties, users=USERS) as cluster:
        yield cluster


def as_user(cluster: Cluster, name: str) -> dict[str, str]:
    return cluster.client_properties | {"sasl.username": name, "sasl.password": USERS[name]}


def documented(end: str, topic: str) -> list[Grant]:
    """The rows of the table behind `On the **end**`, as (kind, name, operation)."""
    text = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    table = text.partition(f"On the **{end}**")[2].partition("\n\n|")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
    grants = []
    for resource, operations, _ in rows:
        names = [name.replace("<link>", LINK) for name in re.findall(r"`([^`]+)`", resource)] or [topic]
        kind = ResourceType.TRANSACTIONAL_ID if resource.startswith("transactional id") else ResourceType.TOPIC
        grants += [(kind, name, operation) for name in names for operation in operations.split(", ")]
    assert grants
    return grants


def grant(admin: AdminClient, user: str, grants: list[Grant]) -> None:
    bindings = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for kind, name, operation in grants
    ]
    for future in admin.create_acls(bindings, request_timeout=30).values():
        future.result()


def test_a_link_with_the_documented_rights_copies(guarded: Cluster, tmp_path: Path) -> None:
    admin = AdminClient(as_user(guarded, "admin"))
    for future in admin.create_topics([NewTopic(TOPIC, 2, 1)], request_timeout=30).values():
        future.result()
    producer = Producer(as_user(guarded, "admin"))
    for number in range(1000):
        producer.produce(TOPIC, f"value-{number}", key=f"key-{number}")
    assert producer.flush(30) == 0
    grant(admin, "reader", documented("source", TOPIC))
    grant(admin, "writer", documented("destination", COPY))

    file = config.parse(
        {
            "clusters": {"a": as_user(guarded, "reader"), "b": as_user(guarded, "writer")},
            "links": {
                LINK: {
                    "source": "a",
                    "destination": "b",
                    "topics": {"include": [TOPIC]},
                    "naming": {"policy": "prefix", "prefix": "copy."},
                }
            },
        },
        where="test",
    )
    with Control(file, LINK) as control:
        plan = control.run_cycle().plan
        assert plan.waiting == ()
        spec = control.spec(ledger_dir=tmp_path / "ledger", checkpoint_dir=tmp_path / "checkpoint")
        stop = threading.Event()
        slot = threading.Thread(target=run_epoch, args=(spec, 0, 1, "app", stop.is_set))
        slot.start()
        try:
            eventually(lambda: sum(ends(guarded, COPY, 2)) == 1000, what="1000 records copied")
            eventually(lambda: _caught_up(control), what="reports that say so")
        finally:
            stop.set()
            slot.join(30)
    assert spec.group == GROUP


def _caught_up(control: Control) -> bool:
    rows = control.status().partitions
    return len(rows) == 2 and all(row.state == "caught_up" for row in rows)
