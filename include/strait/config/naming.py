"""Names of destination topics, and all other names that Strait derives. No other module derives names."""

from collections.abc import Iterable

from strait.config.links import Link, Naming
from strait.config.patterns import FirstMatch, expanded, once_for_each
from strait.config.route_names import is_route, topic_of
from strait.config.routes import route_of, routes_of
from strait.config.rules import rule_of
from strait.config.topic_names import STATE_PREFIX, is_never_copied

PRODUCERS_TOPIC = "strait.producers"
"""Compacted, one on each cluster that links write to; key: producer ID, value: its registration."""

_SEPARATORS = (".", "_", "-")
_INTERNAL = tuple(f"{separator}internal" for separator in _SEPARATORS)
_CHECKPOINTS = tuple(f"{separator}checkpoints{separator}internal" for separator in _SEPARATORS)


class Names:
    """A link's names of destination topics: by the `naming` of the topic's rule, else by the link's."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def destination(self, topic: str) -> str | None:
        """Return the destination name of a source topic or of a route; None if no naming rule matches and `otherwise` is
        `refuse`, if the topic is divided into routes, or if the rules do not have the route.

        Raises:
            ConfigError: a regular expression takes too long.
        """
        if is_route(topic):
            route = route_of(self._link.topics, topic)
            return None if route is None else route.destination
        if routes_of(self._link.topics, topic):
            return None
        naming = self._naming(topic)
        match naming.policy:
            case "alias":
                return f"{self._link.source if naming.alias is None else naming.alias}{naming.separator}{topic}"
            case "rules":
                number = _first_rule(naming)(topic)
                if number is None:
                    return topic if naming.otherwise == "identity" else None
                return expanded(naming.rules[number].match, naming.rules[number].replace, topic)
            case _:
                return f"{naming.prefix}{topic}{naming.suffix}"

    def sources(self, topics: Iterable[str]) -> dict[str, str]:
        """Return destination name -> source topic, for known source topics; the first of those that share a name.

        A regular expression cannot be inverted, so the source topic is looked up, never derived.
        """
        found: dict[str, str] = {}
        for topic in topics:
            name = self.destination(topic)
            if name is not None:
                found.setdefault(name, topic)
        return found

    def came_from_destination(self, topic: str) -> bool:
        """Return whether an alias before the name is the destination's: MirrorMaker 2's rule against loops."""
        naming = self._naming(topic)
        if naming.policy != "alias":
            return False
        alias = self._link.destination if naming.destination_alias is None else naming.destination_alias
        return alias in topic_of(topic).split(naming.separator)[:-1]

    def _naming(self, topic: str) -> Naming:
        return rule_of(self._link.topics, topic).naming or self._link.naming


@once_for_each
def _first_rule(naming: Naming) -> FirstMatch:
    return FirstMatch("naming.rules.{}.match", tuple(rule.match for rule in naming.rules))


def plan_topic(link: str) -> str:
    """Return the name of the plan topic. Compacted; key: task group, value: its whole plan."""
    return f"{STATE_PREFIX}{link}.plan"


def map_topic(link: str) -> str:
    """Return the name of the map topic. Compacted; relates source positions, sequences and destination offsets."""
    return f"{STATE_PREFIX}{link}.map"


def reports_topic(link: str) -> str:
    """Return the name of the reports topic. Retained for one day; one record per second from each slot."""
    return f"{STATE_PREFIX}{link}.reports"


def ledger_topic(link: str) -> str:
    """Return the name of the ledger topic. Retained for three days; the slots' rows for the replication ledger, until
    the driver has written them to the ledger's files."""
    return f"{STATE_PREFIX}{link}.ledger"


def history_topic(link: str) -> str:
    """Return the name of the history topic: points of the link's past, one per slot and minute or hour."""
    return f"{STATE_PREFIX}{link}.history"


def losses_topic(link: str) -> str:
    """Return the name of the loss log. Retained forever; records that were lost or not copied, and the action taken."""
    return f"{STATE_PREFIX}{link}.losses"


def quarantine_topic(link: str) -> str:
    """Return the name of the quarantine topic. Retained forever; records that the destination rejected, unchanged, with
    their source coordinates as headers."""
    return f"{STATE_PREFIX}{link}.quarantine"


def failovers_topic(link: str) -> str:
    """Return the name of the failovers topic. Retained forever; every step of every failover of the link."""
    return f"{STATE_PREFIX}{link}.failovers"


def audits_topic(link: str) -> str:
    """Return the name of the audits topic. Retained forever; the result of every audit of the link."""
    return f"{STATE_PREFIX}{link}.audits"


def verified_topic(link: str) -> str:
    """Return the name of the verified topic. Compacted; the newest results of audits for each source topic."""
    return f"{STATE_PREFIX}{link}.verified"


def control_transactional_id(link: str) -> str:
    """Return the transactional ID under which one control plane at a time may publish for a link."""
    return f"{STATE_PREFIX}{link}.control"


def quarantine_transactional_id(link: str) -> str:
    """Return the transactional ID under which one process at a time resolves quarantined records."""
    return f"{STATE_PREFIX}{link}.quarantine"


def repair_transactional_id(link: str) -> str:
    """Return the transactional ID under which one process at a time repairs topics after an audit."""
    return f"{STATE_PREFIX}{link}.repair"


def tail_transactional_id(link: str) -> str:
    """Return the transactional ID under which one process at a time exports a link's tail to a topic."""
    return f"{STATE_PREFIX}{link}.tail"


def checkpoints_topic(link: Link) -> str:
    """Return the name of MirrorMaker 2's checkpoints on the destination; clients find them by the source's alias."""
    return f"{_alias(link)}{_separator(link)}checkpoints{_separator(link)}internal"


def offset_syncs_topic(link: Link) -> str:
    """Return the name of MirrorMaker 2's offset syncs on the destination (`offset-syncs.topic.location=target`)."""
    return f"mm2-offset-syncs{_separator(link)}{_alias(link)}{_separator(link)}internal"


def _alias(link: Link) -> str:
    return link.naming.alias or link.source


def _separator(link: Link) -> str:
    return link.naming.separator


def application_name(link: str, group: str, *, standby: bool = False) -> str:
    """Return the name of a task group's Spark application, shown in Spark's own pages.

    ``standby``: of the application that waits to take over. The names of links and task groups contain no dot.
    """
    return f"strait-{link}-{group}" + (".standby" if standby else "")


def application_of(link: str, pool: str | None, group: str, *, standby: bool = False) -> str:
    """Return the name of the Spark application that runs a task group: its pool's, else its own."""
    if pool is None:
        return application_name(link, group, standby=standby)
    return pool_application_name(pool, standby=standby)


def pool_application_name(pool: str, *, standby: bool = False) -> str:
    """Return the name of a pool's Spark application. ``standby``: of the one that waits to take over."""
    return application_name("pool", pool, standby=standby)


def is_internal(topic: str) -> bool:
    """Return whether the topic is Kafka's, Strait's or, by the rule of MirrorMaker 2 4.3, MirrorMaker 2's internal one, with
    any of the usual separators: that of the link or the tool which wrote it is unknown.

    The last kind is copied only if `topics.internal` is set, the others never.
    """
    if is_never_copied(topic) or topic.startswith("."):
        return True
    return topic.endswith(_CHECKPOINTS) or (topic.startswith("mm2") and topic.endswith(_INTERNAL))
