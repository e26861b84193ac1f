"""Another cluster has come to the address of the link's own: nothing is read, written or created there."""

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from strait.config.client_properties import CLUSTER_ID
from strait.config.links import LinksFile, parse, with_known
from strait.control.plane import Control
from strait.control.registration import writing_links
from strait.embedded.kafka import Cluster
from strait.engine.slot import run_slot
from strait.errors import ApprovalMissing, ConfigError, OtherCluster
from strait.kafka.admin import Admin
from strait.net.brokers import any_broker
from strait.reasons import Reason
from strait.state.reader import StateReader
from strait.state.schema import Plan
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied
from support.kafka.topics import create, produce
from support.links.copying import copying

pytestmark = pytest.mark.broker

LINK = "mine"
TEMPTING = {"auto.create.topics.enable": "true"}
"""As brokers are by default: a topic that a client asks for, and that is not there, is made with their defaults."""
ON_AWAY_SECONDS = 6.0  # longer than any pause between two attempts


class Pair:
    """Two clusters and a link between them, which copies ``t`` with ``on_loss: restart``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.destination = (
            Cluster(folder / end, properties=TEMPTING) for end in ("source", "destination")
        )
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Cluster.start, (self.source, self.destination)))
        self.file = self.links_file()

    def links_file(
        self, source: Cluster | None = None, pin: str = "", *, destination: Cluster | None = None, **settings: Any
    ) -> LinksFile:
        a = (source or self.source).client_properties | ({CLUSTER_ID: pin} if pin else {})
        topics = {"include": ["t"], "rules": [{"match": "t", "on_loss": "restart"}]}
        link = {"source": "a", "destination": "b", "topics": topics} | settings
        b = (destination or self.destination).client_properties
        raw = {"clusters": {"a": a, "b": b}, "links": {LINK: link}}
        return parse(raw, where="links file")

    @contextmanager
    def stranger_at(self, cluster: Cluster) -> Iterator[Cluster]:
        """Another cluster at its address, with another topic ``t``, while it does not run; it runs again afterwards."""
        cluster.stop()
        port = int(cluster.bootstrap.rpartition(":")[2])
        with Cluster(self.folder / f"stranger-{port}", ports=[port], properties=TEMPTING) as stranger:
            create(stranger, "t", 1)
            produce(stranger, "t", 300)
            yield stranger
        cluster.start()

    def wipe(self, cluster: Cluster) -> None:
        """It loses its disks, and comes back empty, under the same ID."""
        cluster.stop()
        for folder in cluster.directory.iterdir():
            if folder.is_dir():
                shutil.rmtree(folder)
        cluster.start()

    def until_copied(self) -> None:
        wanted = sum(ends(self.source, "t", 1))
        eventually(lambda: sum(ends(self.destination, "t", 1)) >= wanted, what=f"{wanted} copied")
        assert_copied(self.source, self.destination, "t", 1)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    found = Pair(tmp_path_factory.mktemp("pair"))
    create(found.source, "t", 1)
    produce(found.source, "t", 100)
    yield found
    found.source.stop()
    found.destination.stop()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("other")) as cluster:
        create(cluster, "t", 1)
        produce(cluster, "t", 300)
        yield cluster


def cluster_id(cluster: Cluster) -> str:
    return Admin(cluster.client_properties, "it").cluster_id


def test_a_stranger_at_the_sources_address_is_not_copied(pair: Pair, tmp_path: Path) -> None:
    mine = cluster_id(pair.source)
    with (
        Control(pair.file, LINK) as control,
        copying(control, tmp_path),
        StateReader(pair.destination.client_properties, "b", LINK, follow=("reports",)) as state,
    ):
        pair.until_copied()
        with pair.stranger_at(pair.source) as stranger:
            foreign = cluster_id(stranger)

            def told() -> bool:
                state.catch_up()
                rows = [row for parts in state.reports.values() for report in parts for row in report.partitions]
                return any(
                    row.reason == Reason.SOURCE_OTHER_CLUSTER and mine in row.detail and foreign in row.detail
                    for row in rows
                )

            eventually(told, what="both ids are told")
            for plane in (control, Control(pair.file, LINK)):
                with pytest.raises(OtherCluster, match=f"{foreign}.*{mine}.*`{CLUSTER_ID}: {foreign}`"):
                    plane.propose()
            assert ends(pair.destination, "t", 1) == [100]
        produce(pair.source, "t", 50)
        pair.until_copied()
        assert control.propose().empty


def test_a_stranger_at_the_destinations_address_gets_nothing(pair: Pair, tmp_path: Path) -> None:
    with Control(pair.file, LINK) as control, copying(control, tmp_path):
        pair.until_copied()
        known = with_known(pair.file, control.known_clusters)
        with pair.stranger_at(pair.destination) as stranger:
            produce(pair.source, "t", 50)
            until = time.monotonic() + ON_AWAY_SECONDS
            while time.monotonic() < until:
                for file in (pair.file, known):
                    with Control(file, LINK) as plane, pytest.raises(OtherCluster):
                        plane.propose() if file is known else control.propose()
            assert {
                name for name in Admin(stranger.client_properties, "it").partition_counts() if name[:2] != "__"
            } == {"t"}
            assert ends(stranger, "t", 1) == [300]
        pair.until_copied()


def test_of_several_addresses_the_one_of_the_right_cluster_is_taken(pair: Pair, other: Cluster) -> None:
    mine = cluster_id(pair.source)
    both = {"bootstrap.servers": f"{other.bootstrap},{pair.source.bootstrap}", CLUSTER_ID: mine}
    wrong = {"bootstrap.servers": other.bootstrap, CLUSTER_ID: mine}
    for _ in range(5):
        assert Admin(both, "a").cluster_id == mine
        with any_broker(both, "a") as connection:
            assert connection.address == ("127.0.0.1", int(pair.source.bootstrap.rpartition(":")[2]))
    with pytest.raises(OtherCluster), any_broker(wrong, "a"):
        pass
    with pytest.raises(OtherCluster), StateReader(wrong, "a", LINK) as state:
        state.catch_up()


def test_another_source_is_a_persons_decision(pair: Pair, other: Cluster) -> None:
    mine, foreign = cluster_id(pair.source), cluster_id(other)
    with Control(pair.file, LINK) as control:
        before = control.apply().plan
        assert before.source_cluster == mine
        shown = control.show(control.propose())
    with (
        Control(pair.links_file(other), LINK) as control,
        pytest.raises(OtherCluster, match=f"{foreign}.*{mine}.*`{CLUSTER_ID}: {foreign}`"),
    ):
        control.propose()
    with Control(pair.links_file(other, foreign), LINK) as control:
        proposal = control.propose()
        text = control.show(proposal).text
        assert f"~ reads     Kafka cluster {foreign}: so far {mine}" in text and "No changes" not in text
        with pytest.raises(ApprovalMissing, match=f"shown for Kafka cluster {mine} as source, which is {foreign} now"):
            control.apply(shown=shown)
    with (
        Control(pair.links_file(other, foreign, approval="required"), LINK) as control,
        pytest.raises(ApprovalMissing, match="reads Kafka cluster"),
    ):
        control.apply()
    with Control(pair.links_file(other, foreign), LINK) as control:
        after = control.apply().plan
        assert (after.source_cluster, after.version) == (foreign, before.version + 1)
        assert control.propose().empty
        known = writing_links(pair.destination.client_properties, "b")
        assert [(one.link, one.source) for one in known] == [(LINK, foreign)], "links back know it by its new source"
    with Control(pair.file, LINK) as control, pytest.raises(OtherCluster):
        control.propose()
    with Control(pair.links_file(pin=mine), LINK) as control:
        assert control.apply().plan.source_cluster == mine, "and back"


def test_a_link_with_exchanged_addresses_is_not_taken_for_a_new_one(pair: Pair) -> None:
    """Its destination has no plan, so it would look like a new link, and replicate in the wrong direction."""
    with Control(pair.file, LINK) as control:
        control.apply()
    before = [Admin(end.client_properties, "it").partition_counts() for end in (pair.source, pair.destination)]
    exchanged = pair.links_file(pair.destination, destination=pair.source)
    for attempt in (Control.propose, Control.apply):
        with (
            Control(exchanged, LINK) as control,
            pytest.raises(
                ConfigError, match="its state is on its source, cluster a, and not on its destination, cluster b"
            ),
        ):
            attempt(control)
    after = [Admin(end.client_properties, "it").partition_counts() for end in (pair.source, pair.destination)]
    assert after == before


def test_a_wiped_destination_is_filled_again_as_by_a_new_link(pair: Pair, tmp_path: Path) -> None:
    with Control(pair.file, LINK) as control:
        spec = control.spec(
            control.apply().plan, ledger_dir=tmp_path / "ledger", checkpoint_dir=tmp_path / "checkpoint"
        )
    stop = threading.Event()
    slot = threading.Thread(target=run_slot, args=(spec, 0, "by hand", stop.is_set))
    slot.start()
    try:
        pair.until_copied()
        before = control_plan(pair)
        pair.wipe(pair.destination)
        until = time.monotonic() + ON_AWAY_SECONDS
        while time.monotonic() < until:
            produce(pair.source, "t", 1)
            time.sleep(1.0)
        names = Admin(pair.destination.client_properties, "it").partition_counts()
        assert not [name for name in names if not name.startswith("__")], "no client makes a topic by asking"
        with Control(pair.file, LINK) as control:
            after = control.apply().plan
        assert after.version == 1 and after.published_at_ms > before.published_at_ms
        eventually(lambda: not slot.is_alive(), what="the slot ends, and does not follow a plan whose state is lost")
    finally:
        stop.set()
        slot.join(60)
    with Control(pair.file, LINK) as control, copying(control, tmp_path):
        pair.until_copied()


def control_plan(pair: Pair) -> Plan:
    with StateReader(pair.destination.client_properties, "b", LINK) as state:
        state.catch_up()
        return state.plans["default"]
