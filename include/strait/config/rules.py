"""Lookup of the rule of a link that applies to a topic. Pure."""

from strait.config.links import Rule, Topics
from strait.config.patterns import FirstMatch, once_for_each
from strait.config.route_names import topic_of

_NO_RULE = Rule(match=".*")


def rule_of(topics: Topics, topic: str) -> Rule:
    """Return the first rule that matches a source topic, or that of a route; if none does, a rule with the default
    settings."""
    number = _first_rule(topics)(topic_of(topic))
    return _NO_RULE if number is None else topics.rules[number]


@once_for_each
def _first_rule(topics: Topics) -> FirstMatch:
    return FirstMatch("topics.rules.{}.match", tuple(rule.match for rule in topics.rules))
