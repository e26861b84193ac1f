"""Which rack a slot names to brokers, and who learns of it."""

import pytest

from strait.config.client_properties import problems
from strait.config.cluster_identity import for_client
from strait.config.racks import VARIABLE, expire_seconds, in_rack, rack_of


@pytest.mark.parametrize(
    ("group", "cluster", "host", "rack"),
    [
        (None, None, None, ""),
        (None, None, "zone-3", "zone-3"),
        (None, "zone-2", "zone-3", "zone-2"),
        ("zone-1", "zone-2", "zone-3", "zone-1"),
        ("", "zone-2", "zone-3", ""),
    ],
)
def test_the_task_groups_rack_comes_first_then_the_clusters_then_the_hosts(
    group: str | None, cluster: str | None, host: str | None, rack: str
) -> None:
    properties = {"bootstrap.servers": "a:1"} | ({} if cluster is None else {"client.rack": cluster})
    environment = {} if host is None else {VARIABLE: host}
    assert rack_of(in_rack(properties, group), environment) == rack


def test_state_topics_are_read_from_leaders() -> None:
    assert for_client({"bootstrap.servers": "a:1", "client.rack": "r"}) == {"bootstrap.servers": "a:1"}


def test_the_choice_of_a_follower_expires_as_kafkas_consumers_have_it() -> None:
    assert expire_seconds({}) == 300.0
    assert expire_seconds({"metadata.max.age.ms": "1500"}) == 1.5
    for wrong in ("soon", "-1", "", "1.5"):
        (problem,) = problems({"metadata.max.age.ms": wrong})
        assert "must be a number of milliseconds" in problem
