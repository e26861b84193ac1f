"""The routes of a topic that its rule divides among several destination topics. Pure."""

from typing import NamedTuple

from strait.config.links import Topics
from strait.config.patterns import expanded
from strait.config.route_names import destination_of, is_route, route_name, topic_of
from strait.config.rules import rule_of
from strait.config.transform import Route


class Routed(NamedTuple):
    """A route of a source topic. ``number``: its place among the routes of the rule, from 0."""

    name: str
    number: int
    route: Route

    @property
    def destination(self) -> str:
        return destination_of(self.name)


def routes_of(topics: Topics, topic: str) -> tuple[Routed, ...]:
    """Return the routes of a source topic, or of the source topic of a route, in the order of its rule; empty: it is not
    divided. Raises ConfigError if a regular expression takes too long."""
    rule = rule_of(topics, topic)
    if rule.transform is None or not rule.transform.route:
        return ()
    name = topic_of(topic)
    return tuple(
        Routed(route_name(name, expanded(rule.match, route.to, name)), number, route)
        for number, route in enumerate(rule.transform.route)
    )


def route_of(topics: Topics, name: str) -> Routed | None:
    """Return the route of this name; None if the rules have none."""
    return next((one for one in routes_of(topics, name) if one.name == name), None) if is_route(name) else None
