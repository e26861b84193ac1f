"""Publishing a plan by hand: the topics as they are now, spread over slots as the test wants."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from strait.config.route_names import destination_of, topic_of
from strait.control.plane import GROUP
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin
from strait.model import TopicFacts
from strait.net.producer_id import allocate_producer_id
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.schema import Budget, OffsetMapping, Plan, PlannedGroupSync, PlannedTopic, TopicPolicy
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends


def publish(
    link: str,
    source: Cluster,
    destination: Cluster,
    topics: Mapping[str, int],
    *,
    slots: int,
    turn: int = 0,
    stopped: bool = False,
    policy: TopicPolicy | None = None,
    policies: Mapping[str, TopicPolicy] | None = None,
    budgets: Sequence[Budget] = (),
    consumer_groups: PlannedGroupSync | None = None,
    besides: Mapping[str, Any] | None = None,
) -> Plan:
    """Publish the link's next plan: ``topics`` (name -> partitions, the same on both sides) dealt out to the slots,
    each deal shifted by ``turn``, all under one ``policy`` but for those with one of their own in ``policies``. A
    name may be a route's. A partition that is new to the link begins at source offset 0. ``besides``: other fields of the plan."""
    into = {topic: destination_of(topic) or topic for topic in topics}
    on_source = _facts(source, "source", {topic_of(topic) for topic in topics})
    on_destination = _facts(destination, "destination", set(into.values()))
    planned = tuple(
        PlannedTopic(
            source=topic,
            destination=into[topic],
            source_id=on_source[topic_of(topic)].topic_id,
            destination_id=on_destination[into[topic]].topic_id,
            slots=tuple((partition + turn) % slots for partition in range(topics[topic])),
            policy=(policies or {}).get(topic) or policy or TopicPolicy(),
        )
        for topic in sorted(topics)
    )
    properties = destination.client_properties
    with (
        StateReader(properties, "destination", link) as state,
        ControlPublisher(properties, "destination", link).exclusive(state) as publication,
    ):
        before = state.plans.get(GROUP)
        plan = Plan(
            link=link,
            group=GROUP,
            version=before.version + 1 if before else 1,
            producer_id=before.producer_id if before else allocate_producer_id(properties, "destination"),
            stopped=stopped,
            slots=slots,
            topics=planned,
            budgets=tuple(budgets),
            consumer_groups=consumer_groups,
            **(besides or {}),
            published_at_ms=int(time.time() * 1000),
        )
        publication.publish(
            [plan],
            [
                _first_run(topic, partition, end)
                for topic in planned
                for partition, end in enumerate(ends(destination, topic.destination, len(topic.slots)))
                if (topic.source, partition) not in state.runs
            ],
        )
    return plan


def _first_run(topic: PlannedTopic, partition: int, destination_end: int) -> OffsetMapping:
    return OffsetMapping(
        topic=topic.source,
        partition=partition,
        destination=topic.destination,
        source_id=topic.source_id,
        destination_id=topic.destination_id,
        source_base=0,
        destination_base=destination_end,
        sequence_base=0,
        sequence_end=0,
        checkpoint_at_ms=0,
        transform=topic.policy.transform_digest,
    )


def _facts(cluster: Cluster, end: str, topics: Collection[str]) -> Mapping[str, TopicFacts]:
    """What the cluster says of these topics. A broker that is busy hears seconds later of what was created."""
    admin = Admin(cluster.client_properties, end)

    def look() -> Mapping[str, TopicFacts]:
        found = admin.observe(topics.__contains__).topics
        return found if found.keys() >= set(topics) else {}

    return eventually(look, what=f"the {end} knows of all of {sorted(topics)}") if topics else {}
