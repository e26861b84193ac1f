"""A plan of topics that differ in their class alone."""

from collections.abc import Mapping

from strait.state.schema import Budget, Plan, PlannedTopic, TopicPolicy


def classed_plan(classes: Mapping[str, str], *budgets: Budget) -> Plan:
    """One slot, and topics with one partition each. ``classes``: topic -> its class."""
    topics = tuple(
        PlannedTopic(
            source=name,
            destination=name,
            source_id="s",
            destination_id="d",
            slots=(0,),
            policy=TopicPolicy(topic_class=topic_class),
        )
        for name, topic_class in classes.items()
    )
    return Plan(
        link="l", group="default", version=1, producer_id=1, slots=1, topics=topics, budgets=budgets, published_at_ms=1
    )
