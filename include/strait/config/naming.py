"""Source topic -> destination topic, and every other name that Strait gives. The only place names are derived."""

from collections.abc import Iterable

from strait.config.links import Link, Naming
from strait.config.patterns import FirstMatch, expanded, once_for_each
from strait.config.rules import rule_of

STATE_PREFIX = "strait."
PRODUCERS_TOPIC = "strait.producers"
"""Compacted, one on each cluster that links write into; key: producer id, value: whose it is."""
_LONGEST = 249
_LEGAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class Names:
    """How a link calls its copies: by the naming of the topic's rule, else by its own."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def destination(self, topic: str) -> str | None:
        """The destination's name for a source topic; None where no naming rule matches and that is to be refused.

        Raises:
            ConfigError: a regular expression takes too long.
        """
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
        """The way back for known source topics: destination's name -> source topic, the first of those that share one.

        A regular expression cannot be turned round, so the way back is looked up, never guessed.
        """
        found: dict[str, str] = {}
        for topic in topics:
            name = self.destination(topic)
            if name is not None:
                found.setdefault(name, topic)
        return found

    def came_from_destination(self, topic: str) -> bool:
        """MirrorMaker 2's rule against loops: an alias in front of the name is that of the destination."""
        naming = self._naming(topic)
        if naming.policy != "alias":
            return False
        alias = self._link.destination if naming.destination_alias is None else naming.destination_alias
        return alias in topic.split(naming.separator)[:-1]

    def _naming(self, topic: str) -> Naming:
        return rule_of(self._link.topics, topic).naming or self._link.naming


@once_for_each
def _first_rule(naming: Naming) -> FirstMatch:
    return FirstMatch("naming.rules.{}.match", tuple(rule.match for rule in naming.rules))


def why_illegal(topic: str) -> str | None:
    """Why Kafka takes no topic of this name; None where it does."""
    if topic in ("", ".", ".."):
        return "it is not an allowed name"
    if len(topic) > _LONGEST:
        return f"it has {len(topic)} characters, more than {_LONGEST}"
    strange = sorted(set(topic) - _LEGAL)
    return f"it has characters other than letters, digits, `.`, `_` and `-`: {' '.join(strange)}" if strange else None


def plan_topic(link: str) -> str:
    """Compacted; key: task group, value: its whole plan."""
    return f"{STATE_PREFIX}{link}.plan"


def map_topic(link: str) -> str:
    """Compacted; the runs that tie source positions, sequences and destination offsets together."""
    return f"{STATE_PREFIX}{link}.map"


def reports_topic(link: str) -> str:
    """Kept for a day; one report a second from each slot."""
    return f"{STATE_PREFIX}{link}.reports"


def ledger_topic(link: str) -> str:
    """Kept for three days; what the slots say that they have copied, until the driver has written it into the ledger."""
    return f"{STATE_PREFIX}{link}.ledger"


def history_topic(link: str) -> str:
    """Minutes and hours of its past."""
    return f"{STATE_PREFIX}{link}.history"


def losses_topic(link: str) -> str:
    """Kept for ever; what the link could not copy, or found gone, and what was done about it."""
    return f"{STATE_PREFIX}{link}.losses"


def quarantine_topic(link: str) -> str:
    """Kept for ever; records that the destination refused, as they were, with their source coordinates as headers."""
    return f"{STATE_PREFIX}{link}.quarantine"


def failovers_topic(link: str) -> str:
    """Kept for ever; every step of every failover of the link."""
    return f"{STATE_PREFIX}{link}.failovers"


def control_transactional_id(link: str) -> str:
    """The transactional id under which one control plane at a time may publish for a link."""
    return f"{STATE_PREFIX}{link}.control"


def quarantine_transactional_id(link: str) -> str:
    """The transactional id under which one person at a time settles what is in quarantine."""
    return f"{STATE_PREFIX}{link}.quarantine"


def tail_transactional_id(link: str) -> str:
    """The transactional id under which one process at a time exports a link's tail into a topic."""
    return f"{STATE_PREFIX}{link}.tail"


def checkpoints_topic(link: Link) -> str:
    """MirrorMaker 2's, on the destination: its clients find it by the source's alias."""
    return f"{_alias(link)}{_separator(link)}checkpoints{_separator(link)}internal"


def offset_syncs_topic(link: Link) -> str:
    """MirrorMaker 2's, as it names it on the destination (`offset-syncs.topic.location=target`)."""
    return f"mm2-offset-syncs{_separator(link)}{_alias(link)}{_separator(link)}internal"


def _alias(link: Link) -> str:
    return link.naming.alias or link.source


def _separator(link: Link) -> str:
    return link.naming.separator


def application_name(link: str, group: str, *, standby: bool = False) -> str:
    """The Spark application of one task group, as shown in Spark's own pages. ``standby``: the one that waits to take
    over. Neither a link nor a group has a dot in its name."""
    return f"strait-{link}-{group}" + (".standby" if standby else "")


def is_never_copied(topic: str) -> bool:
    """Kafka's own topics and Strait's own."""
    return topic.startswith(("__", STATE_PREFIX))


def is_internal(topic: str) -> bool:
    """Topics that are not copied unless asked for: those, and MirrorMaker 2's internal ones (by its 4.3 rule)."""
    if is_never_copied(topic) or topic.startswith("."):
        return True
    return topic.endswith(".checkpoints.internal") or (topic.startswith("mm2") and topic.endswith(".internal"))
