"""Topics that are divided among several destination topics: each route is planned as a separate source topic. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from strait.config.links import Topics
from strait.config.route_names import is_route, topic_of
from strait.config.routes import routes_of
from strait.config.selecting import selects
from strait.model import ClusterFacts


def with_routes(facts: ClusterFacts, topics: Topics, known: Iterable[str]) -> ClusterFacts:
    """Return the facts about the source with each route of a selected topic as a separate topic, beside the topic that it divides.

    Args:
        known: names under which the link has replicated. Routes that the rules no longer have are included: they are
            deselected, not deleted on the source.
    """
    named = set(known)
    if any(rule.transform is not None and rule.transform.route for rule in topics.rules):
        divided = (topic for topic in facts.topics if selects(topics, topic))
        named |= {one.name for topic in divided for one in routes_of(topics, topic)}
    return under_names(facts, named)


def under_names(facts: ClusterFacts, names: Iterable[str]) -> ClusterFacts:
    """Return the facts with those about the topics of these routes under the routes' names, too."""
    routes = (name for name in names if is_route(name) and topic_of(name) in facts.topics)
    added = {name: replace(facts.topics[topic_of(name)], topic=name) for name in routes}
    return replace(facts, topics={**facts.topics, **added}) if added else facts
