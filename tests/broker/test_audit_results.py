"""The results of audits in a link's state on real brokers: small, and of the topics that exist now."""

from collections.abc import Callable

import pytest

from strait.audit.publishing import ResultLog, audits, publish, publish_results
from strait.config import naming
from strait.config.cluster import Cluster
from strait.kafka.admin import Admin
from strait.state.reader import StateReader
from strait.state.verified import Verified, verified
from support.kafka.topics import produce
from support.links.auditing import audit_link
from support.links.engine_link import EngineLink
from support.model.audits import result_of

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


def test_results_are_of_the_topics_that_the_link_replicates_now_and_compacted(
    make_link: MakeLink, topic_name: str
) -> None:
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    produce(link.source, topic_name, 400)
    link.publish()
    link.start_slot()
    link.until_copied()
    there = Cluster(link.destination.client_properties, "b")
    log = ResultLog(there, link.name)
    assert log.newest() == {}
    found = audit_link(link)
    publish(there, link.name, found.whole)
    publish(there, link.name, found.whole)  # as a driver that dies after it, and starts again

    results = log.newest()
    with StateReader(*there, link.name, follow=("plan",)) as state:
        state.catch_up()
        planned = [topic for plan in state.plans.values() for topic in plan.topics]
    assert verified(planned, results) == {topic_name: Verified("equal", 0, found.plan.planned_at_ms)}
    recreated = [topic.model_copy(update={"destination_id": "AAAAAAAAAAAAAAAAAAAAAQ"}) for topic in planned]
    assert verified(recreated, results) == {}
    assert [(one.verdict, one.topics) for one in audits(there, link.name)] == [("equal", 1)]

    worse = result_of(found.plan.planned_at_ms + 9, "different", None, topic=topic_name, differences=3)
    publish_results(Admin(*there), there, link.name, [worse])
    assert verified(planned, log.newest()) == {topic_name: Verified("different", 3, None)}
    assert ResultLog(there, link.name).newest() == log.newest()
    topic = naming.verified_topic(link.name)
    facts = Admin(*there).observe(topic.__eq__, ("cleanup.policy", "segment.ms")).topics[topic]
    assert (facts.partitions, facts.configs["cleanup.policy"], facts.configs["segment.ms"]) == (1, "compact", "600000")
