"""Any number of control planes may publish: each publication is decided from the one directly before it."""

import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.config import naming
from strait.embedded.kafka import Cluster
from strait.errors import ClusterUnavailable, PlanConflict
from strait.kafka.admin import Admin
from strait.state.codec import encode
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping, Plan, PlannedTopic
from strait.state.topics import ensure_state_topics
from support.fixtures.waiting import eventually

pytestmark = pytest.mark.broker

PARTITIONS = 8


@pytest.fixture
def link(cluster: Cluster, topic_name: str) -> str:
    name = topic_name.replace(".", "-")[-50:]
    ensure_state_topics(Admin(cluster.client_properties, "b"), name, None)
    return name


def next_plan(link: str, before: Plan | None, author: int) -> Plan:
    """What names its author and its predecessor: the author as published_at_ms, the predecessor's as source id."""
    topic = PlannedTopic(
        source="t",
        destination="t",
        source_id="none" if before is None else str(before.published_at_ms),
        destination_id="d",
        slots=(0,),
    )
    return Plan(
        link=link,
        group="default",
        version=1 if before is None else before.version + 1,
        producer_id=author if before is None else before.producer_id,
        slots=1,
        topics=(topic,),
        published_at_ms=author,
    )


def first_run(partition: int, author: int) -> OffsetMapping:
    return OffsetMapping(
        topic="t",
        partition=partition,
        destination="t",
        source_id="s",
        destination_id="d",
        source_base=author,
        destination_base=0,
        sequence_base=0,
        sequence_end=0,
        checkpoint_at_ms=0,
    )


@pytest.mark.core
def test_who_looks_after_a_publication_finds_its_plan(cluster: Cluster, link: str) -> None:
    """A commit returns before its markers are written. Seen by chance, and often, without anybody waiting for them."""
    publisher = ControlPublisher(cluster.client_properties, "b", link)
    with (
        StateReader(cluster.client_properties, "b", link) as state,
        StateReader(cluster.client_properties, "b", link) as another,
    ):
        another.catch_up()
        for number in range(1, 31):
            with publisher.exclusive(state) as publication:
                publication.publish([next_plan(link, state.plans.get("default"), number)])
                another.catch_up()
                assert another.plans["default"].version == number


def publish_once(cluster: Cluster, link: str, state: StateReader, author: int, dice: random.Random) -> Plan | None:
    """One cycle of a control plane that also gives one partition its first run; None: another was faster, or the
    brokers stumbled over the race."""
    try:
        with ControlPublisher(cluster.client_properties, "b", link).exclusive(state) as publication:
            plan = next_plan(link, state.plans.get("default"), author)
            new = [p for p in range(PARTITIONS) if ("t", p) not in state.runs]
            publication.publish([plan], [first_run(p, author) for p in dice.sample(new, min(len(new), 1))])
            return plan
    except (PlanConflict, ClusterUnavailable):
        return None


@pytest.mark.parametrize("seed", range(3))
def test_racing_control_planes_publish_one_after_the_other(cluster: Cluster, link: str, seed: int) -> None:
    published: list[Plan] = []
    threads = [
        threading.Thread(target=_race, args=(cluster, link, number, seed, published), daemon=True)
        for number in range(4)
    ]
    history: list[Plan] = []
    runs: dict[int, set[int]] = {}
    with StateReader(cluster.client_properties, "b", link) as watcher:
        watcher.catch_up()
        for thread in threads:
            thread.start()

        def over() -> bool:
            if watcher.poll(0.05) and watcher.plans:
                history.append(watcher.plans["default"])
            for (_, partition), (run,) in watcher.runs.items():
                runs.setdefault(partition, set()).add(run.source_base)
            return not any(thread.is_alive() for thread in threads)

        eventually(over, what="the end of the race", within_seconds=180)
        watcher.catch_up()
        last = watcher.plans["default"]
        assert len(watcher.runs) == PARTITIONS
    in_order = sorted(published, key=lambda plan: plan.version)
    assert [plan.version for plan in in_order] == list(range(1, last.version + 1)), "a publication was lost or doubled"
    assert {plan.producer_id for plan in in_order} == {in_order[0].published_at_ms}, "a second producer id"
    for before, after in itertools.pairwise(in_order):
        assert after.topics[0].source_id == str(before.published_at_ms), "decided from another state"
    assert all(len(authors) == 1 for authors in runs.values()), "a partition's first run was decided twice"
    assert in_order[-1] == last
    assert set(history) <= set(in_order), "a plan was seen that was never committed"


def _race(cluster: Cluster, link: str, number: int, seed: int, published: list[Plan]) -> None:
    dice = random.Random(f"{seed} {number}")
    done = turn = 0
    with StateReader(cluster.client_properties, "b", link) as state:
        while done < PARTITIONS // 4 + 1:
            turn += 1
            author = (number + 1) * 1_000_000 + turn
            plan = publish_once(cluster, link, state, author, dice)
            if plan is None:
                threading.Event().wait(dice.random() * 0.5)  # to get out of step with the others
            else:
                published.append(plan)
                done += 1


@pytest.mark.core
def test_who_was_overtaken_publishes_nothing_and_may_try_again(cluster: Cluster, link: str) -> None:
    properties = cluster.client_properties
    publisher = ControlPublisher(properties, "b", link)
    with StateReader(properties, "b", link) as slow, StateReader(properties, "b", link) as fast:
        with publisher.exclusive(slow) as slow_publication:
            with publisher.exclusive(fast) as fast_publication:
                fast_publication.publish([next_plan(link, None, author=2)], [first_run(0, 2)])
            with pytest.raises(PlanConflict, match="another control plane of this link took over"):
                slow_publication.publish([next_plan(link, None, author=1)], [first_run(0, 1)])
        with publisher.exclusive(slow) as again:
            assert slow.plans["default"].producer_id == 2
            assert slow.runs["t", 0][0].source_base == 2
            again.publish([next_plan(link, slow.plans["default"], author=1)])


def test_who_is_overtaken_in_the_middle_of_very_many_records_is_told_so_too(cluster: Cluster, link: str) -> None:
    with (
        StateReader(cluster.client_properties, "b", link) as slow,
        StateReader(cluster.client_properties, "b", link) as fast,
    ):
        with ControlPublisher(cluster.client_properties, "b", link).exclusive(slow) as overtaken:
            with ControlPublisher(cluster.client_properties, "b", link).exclusive(fast):
                pass
            runs = (first_run(partition, 1) for partition in range(50_000))
            with pytest.raises(PlanConflict, match="another control plane of this link took over"):
                overtaken.publish([next_plan(link, None, 1)], runs)
        fast.catch_up()
        assert (fast.plans, len(fast.runs)) == ({}, 0)


def test_a_plan_that_does_not_follow_the_one_in_force_is_refused(cluster: Cluster, link: str) -> None:
    properties = cluster.client_properties
    with StateReader(properties, "b", link) as state:
        with ControlPublisher(properties, "b", link).exclusive(state) as publication:
            publication.publish([next_plan(link, None, author=1)])
        with ControlPublisher(properties, "b", link).exclusive(state) as publication:
            good = next_plan(link, state.plans["default"], author=1)
            for wrong in (good.model_copy(update={"version": 5}), good.model_copy(update={"producer_id": 9})):
                with pytest.raises(PlanConflict):
                    publication.publish([wrong])
            publication.publish([good])


_DIES_INSIDE = """
import json, os, sys
from confluent_kafka import Producer
properties, transactional_id, topic = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
producer = Producer(properties | {"transactional.id": transactional_id})
producer.init_transactions(30)
producer.begin_transaction()
producer.produce(topic, key=b"?", value=b"never committed", on_delivery=lambda *_: os.kill(os.getpid(), 9))
producer.flush(30)
"""


@pytest.mark.core
def test_a_control_plane_that_dies_inside_a_transaction_leaves_nothing_and_holds_up_nobody(
    cluster: Cluster, link: str, tmp_path: Path
) -> None:
    died = subprocess.run(
        [
            sys.executable,
            "-c",
            _DIES_INSIDE,
            json.dumps(dict(cluster.client_properties)),
            naming.control_transactional_id(link),
            naming.plan_topic(link),
        ],
        cwd=tmp_path,
        env=dict(os.environ),
        timeout=60,
        check=False,
    )
    assert died.returncode == -9
    properties = cluster.client_properties
    with StateReader(properties, "b", link) as state:
        with ControlPublisher(properties, "b", link).exclusive(state) as publication:
            publication.publish([next_plan(link, None, author=1)])
        state.catch_up()
        assert state.plans["default"].version == 1
        assert state.trouble is None


def test_losses_of_long_ago_are_not_read_by_who_asks_for_the_newer_ones(cluster: Cluster, link: str) -> None:
    producer = Producer(cluster.client_properties)
    between = 0.0
    for number in range(2):
        between = time.time()
        time.sleep(0.2)  # the brokers' clock is that of this host
        loss = Loss(
            link=link, topic="t", partition=number, side="source", cause="source_data_lost", from_offset=0, to_offset=1,
            at_ms=0, action="continued", detail="",
        )  # fmt: skip
        producer.produce(naming.losses_topic(link), *encode(loss)[::-1])
        assert producer.flush(30) == 0
    found = []
    for newer_only in (False, True):
        seconds = time.time() - between if newer_only else None
        reader = StateReader(cluster.client_properties, "b", link, follow=("losses",), losses_seconds=seconds)
        with reader as state:
            state.catch_up()
            found.append([loss.partition for loss in state.losses])
    assert found == [[0, 1], [1]]
